# Tests with clients of their own: schedules of several connections, and very many connections. Sourced by test-mariadb-plugin, not run.
#
# Rule: both engines are played with the same statements; InnoDB's result stands beside Highwater's.

# client_program NAME: an example of crates/torture, built; its path is in PROGRAM.
client_program() {
    (cd "$ROOT" && cargo build -q -p highwater-torture --example "$1" --target-dir "$TARGET")
    PROGRAM=$TARGET/debug/examples/$1
}

test_hermitage() {
    client_program hermitage_sql
    start
    "$PROGRAM" "$WORK/socket" || fail "hermitage: see above"
    stop
    say "hermitage: every schedule ends on Highwater as it does on InnoDB"
}

# A new server for each engine: memory that one has used stays with the server. A pool of threads has few that do not wait: it must be
# told of each wait, or no thread is left for the commit that all wait for.
test_connections() {
    local engine handling files=$((3 * CONNECTIONS + 1000))
    client_program connections_sql
    ulimit -n $files || fail "connections: $CONNECTIONS need $files open files (ulimit -n)"
    for handling in one-thread-per-connection pool-of-threads; do
        for engine in InnoDB Highwater; do
            make_data
            start --max-connections=$((CONNECTIONS + 10)) --back-log=1000 --thread-stack=192K --thread-handling=$handling \
                --innodb-lock-wait-timeout=3600 --highwater-lock-wait-timeout=3600
            say "$engine, $CONNECTIONS connections, $handling:"
            "$PROGRAM" "$WORK/socket" "$PID" "$engine" "$CONNECTIONS" || fail "connections: $engine, $handling"
            stop
        done
    done
}
