# Tests with clients of their own: schedules of several connections, and very many connections. Sourced by test-mariadb-plugin, not run.
#
# Rule: both engines are played with the same statements; InnoDB's result is printed with Highwater's.

# client_program NAME: an example of crates/torture, built; its path is in PROGRAM.
client_program() {
    local selected=(-p highwater-torture)
    if [ "${HIGHWATER_AS_TESTS:-}" ]; then selected=(--workspace --exclude highwater-models --lib); fi
    (cd "$ROOT" && cargo build -q "${selected[@]}" --example "$1" --target-dir "$TARGET")
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

# A unique index that is added in place meets two rows that are equal: both engines give the same errors, and the tables are as before. But
# InnoDB shows NULL for a BLOB, and neither index nor value for a row of a writer meanwhile ('' and '*UNKNOWN*').
test_duplicate() {
    local engine found
    start
    for engine in InnoDB Highwater; do
        client -e "drop database if exists w; create database w"
        { duplicates_of_before "$engine"; duplicate_of_writer "$engine"; } 2>&1 | sed "s/$engine/ENGINE/gi" >"$WORK/duplicate.$engine"
    done
    stop
    diff "$WORK/duplicate.InnoDB" "$WORK/duplicate.Highwater" >&2 || fail "duplicate: the answers differ (< InnoDB, > Highwater)"
    [ "$(grep -c '^ERROR 1062' "$WORK/duplicate.Highwater")" = 7 ] || fail "duplicate: not all of the 7 indexes are refused"
    grep -q '^ERROR 1062 ' "$WORK/meanwhile.InnoDB" || fail "duplicate: InnoDB does not refuse a writer's row: $(cat "$WORK/meanwhile.InnoDB")"
    found=$(sed -n "s/^ERROR 1062 [^:]*: //p" "$WORK/meanwhile.Highwater")
    [ "$found" = "Duplicate entry '77' for key 'by_n'"$'\n'"Duplicate entry 'later' for key 'by_note'" ] || fail "duplicate: of a writer's row is said: $found"
    say "duplicate: 9 unique indexes over equal rows are refused with index and value, the tables are as they were"
}

duplicates_of_before() {
    client -f w <<STATEMENTS || true
        create table t (id int primary key, n int, d decimal(9, 2), c char(9), v varchar(200), b varbinary(40), x blob, day date, key (v), key (c))
            engine=$1 default charset=utf8mb4;
        insert into t values (1, 1, 1.50, 'one', 'Eins', 'one', repeat('x', 30), '2026-11-28'), (2, null, null, null, null, null, null, null),
            (3, 1, 1.50, 'one', 'Eins', 'one', concat(repeat('x', 30), 'y'), '2026-11-28'), (4, null, null, null, null, null, null, null);
        alter table t add unique index by_n (n), algorithm=inplace;
        alter table t add unique index by_d (d desc), algorithm=inplace;
        alter table t add unique index by_c (c), algorithm=inplace;
        alter table t add unique index by_v (v), algorithm=inplace;
        alter table t add unique index by_b (b), algorithm=inplace;
        alter table t add unique index by_day (day, n, b), algorithm=inplace;
        alter table t add key by_all (day, n), add unique index by_n_day (n, day), algorithm=inplace;
        show create table t;
        check table t;
        select id, n, d, c, v, b, length(x), day from t;
        alter table t add unique index by_n_id (n, id), algorithm=inplace;
        create table named (id int primary key, a int, b int) engine=$1;
        insert into named values (1, 1, 2), (2, 1, 3);
        alter table named change a b int, change b a int, add unique index by_a (a);
        select a, b from named force index (by_a) where a = 3;
        alter table named add c int not null default 7, add key by_c (c);
        select id from named force index (by_c) where c = 7;
        check table named;
STATEMENTS
}

# The writer comes while the index is being built, and commits when the build has got to its end.
duplicate_of_writer() {
    local change
    client w -e "create table large (id int primary key, n int not null, note blob) engine=$1;
        insert into large select seq, seq, repeat('note', 40) from seq_1_to_200000"
    client w >"$WORK/writer" 2>&1 <<'STATEMENTS' &
        delimiter //
        begin not atomic
            declare waits int default 0;
            while waits < 20000 and not exists (select * from information_schema.processlist where state = 'altering table') do
                set waits = waits + 1;
                do sleep(0.002);
            end while;
            start transaction;
            insert into large values (900000, 77, 'later');
            select if(waits < 20000 and exists (select * from information_schema.processlist where state = 'altering table'), 'in time', 'too late') as writer;
            do sleep(1);
            commit;
        end//
STATEMENTS
    change=$!
    client w -e 'alter table large add unique index by_n (n), algorithm=inplace, lock=none' 2>"$WORK/meanwhile.$1" || true
    wait $change || true
    cat "$WORK/writer"
    client w -e "insert into large values (900001, 900001, 'later')"
    client w -e 'delete from large where id <= 200000; alter table large add unique index by_note (note(5)), algorithm=inplace, lock=none' 2>>"$WORK/meanwhile.$1" || true
    client w -e 'select id, n, note from large order by id; show create table large; check table large'
}
