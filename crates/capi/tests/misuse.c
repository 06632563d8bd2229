/* Null pointers, handles of another type, what has ended and what is closed: each is an error, none a crash. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nulls(highwater_db *db, highwater_table *table) {
    highwater_db *other = NULL;
    highwater_txn *txn = (highwater_txn *)&other;
    highwater_row *row = NULL;
    highwater_value key[] = {highwater_uint(1)};
    RETURNS(HIGHWATER_USAGE, highwater_open(NULL, NULL, 0, &other, &error));
    RETURNS(HIGHWATER_USAGE, highwater_open("x", NULL, 0, NULL, &error));
    RETURNS(HIGHWATER_USAGE, highwater_open("x", NULL, 2, &other, &error));
    SAYS("2 elements");
    RETURNS(HIGHWATER_USAGE, highwater_begin(NULL, NULL, &txn, &error));
    SAYS("a null pointer was given for a highwater_db");
    CHECK(txn == NULL);
    txn = begun(db);
    RETURNS(HIGHWATER_USAGE, highwater_get(txn, NULL, key, 1, &row, &error));
    RETURNS(HIGHWATER_USAGE, highwater_get(txn, table, NULL, 1, &row, &error));
    RETURNS(HIGHWATER_USAGE, highwater_get(txn, table, key, 1, NULL, &error));
    RETURNS(HIGHWATER_USAGE, highwater_insert(txn, table, key, SIZE_MAX, NULL, &error));
    RETURNS(HIGHWATER_USAGE, highwater_insert_many(txn, table, key, SIZE_MAX, 3, &error));
    RETURNS(HIGHWATER_BAD_VALUE, highwater_get(txn, table, NULL, 0, &row, &error));
    RETURNS(HIGHWATER_USAGE, highwater_metrics(db, false, NULL, &error));
    /* The caller does not take the error. */
    CHECK(highwater_get(txn, NULL, key, 1, &row, NULL) == HIGHWATER_USAGE);
    highwater_txn_free(txn);

    highwater_error_free(NULL);
    highwater_txn_free(NULL);
    highwater_cursor_free(NULL);
    highwater_row_free(NULL);
    highwater_table_free(NULL);
    highwater_schema_free(NULL);
    highwater_names_free(NULL);
    highwater_changes_free(NULL);
    highwater_string_free(NULL);
    OK(highwater_close(NULL, &error));
    size_t count = 7;
    (void)highwater_row_values(NULL, &count);
    CHECK(count == 0 && highwater_error_message(NULL)[0] == 0 && highwater_table_columns(NULL) == 0);
    CHECK(highwater_text(NULL).kind == HIGHWATER_KIND_NULL && highwater_uuid(NULL).kind == HIGHWATER_KIND_NULL);
}

static void wrong_handles(highwater_db *db, highwater_table *table) {
    highwater_txn *txn = begun(db), *none = NULL;
    highwater_row *row = NULL;
    highwater_value key[] = {highwater_uint(1)};
    RETURNS(HIGHWATER_USAGE, highwater_get((highwater_txn *)table, table, key, 1, &row, &error));
    SAYS("what was given as a highwater_txn is another value");
    RETURNS(HIGHWATER_USAGE, highwater_get(txn, (highwater_table *)txn, key, 1, &row, &error));
    RETURNS(HIGHWATER_USAGE, highwater_close((highwater_db *)txn, &error));
    RETURNS(HIGHWATER_USAGE, highwater_begin((highwater_db *)((char *)db + 1), NULL, &none, &error));
    highwater_txn_free((highwater_txn *)table);
    highwater_txn_free(txn);

    /* A table of another database. */
    highwater_db *memory = NULL;
    OK(highwater_open_in_memory(NULL, 0, &memory, &error));
    highwater_txn *foreign = begun(memory);
    RETURNS(HIGHWATER_USAGE, highwater_get(foreign, table, key, 1, &row, &error));
    SAYS("belongs to another database");
    highwater_txn_free(foreign);
    OK(highwater_close(memory, &error));
}

static void ended(highwater_db *db, highwater_table *table) {
    highwater_txn *txn = begun(db);
    highwater_cursor *cursor = NULL, *orphan = NULL;
    const highwater_value *row;
    highwater_value key[] = {highwater_uint(1)};
    OK(highwater_cursor_open(txn, table, NULL, &cursor, &error));
    OK(highwater_cursor_next(cursor, &row, NULL, &error));
    OK(highwater_commit(txn, &error));
    RETURNS(HIGHWATER_USAGE, highwater_commit(txn, &error));
    SAYS("the transaction has ended");
    RETURNS(HIGHWATER_USAGE, highwater_delete(txn, table, key, 1, &error));
    RETURNS(HIGHWATER_USAGE, highwater_cursor_next(cursor, &row, NULL, &error));
    highwater_txn_free(txn);
    RETURNS(HIGHWATER_USAGE, highwater_cursor_next(cursor, &row, NULL, &error));
    highwater_cursor_free(cursor);

    txn = begun(db);
    OK(highwater_cursor_open(txn, table, NULL, &orphan, &error));
    OK(highwater_delete(txn, table, key, 1, &error));
    highwater_txn_free(txn); /* it is rolled back though its cursor lives */
    RETURNS(HIGHWATER_USAGE, highwater_cursor_next(orphan, &row, NULL, &error));
    highwater_cursor_free(orphan);
    uint64_t count;
    OK(highwater_snapshot(db, &txn, &error));
    OK(highwater_count(txn, table, NULL, &count, &error));
    CHECK(count == 3);
    highwater_txn_free(txn);
}

