# MariaDB's own test suites, run with this engine in the unpacked server. Sourced by test-mariadb-plugin, not run.
#
# Rules
# 1. Nothing of the suites is kept in this repository. What has to be said differently for this engine is made of them when they are run.
# 2. engines/iuds and engines/funcs have this engine as the default. rpl and binlog are copied, and the copies say Highwater wherever the
#    suites say InnoDB; of these the tests run that say so, and need no server built for debugging.
# 3. storage_engine has an overlay, crates/mariadb/overlay. Its answers are partly of an older server. So a test that fails is run with
#    InnoDB too, with the same overlay, in the same server: it counts as passed if InnoDB's answers differ from the suite's, and are those
#    of this engine, byte for byte. No answer is kept here, and none can hide a difference from InnoDB.

# Of each suite some tests that are short.
SAMPLE=(
    "engines/iuds insert_number insert_decimal delete_year"
    "engines/funcs ix_unique_string_length tc_rename re_string_range_set"
    "storage_engine/trx-highwater insert update delete xa_recovery"
)
SAMPLED=$(printf '%s\n' "${SAMPLE[@]}" | awk '{ n += NF - 1 } END { print n }')

SUITES=${SUITES:-engines/iuds engines/funcs storage_engine-highwater storage_engine/trx-highwater storage_engine/parts-highwater rpl_highwater binlog_highwater}

ready_suites() {
    MTR=$SERVER/share/mysql/mysql-test
    local suite
    cmp -s "$FOLDER/plugin/ha_highwater.so" "$SERVER/lib/mysql/plugin/ha_highwater.so" ||
        cp --remove-destination "$FOLDER/plugin/ha_highwater.so" "$SERVER/lib/mysql/plugin/"
    for suite in iuds funcs; do
        { printf '[highwater]\ninnodb\ndefault-storage-engine=highwater\npartition\n'; plugin_options; } >"$MTR/suite/engines/$suite/combinations"
    done
    make_overlay highwater
    make_overlay innodb_beside
    sed -i 's/HIGHWATER/InnoDB/' "$MTR/plugin/innodb_beside/storage_engine/define_engine.inc"
}

# plugin_options [PREFIX]
plugin_options() { printf -- "${1:-}%s\n" plugin-load-add=ha_highwater.so plugin-maturity=experimental; }

# make_overlay NAME: of storage_engine, storage_engine/trx and storage_engine/parts.
make_overlay() {
    local overlay=$MTR/plugin/$1/storage_engine part
    rm -rf "${overlay%/*}"
    mkdir -p "${overlay%/*}"
    cp -r "$ROOT/crates/mariadb/overlay" "$overlay"
    for part in . trx parts; do
        mkdir -p "$overlay/$part"
        { echo --innodb; plugin_options --; } >"$overlay/$part/suite.opt"
    done
}

# copy_suite NAME: as NAME_highwater, with this engine in the place of InnoDB, and the same timeout of locks. Its binary logs, other options
# and messages keep their names.
copy_suite() {
    local copy=$MTR/suite/$1_highwater
    rm -rf "$copy"
    cp -r "$MTR/suite/$1" "$copy"
    plugin_options -- >"$copy/suite.opt"
    find "$copy" -name '*.test' -o -name '*.inc' -o -name '*.result' -o -name '*.rdiff' -o -name '*.opt' -o -name '*.cnf' | xargs sed -i -E \
        -e "s/(engines?[_a-z]*[ \t]*[= \t][ \t]*['\"]?)innodb\b/\1HIGHWATER/gi" -e 's/(gtid_slave_pos_)innodb\b/\1HIGHWATER/gi' \
        -e "s#suite/$1/#suite/$1_highwater/#g" -e 's/innodb([-_]lock[-_]wait[-_]timeout)/highwater\1/gi'
}

# tests_of SUITE: those that say HIGHWATER and run in a server that is not built for debugging.
tests_of() {
    (cd "$MTR/suite/$1/t" && grep -l HIGHWATER -- *.test | xargs grep -LiE 'have_debug|debug_dbug|big_test' | sed 's/\.test$//')
}

# run_suite SUITE [TEST]...: all of a suite, or some of it. PASSED, FAILED and SKIPPED count; the log stays in FOLDER.
run_suite() {
    local suite=$1 log=$FOLDER/suite-${1//\//-}.log
    shift
    (cd "$MTR" && perl mysql-test-run.pl --vardir="$TOP/mtr" --force --max-test-fail=0 --retry=0 \
        --suite="$suite" --user=root "$@" >"$log" 2>&1) || true
    PASSED=$(grep -c '\[ pass \]' "$log" || true)
    FAILED=$(sed -n 's/^\(.*\)  *\[ fail \].*/    \1/p' "$log")
    SKIPPED=$(grep -c '\[ skipped \]\|\[ disabled \]' "$log" || true)
}

test_suites() {
    ready_suites
    local suite
    for suite in $SUITES; do
        say "suite $suite"
        case $suite in
            storage_engine*) run_beside_innodb "$suite" ;;
            *_highwater) copy_suite "${suite%_highwater}"; run_suite "$suite" $(tests_of "$suite") ;;
            *) run_suite "$suite" ;;
        esac
        say "  passed $PASSED, failed $(grep -c . <<<"$FAILED" || true), skipped $SKIPPED ($FOLDER/suite-${suite//\//-}.log)"
        [ ! "$FAILED" ] || say "$FAILED"
    done
}

# run_beside_innodb SUITE: as rule 3 says.
run_beside_innodb() {
    local suite=$1 folder passed skipped test kept=() as_innodb=0
    folder=$MTR/suite/${suite%-highwater}
    find "$folder" -maxdepth 1 -name '*.reject' -delete
    run_suite "$suite"
    passed=$PASSED skipped=$SKIPPED
    local failed=($(sed 's/.*\.\([^ ]*\).*/\1/' <<<"$FAILED"))
    rm -rf "$FOLDER/rejected"
    mkdir -p "$FOLDER/rejected"
    for test in "${failed[@]}"; do mv "$folder/$test.reject" "$FOLDER/rejected/" 2>/dev/null || true; done
    if [ ${#failed[@]} -gt 0 ]; then run_suite "${suite%-highwater}-innodb_beside" "${failed[@]}"; fi
    for test in "${failed[@]}"; do
        if cmp -s "$folder/$test.reject" "$FOLDER/rejected/$test.reject"; then
            as_innodb=$((as_innodb + 1))
        else
            kept+=("$test")
        fi
    done
    say "  with the suite's answers $passed, with InnoDB's of this server $as_innodb"
    PASSED=$((passed + as_innodb)) SKIPPED=$skipped FAILED=$([ ${#kept[@]} = 0 ] || printf '    %s\n' "${kept[@]}")
}

test_sample() {
    ready_suites
    local part passed=0
    for part in "${SAMPLE[@]}"; do
        run_suite $part
        if [ "$FAILED" ]; then
            tail -60 "$FOLDER/suite-$(tr / - <<<"${part%% *}").log" >&2
            fail "sample: of the suite ${part%% *} these fail: $FAILED"
        fi
        passed=$((passed + PASSED))
    done
    [ $passed = "$SAMPLED" ] || fail "sample: $passed of $SAMPLED tests passed, the others did not run ($FOLDER/suite-*.log)"
    say "sample: $passed tests of MariaDB's suites pass"
}
