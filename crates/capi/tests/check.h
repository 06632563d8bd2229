/* What the test programs share: checks that name their line, and a small database. */
#ifndef CHECK_H
#define CHECK_H

#include <highwater.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The condition holds. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* A code, and with it an error if it is a failure. */
static inline void check_code(const char *file, int line, highwater_code found, highwater_code wanted,
                              highwater_error *error) {
    highwater_code told = found == HIGHWATER_NOT_FOUND ? HIGHWATER_OK : found;
    if (found == wanted && highwater_error_code(error) == told) return;
    fprintf(stderr, "%s:%d: code %d, not %d: %s\n", file, line, (int)found, (int)wanted,
            highwater_error_message(error));
    exit(1);
}

/* The call, whose error goes to `error`, returns this code. The error stays until the next call of these. */
static highwater_error *error = NULL;
#define RETURNS(code, call) \
    do { \
        highwater_error_free(error); \
        error = NULL; \
        highwater_code found_code = (call); \
        check_code(__FILE__, __LINE__, found_code, (code), error); \
    } while (0)
#define OK(call) RETURNS(HIGHWATER_OK, call)

/* The message of the last error has this text in it. */
#define SAYS(text) \
    do { \
        if (strstr(highwater_error_message(error), (text)) == NULL) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, highwater_error_message(error)); \
            exit(1); \
        } \
    } while (0)

static inline highwater_db *opened(const char *folder) {
    highwater_option options[] = {{"buffer-pool-size", "16M"}, {"lock_wait_timeout_ms", "60000"}};
    highwater_db *db = NULL;
    OK(highwater_open(folder, options, COUNT(options), &db, &error));
    return db;
}

/* A table of numbers and texts: id u64, n i64, name text(40) or NULL; index by_n. */
static inline highwater_table *created(highwater_db *db, const char *name, bool logs_changes) {
    highwater_schema *schema = highwater_schema_new();
    highwater_key_column id[] = {{.name = "id"}}, n[] = {{.name = "n"}};
    OK(highwater_schema_column(schema, "id", "u64", false, &error));
    OK(highwater_schema_column(schema, "n", "i64", false, &error));
    OK(highwater_schema_column(schema, "name", "text(40)", true, &error));
    OK(highwater_schema_primary_key(schema, id, 1, &error));
    OK(highwater_schema_index(schema, "by_n", n, 1, NULL, 0, 0, &error));
    if (logs_changes) OK(highwater_schema_log_changes(schema, &error));
    highwater_table *table = NULL;
    OK(highwater_create_table(db, name, schema, &table, &error));
    highwater_schema_free(schema);
    return table;
}

static inline highwater_txn *begun(highwater_db *db) {
    highwater_txn *txn = NULL;
    OK(highwater_begin(db, NULL, &txn, &error));
    return txn;
}

static inline void committed(highwater_txn *txn) {
    OK(highwater_commit(txn, &error));
    highwater_txn_free(txn);
}

/* Inserts rows with ids from `from` up to `to`, n = id * id. */
static inline void filled(highwater_db *db, highwater_table *table, uint64_t from, uint64_t to) {
    highwater_txn *txn = begun(db);
    for (uint64_t id = from; id <= to; id++) {
        highwater_value row[] = {highwater_uint(id), highwater_int((int64_t)(id * id)), highwater_null()};
        OK(highwater_insert(txn, table, row, COUNT(row), NULL, &error));
    }
    committed(txn);
}

#endif
