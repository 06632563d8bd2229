/* Writes, locks, waits, deadlocks, conflicts, savepoints; threads. */
#include "check.h"

#include <pthread.h>

static highwater_db *db;
static highwater_table *table;

static int64_t n_of(highwater_txn *txn, uint64_t id) {
    highwater_value key[] = {highwater_uint(id)};
    highwater_row *row = NULL;
    OK(highwater_get(txn, table, key, 1, &row, &error));
    int64_t n = highwater_row_values(row, NULL)[1].of.i64;
    highwater_row_free(row);
    return n;
}

static highwater_code set_n(highwater_txn *txn, uint64_t id, int64_t n, highwater_error **to) {
    highwater_value key[] = {highwater_uint(id)}, value[] = {highwater_int(n)};
    size_t column[] = {1};
    return highwater_update(txn, table, key, 1, column, value, 1, to);
}

static void writes(void) {
    highwater_txn *txn = begun(db);
    highwater_value row[] = {highwater_uint(1), highwater_int(5), highwater_text("a")};
    RETURNS(HIGHWATER_DUPLICATE_KEY, highwater_insert(txn, table, row, 3, NULL, &error));
    CHECK(strcmp(highwater_error_table(error), "t") == 0 && strcmp(highwater_error_index(error), "PRIMARY") == 0);
    CHECK(!highwater_error_is_retryable(error));
    bool inserted = true;
    OK(highwater_upsert(txn, table, row, 3, NULL, 0, &inserted, &error));
    CHECK(!inserted && n_of(txn, 1) == 5);
    size_t only_n[] = {1};
    row[1] = highwater_int(6);
    row[2] = highwater_null();
    OK(highwater_upsert(txn, table, row, 3, only_n, 1, NULL, &error));
    highwater_value key[] = {highwater_uint(1)}, missing[] = {highwater_uint(77)};
    highwater_row *found = NULL;
    OK(highwater_get(txn, table, key, 1, &found, &error));
    CHECK(highwater_row_values(found, NULL)[2].kind == HIGHWATER_KIND_TEXT);
    highwater_row_free(found);
    OK(highwater_replace(txn, table, row, 3, NULL, &error));
    OK(highwater_get(txn, table, key, 1, &found, &error));
    CHECK(highwater_row_values(found, NULL)[2].kind == HIGHWATER_KIND_NULL);
    highwater_row_free(found);
    RETURNS(HIGHWATER_NOT_FOUND, highwater_get(txn, table, missing, 1, &found, &error));
    CHECK(found == NULL);
    RETURNS(HIGHWATER_NOT_FOUND, highwater_delete(txn, table, missing, 1, &error));
    RETURNS(HIGHWATER_NOT_FOUND, set_n(txn, 77, 1, &error));
    OK(highwater_delete(txn, table, key, 1, &error));

    uint64_t savepoint, count;
    OK(highwater_savepoint(txn, &savepoint, &error));
    highwater_value many[] = {highwater_uint(100), highwater_int(1), highwater_null(),
                              highwater_uint(101), highwater_int(2), highwater_null()};
    OK(highwater_insert_many(txn, table, many, 3, 2, &error));
    RETURNS(HIGHWATER_DUPLICATE_KEY, highwater_insert_many(txn, table, many, 3, 2, &error));
    OK(highwater_count(txn, table, NULL, &count, &error));
    CHECK(count == 11);
    OK(highwater_rollback_to(txn, savepoint, &error));
    OK(highwater_count(txn, table, NULL, &count, &error));
    CHECK(count == 9);
    RETURNS(HIGHWATER_USAGE, highwater_rollback_to(txn, 5, &error));
    highwater_value from[] = {highwater_uint(8)};
    highwater_scan scan = {.from = from, .from_count = 1, .from_exclusive = true};
    OK(highwater_delete_rows(txn, table, &scan, &count, &error));
    CHECK(count == 2);
    OK(highwater_rollback(txn, &error));
    highwater_txn_free(txn);
    OK(highwater_snapshot(db, &txn, &error));
    CHECK(n_of(txn, 1) == 1 && n_of(txn, 10) == 100);
    highwater_txn_free(txn);
}

