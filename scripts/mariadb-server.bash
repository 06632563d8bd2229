# Servers with the plugin in them. Sourced by the scripts in its folder, not run.
#
# Rules
# 1. Each server has a folder of its own, listens on a socket there (replicas and Spider: on a port of this machine too), and is
#    stopped by its process id, at the end of the script at the latest.
# 2. Databases are below the system's temporary folder and are removed at the end, unless KEEP is set. All that is built is in FOLDER.
#
# The functions work on the server of the folder WORK, whose process id is PID. Other servers: enter NAME, and SERVERS keeps their ids.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
case $TARGET in /*) ;; *) TARGET=$PWD/$TARGET ;; esac
FOLDER=$TARGET/mariadb
BUILD=--debug
TOP=
WORK=
PID=
# How a server finds the plugin.
PLUGIN=()
# What a server runs under, for example valgrind; and the seconds it has to start.
UNDER=()
PATIENCE=60
declare -A SERVERS=()

say() { printf '%s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

clean_up() {
    local pid
    for pid in $PID "${SERVERS[@]}"; do kill -9 "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
    if [ "$TOP" ] && [ ! "${KEEP:-}" ]; then rm -rf "$TOP"; fi
}

# Builds the plugin and a server, and makes the folder of databases.
ready() {
    case $FOLDER in /*) ;; *) FOLDER=$PWD/$FOLDER ;; esac
    if [ ! -f "$FOLDER/plugin/ha_highwater.so" ] || [ ! "${HIGHWATER_BUILT:-}" ]; then
        "$ROOT/scripts/build-mariadb-plugin" $BUILD --with-server --dir "$FOLDER"
    fi
    SERVER=$FOLDER/server/usr
    # Of the libraries that the server needs those which this system has not.
    export LD_LIBRARY_PATH=$FOLDER/server/lib/x86_64-linux-gnu:$SERVER/lib/x86_64-linux-gnu
    TOP=$(mktemp -d "${TMPDIR:-/tmp}/highwater-mariadb.XXXXXX")
    WORK=$TOP
    PLUGIN=(--plugin-dir="$FOLDER/plugin" --plugin-maturity=experimental --plugin-load-add=ha_highwater)
    trap clean_up EXIT
}

make_data() {
    rm -rf "$WORK/data" "$WORK/played"
    "$SERVER/bin/mariadb-install-db" --no-defaults --user="$(id -un)" --basedir="$SERVER" --datadir="$WORK/data" --force \
        --auth-root-authentication-method=normal --skip-test-db >"$WORK/install.log" 2>&1 || { tail -5 "$WORK/install.log" >&2; fail "no data folder"; }
}

# launch OPTION...: starts a server and does not wait for it.
launch() {
    rm -f "$WORK/socket"
    "${UNDER[@]}" "$SERVER/sbin/mariadbd" --no-defaults --user="$(id -un)" --basedir="$SERVER" --lc-messages-dir="$SERVER/share/mysql" \
        --character-sets-dir="$SERVER/share/mysql/charsets" --datadir="$WORK/data" --socket="$WORK/socket" --pid-file="$WORK/pid" \
        --log-error="$WORK/log" --skip-networking "${PLUGIN[@]}" --innodb-buffer-pool-size=32M "$@" >"$WORK/out" 2>&1 &
    PID=$!
}

start() {
    launch "$@"
    local waited=0
    until client -e 'select 1' >/dev/null 2>&1; do
        if ! kill -0 "$PID" 2>/dev/null || [ $waited -ge $((10 * PATIENCE)) ]; then tail -20 "$WORK"/log* >&2; fail "the server does not start"; fi
        sleep 0.1
        waited=$((waited + 1))
    done
}

stop() {
    kill "$PID"
    wait "$PID" || fail "the server ended with status $?"
    PID=
}

kill_server() {
    kill -9 "$PID"
    wait "$PID" 2>/dev/null || true
    PID=
}

# enter NAME: what follows is about the server of that name.
enter() {
    if [ "$PID" ]; then SERVERS[${WORK##*/}]=$PID; fi
    WORK=$TOP/$1
    PID=${SERVERS[$1]:-}
    unset "SERVERS[$1]"
    mkdir -p "$WORK"
}

client() {
    "$SERVER/bin/mariadb" --no-defaults -uroot --socket="$WORK/socket" --character-sets-dir="$SERVER/share/mysql/charsets" "$@"
}

# query STATEMENTS: their rows, without heads.
query() { client -N --batch -e "$1"; }
