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

# A new server for each engine: memory that one has used stays with the server.
test_connections() {
    local engine
    client_program connections_sql
    ulimit -n $((3 * CONNECTIONS + 1000)) || fail "connections: $CONNECTIONS need $((3 * CONNECTIONS + 1000)) open files (ulimit -n)"
    for engine in InnoDB Highwater; do
        make_data
        start --max-connections=$((CONNECTIONS + 10)) --back-log=1000 --thread-stack=192K --innodb-lock-wait-timeout=3600 --highwater-lock-wait-timeout=3600
        say "$engine, $CONNECTIONS connections:"
        "$PROGRAM" "$WORK/socket" "$PID" "$engine" "$CONNECTIONS" || fail "connections: $engine"
        stop
    done
}