static void locks(void) {
    highwater_txn *one = begun(db), *other = begun(db);
    OK(set_n(one, 1, 10, &error));
    highwater_value key[] = {highwater_uint(1)};
    highwater_row *row = NULL;
    RETURNS(HIGHWATER_LOCK_NOT_AVAILABLE, highwater_get_locked(other, table, key, 1, HIGHWATER_LOCK_EXCLUSIVE,
                                                               HIGHWATER_NOWAIT, 0, &row, &error));
    CHECK(highwater_error_is_retryable(error) && strcmp(highwater_error_index(error), "PRIMARY") == 0);
    RETURNS(HIGHWATER_NOT_FOUND, highwater_get_locked(other, table, key, 1, HIGHWATER_LOCK_SHARED,
                                                      HIGHWATER_SKIP_LOCKED, 0, &row, &error));
    RETURNS(HIGHWATER_LOCK_TIMEOUT, highwater_get_locked(other, table, key, 1, HIGHWATER_LOCK_SHARED,
                                                         HIGHWATER_WAIT_DEFAULT, 20, &row, &error));
    OK(highwater_set_lock_wait(other, HIGHWATER_NOWAIT, 0, &error));
    RETURNS(HIGHWATER_LOCK_NOT_AVAILABLE, set_n(other, 1, 11, &error));

    /* Workers take the first job that is free. */
    highwater_scan jobs = {.lock = HIGHWATER_LOCK_EXCLUSIVE, .wait = HIGHWATER_SKIP_LOCKED, .limit = 1};
    highwater_cursor *cursor = NULL;
    const highwater_value *job;
    OK(highwater_cursor_open(other, table, &jobs, &cursor, &error));
    OK(highwater_cursor_next(cursor, &job, NULL, &error));
    CHECK(job[0].of.u64 == 2);
    RETURNS(HIGHWATER_NOT_FOUND, highwater_cursor_next(cursor, &job, NULL, &error));
    highwater_cursor_free(cursor);
    highwater_txn_free(other);
    highwater_txn_free(one);
}

static void conflicts(void) {
    highwater_txn *snapshot = NULL, *same = NULL, *careful = NULL, *txn = begun(db);
    highwater_txn_options options = {.first_committer_wins = true, .durability = HIGHWATER_DURABILITY_NONE};
    OK(highwater_begin(db, &options, &careful, &error));
    OK(highwater_snapshot(db, &snapshot, &error));
    CHECK(n_of(careful, 3) == 9 && n_of(snapshot, 3) == 9);
    OK(highwater_same_snapshot(snapshot, &same, &error));
    OK(set_n(txn, 3, 33, &error));
    committed(txn);
    CHECK(n_of(snapshot, 3) == 9 && n_of(same, 3) == 9);
    RETURNS(HIGHWATER_WRITE_CONFLICT, set_n(careful, 3, 34, &error));
    CHECK(highwater_error_is_retryable(error));
    RETURNS(HIGHWATER_USAGE, set_n(snapshot, 3, 35, &error));
    SAYS("a snapshot only reads");
    highwater_txn_free(careful);
    highwater_txn_free(snapshot);
    highwater_txn_free(same);
    options.isolation = 9;
    RETURNS(HIGHWATER_USAGE, highwater_begin(db, &options, &careful, &error));
    CHECK(careful == NULL);
}

static void *waits(void *txn) {
    highwater_error *of_thread = NULL;
    intptr_t code = (intptr_t)set_n(txn, 5, 50, &of_thread);
    highwater_error_free(of_thread);
    return (void *)code;
}

static void threads(void) {
    highwater_txn *holder = begun(db), *waiter = begun(db);
    OK(set_n(holder, 5, 1, &error));
    pthread_t thread;
    void *code;
    CHECK(pthread_create(&thread, NULL, waits, waiter) == 0);
    OK(highwater_interrupt(waiter, &error));
    CHECK(pthread_join(thread, &code) == 0 && (intptr_t)code == HIGHWATER_INTERRUPTED);

    /* Each waits for the other: one of them is the victim, the other one continues. */
    OK(set_n(waiter, 6, 1, &error));
    CHECK(pthread_create(&thread, NULL, waits, waiter) == 0);
    highwater_error_free(error);
    error = NULL;
    highwater_code own = set_n(holder, 6, 2, &error);
    if (own == HIGHWATER_OK) {
        CHECK(pthread_join(thread, &code) == 0 && (intptr_t)code == HIGHWATER_DEADLOCK);
    } else {
        CHECK(own == HIGHWATER_DEADLOCK && highwater_error_is_retryable(error));
        OK(highwater_rollback(holder, &error));
        CHECK(pthread_join(thread, &code) == 0 && (intptr_t)code == HIGHWATER_OK);
    }
    highwater_txn_free(holder);
    highwater_txn_free(waiter);
}

int main(void) {
    db = opened("db");
    table = created(db, "t", false);
    filled(db, table, 1, 10);
    writes();
    locks();
    conflicts();
    threads();
    highwater_table_free(table);
    OK(highwater_close(db, &error));
    return 0;
}