static void tables(highwater_db *db) {
    highwater_table *table = created(db, "gone", false), *none = NULL;
    highwater_txn *txn = begun(db);
    uint64_t count;
    OK(highwater_drop_table(db, "gone", &error));
    RETURNS(HIGHWATER_TABLE_CHANGED, highwater_count(txn, table, NULL, &count, &error));
    CHECK(strcmp(highwater_error_table(error), "gone") == 0);
    RETURNS(HIGHWATER_NO_SUCH_TABLE, highwater_open_table(db, "gone", &none, &error));
    RETURNS(HIGHWATER_NO_SUCH_COLUMN, highwater_table_column(table, "x", (size_t[]){0}, &error));
    highwater_schema *schema = highwater_schema_new();
    RETURNS(HIGHWATER_SCHEMA, highwater_create_table(db, "empty", schema, &none, &error));
    RETURNS(HIGHWATER_USAGE, highwater_schema_column(schema, "\xff", "u8", false, &error));
    highwater_schema_free(schema);
    highwater_table_free(table);
    highwater_txn_free(txn);
    highwater_option option = {"no_such_option", "1"};
    highwater_db *other = NULL;
    RETURNS(HIGHWATER_BAD_OPTION, highwater_open("x", &option, 1, &other, &error));
    RETURNS(HIGHWATER_OPEN, highwater_open("db", NULL, 0, &other, &error));
}

static atomic_int counting;

static void *counts(void *of) {
    highwater_scan scan = {.lock = HIGHWATER_LOCK_SHARED};
    void **parts = of;
    uint64_t count;
    atomic_store(&counting, 1);
    highwater_code code;
    do {
        highwater_error *own = NULL;
        code = highwater_count(parts[0], parts[1], &scan, &count, &own);
        highwater_error_free(own);
        /* The first thread is in its call just now. */
    } while (code == HIGHWATER_USAGE);
    return (void *)(intptr_t)code;
}

/* A second thread that uses a transaction is refused. */
static void two_threads(highwater_db *db, highwater_table *table) {
    highwater_txn *holder = begun(db), *shared = begun(db);
    highwater_value key[] = {highwater_uint(1)};
    OK(highwater_delete(holder, table, key, 1, &error));
    void *parts[] = {shared, table}, *code;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, counts, parts) == 0);
    while (!atomic_load(&counting)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    /* The other thread waits for the row; it is in its call soon, if it is not yet. */
    uint64_t savepoint;
    highwater_code found = HIGHWATER_OK;
    for (int i = 0; i < 60000 && found == HIGHWATER_OK; i++) {
        highwater_error_free(error);
        error = NULL;
        found = highwater_savepoint(shared, &savepoint, &error);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(found == HIGHWATER_USAGE);
    SAYS("another thread uses the transaction");
    OK(highwater_interrupt(shared, &error));
    CHECK(pthread_join(thread, &code) == 0 && (intptr_t)code == HIGHWATER_INTERRUPTED);
    highwater_txn_free(holder);
    highwater_txn_free(shared);
}

static void forked(highwater_db *db, highwater_table *table) {
    highwater_txn *txn = begun(db);
    highwater_value key[] = {highwater_uint(1)};
    OK(highwater_delete(txn, table, key, 1, &error));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(20);
        highwater_txn *own = NULL;
        uint64_t count;
        RETURNS(HIGHWATER_FORKED, highwater_begin(db, NULL, &own, &error));
        RETURNS(HIGHWATER_FORKED, highwater_count(txn, table, NULL, &count, &error));
        RETURNS(HIGHWATER_FORKED, highwater_commit(txn, &error));
        highwater_txn_free(txn);
        RETURNS(HIGHWATER_FORKED, highwater_close(db, &error));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    highwater_txn_free(txn);
}

int main(void) {
    highwater_db *db = opened("db");
    highwater_table *table = created(db, "t", false);
    filled(db, table, 1, 3);
    nulls(db, table);
    wrong_handles(db, table);
    ended(db, table);
    tables(db);
    two_threads(db, table);
    forked(db, table);

    /* Handles outlive their database. */
    highwater_txn *txn = begun(db);
    highwater_cursor *cursor = NULL;
    const highwater_value *row;
    highwater_value key[] = {highwater_uint(1)};
    OK(highwater_cursor_open(txn, table, NULL, &cursor, &error));
    OK(highwater_cursor_next(cursor, &row, NULL, &error));
    OK(highwater_close(db, &error));
    RETURNS(HIGHWATER_CLOSED, highwater_delete(txn, table, key, 1, &error));
    RETURNS(HIGHWATER_CLOSED, highwater_cursor_next(cursor, &row, NULL, &error));
    RETURNS(HIGHWATER_CLOSED, highwater_commit(txn, &error));
    CHECK(strcmp(highwater_table_name(table), "t") == 0);
    highwater_txn_free(txn);
    highwater_cursor_free(cursor);
    highwater_table_free(table);
    db = opened("db");
    OK(highwater_close(db, &error));
    return 0;
}
