# Loads under which a server is killed, and what must hold after each kill. Sourced by test-mariadb-plugin, not run.
#
# Rules
# 1. A load has its tables in the database DATABASE, notes each commit that was acknowledged outside of it, and ends when the server does.
# 2. After each kill: what was acknowledged is there, what the load says of its rows holds, no transaction is prepared, CHECK TABLE finds
#    nothing, and each table is what the binary log makes of a copy in InnoDB, which is in the database "played".
# 3. Of each fourth kill the recovery is killed too.
#
# A load NAME is four functions: NAME_make, NAME_begin ROUND (puts its processes into LOADS), NAME_end ROUND, NAME_check ROUND.

LOAD=accounts
LOADS=()
DATABASE=w
CLIENTS=4

test_kill() {
    local options=(--log-bin="$WORK/data/binlog" --binlog-format=ROW --server-id=1 --sync-binlog=1 --default-storage-engine=Highwater)
    local round began
    began=$(date +%s)
    start "${options[@]}"
    "${LOAD}_make"
    copy_tables
    for round in $(seq "$KILLS"); do
        LOADS=()
        "${LOAD}_begin" "$round"
        sleep "$((1 + RANDOM % 2)).$((RANDOM % 9))"
        kill_server
        "${LOAD}_end" "$round"
        kill_recovery "$round" "${options[@]}"
        start "${options[@]}"
        check_kill "$round"
    done
    say "kill under $LOAD: $KILLS kills in $(($(date +%s) - began)) s, nothing acknowledged is lost, the rows are those of the binary log"
    stop
}

# kill_recovery ROUND OPTION...: one recovery of four is killed too.
kill_recovery() {
    local round=$1
    shift
    if [ $((round % 4)) = 0 ]; then
        launch "$@"
        sleep "0.$((RANDOM % 9))"
        kill_server
    fi
}

tables_of() { query "select table_name from information_schema.tables where table_schema = '$1' and table_type = 'BASE TABLE' order by 1"; }

# The copy in InnoDB to which the binary log is played from here on.
copy_tables() {
    local table file
    [ "$(query "select group_concat(distinct engine) from information_schema.tables where table_schema = '$DATABASE'" | tr A-Z a-z)" = highwater ] ||
        fail "kill: the tables are not of Highwater"
    client -e 'create database played'
    for table in $(tables_of "$DATABASE"); do
        client -e "set sql_log_bin = 0; create table played.$table like $DATABASE.$table; alter table played.$table engine=InnoDB;
            insert into played.$table select * from $DATABASE.$table"
    done
    mkdir -p "$WORK/played"
    for file in "$WORK"/data/binlog.0*; do : >"$WORK/played/${file##*/}"; done
    client -e 'flush binary logs'
}

# What is new in the binary log, played into InnoDB. play_log WHO DATABASE COPY. The last file is that of the running server: still empty.
play_log() {
    local file files=("$WORK"/data/binlog.0*)
    unset 'files[-1]'
    # The copy outlives a kill of the server without syncs of its own.
    client -e "set sql_log_bin = 0; create database if not exists $3; set global innodb_flush_log_at_trx_commit = 2"
    mkdir -p "$WORK/played"
    for file in "${files[@]}"; do
        if [ -e "$WORK/played/${file##*/}" ]; then continue; fi
        "$SERVER/bin/mariadb-binlog" --no-defaults --rewrite-db="$2->$3" "$file" >"$WORK/play"
        sed -i 's/engine=Highwater/engine=InnoDB/; /^create database/d; 1i set sql_log_bin = 0;' "$WORK/play"
        client "$3" <"$WORK/play" || fail "$1: ${file##*/} is not to be played"
        : >"$WORK/played/${file##*/}"
    done
    client -e 'set global innodb_flush_log_at_trx_commit = 1'
}

check_kill() {
    local table sums
    "${LOAD}_check" "$1"
    [ -z "$(query 'xa recover')" ] || fail "kill $1: transactions are still prepared"
    play_log "kill $1" "$DATABASE" played
    for table in $(tables_of "$DATABASE"); do
        check_tables "kill $1" "$table"
        sums=$(query "checksum table $DATABASE.$table, played.$table" | cut -f 2 | sort -u | wc -l)
        [ "$sums" = 1 ] || fail "kill $1: table $table is not what the binary log says"
    done
}

# check_tables WHO TABLE...
check_tables() {
    local who=$1 table said
    shift
    for table in "$@"; do
        said=$(query "check table $DATABASE.$table")
        [ "$(cut -f 4 <<<"$said")" = OK ] || fail "$who: CHECK TABLE: $said"
    done
}

# ---- accounts: amounts that move between two tables ----

accounts_make() {
    client -e 'create database w; use w;
        create table account (id int primary key, amount int not null);
        create table other (id int primary key, amount int not null, key (amount));
        create table note (client int, number int, primary key (client, number));
        insert into account select seq, 1000 from seq_0_to_49; insert into other select seq, 1000 from seq_0_to_49;'
}

accounts_begin() {
    local client
    client -e 'delete from w.note'
    for client in 1 2 3; do
        : >"$WORK/acknowledged.$client"
        load $client &
        LOADS+=($!)
    done
}

accounts_end() { wait "${LOADS[@]}" 2>/dev/null || true; }

accounts_check() {
    local client lost
    for client in 1 2 3; do
        query "select concat('done ', client, ' ', number) from w.note where client = $client order by number" >"$WORK/there"
        # The last line may be cut off in the middle.
        lost=$(grep -x 'done [0-9]* [0-9]*' "$WORK/acknowledged.$client" | sort | comm -23 - <(sort "$WORK/there") | wc -l)
        [ "$lost" = 0 ] || fail "kill $1: $lost acknowledged commits of client $client are lost"
    done
    [ "$(query 'use w; select (select sum(amount) from account) + (select sum(amount) from other)')" = 100000 ] || fail "kill $1: amounts are lost"
}

# A client that moves amounts between accounts of two tables and notes each commit that was acknowledged.
load() {
    local number=0
    while kill -0 "$PID" 2>/dev/null; do
        # A deadlock ends the client; the next one continues with other numbers.
        number=$((number + 100000))
        statements "$1" $number | client -n --batch -N w >>"$WORK/acknowledged.$1" 2>/dev/null || true
    done
}

# statements CLIENT NUMBER: transactions numbered from NUMBER on.
statements() {
    local number
    for number in $(seq "$2" $(($2 + 20000))); do
        printf 'begin; insert into note (client, number) values (%d, %d); update account set amount = amount - 1 where id = %d; ' \
            "$1" "$number" $((RANDOM % 50))
        printf 'update other set amount = amount + 1 where id = %d; commit; select concat("done ", %d, " ", %d); %s\n' \
            $((RANDOM % 50)) "$1" "$number" "${PAUSE:+do sleep($PAUSE);}"
    done
}

# ---- sysbench ----

SHAPE=(--tables=4 --table-size=10000 --threads="$CLIENTS")

# run_sysbench SCRIPT OPTION...
run_sysbench() {
    local script=$1
    shift
    sysbench "$script" --db-driver=mysql --mysql-socket="$WORK/socket" --mysql-user=root --mysql-db="$DATABASE" "${SHAPE[@]}" "$@"
}

sysbench_make() {
    command -v sysbench >/dev/null || fail "sysbench is not installed; get it with: apt-get install sysbench"
    client -e 'create database w; create table w.acknowledged (client int primary key, number int not null)'
    client w -e "insert into acknowledged select seq, 0 from seq_0_to_$((CLIENTS - 1))"
    run_sysbench oltp_write_only --mysql-storage-engine=Highwater prepare >"$WORK/prepare.log" 2>&1 || { tail -5 "$WORK/prepare.log" >&2; fail "sysbench: prepare"; }
}

sysbench_begin() {
    local profiles=(oltp_read_write oltp_write_only)
    rm -f "$WORK"/acknowledged.*
    ACKNOWLEDGED="$WORK/acknowledged" PROFILE=${profiles[$1 % 2]} \
        run_sysbench "$ROOT/scripts/sysbench-acknowledged.lua" --rand-seed="$1" --time=0 --mysql-ignore-errors=1213,1020 run >"$WORK/sysbench.log" 2>&1 &
    LOADS+=($!)
}

sysbench_end() {
    local wrong
    wait "${LOADS[@]}" 2>/dev/null || true
    # The connection that the kill ended is errors 2013 and 2006.
    wrong=$(grep 'FATAL.*error [0-9]' "$WORK/sysbench.log" | grep -v 'error 20\(13\|06\|02\)' | head -3 || true)
    [ ! "$wrong" ] || fail "kill $1: sysbench: $wrong"
}

# Each transaction deletes a row and inserts it again, so that the tables keep their ids.
sysbench_check() {
    local client last there table acknowledged=0
    for client in $(seq 0 $((CLIENTS - 1))); do
        last=$(grep -x '[0-9]*;' "$WORK/acknowledged.$client" 2>/dev/null | tail -1 | tr -d ';' || true)
        there=$(query "select number from w.acknowledged where client = $client")
        [ "$there" -ge "${last:-0}" ] || fail "kill $1: commit $last of client $client was acknowledged, the last one that is there is $there"
        acknowledged=$((acknowledged + $(cat "$WORK/acknowledged.$client" 2>/dev/null | wc -l)))
    done
    for table in $(tables_of w | grep sbtest); do
        [ "$(query "select count(*), min(id), max(id) from w.$table")" = $'10000\t1\t10000' ] || fail "kill $1: rows of $table are lost"
        [ "$(query "select count(*) from w.$table force index (k_${table#sbtest}) where k >= 0")" = 10000 ] || fail "kill $1: entries of an index of $table are lost"
    done
    say "kill $1: $acknowledged acknowledged commits, all there"
}

# ---- tpcc: the laboratory's TPC-C ----

tpcc() { "$TARGET/release/examples/tpcc_server" "$WORK/socket" "$WORK/acknowledged" "$@"; }

tpcc_make() {
    DATABASE=lab
    (cd "$ROOT" && cargo build -q --release -p highwater-bench --example tpcc_server --target-dir "$TARGET")
    mkdir -p "$WORK/acknowledged"
    tpcc load || fail "tpcc: load"
}

tpcc_begin() {
    tpcc run 2>"$WORK/tpcc.log" &
    LOADS+=($!)
}

tpcc_end() { wait "${LOADS[@]}" || { cat "$WORK/tpcc.log" >&2; fail "kill $1: the load ended with an error of the server"; }; }

tpcc_check() {
    local commits
    commits=$(tpcc check) || fail "kill $1: tpcc"
    say "kill $1: $commits acknowledged commits since the beginning, all there"
}
