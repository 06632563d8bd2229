/* Tables by name, indexes, options, backups, checks, counters, changes, read-only openings. */
#include "check.h"

static void schema_changes(highwater_db *db) {
    highwater_table *table = NULL;
    highwater_names *names = NULL;
    highwater_key_column name[] = {{.name = "name", .prefix_bytes = 10}};
    const char *covered[] = {"n"};
    OK(highwater_create_index(db, "t", "by_name", name, 1, covered, 1, HIGHWATER_INDEX_UNIQUE, &error));
    RETURNS(HIGHWATER_SCHEMA, highwater_create_index(db, "t", "by_name", name, 1, NULL, 0, 0, &error));
    RETURNS(HIGHWATER_USAGE, highwater_create_index(db, "t", "x", name, 1, NULL, 0, 6, &error));
    OK(highwater_drop_index(db, "t", "by_name", &error));
    OK(highwater_rename_table(db, "t", "u", &error));
    OK(highwater_truncate_table(db, "u", &error));

    highwater_schema *schema = highwater_schema_new();
    highwater_key_column id[] = {{.name = "id"}}, n[] = {{.name = "n", .descending = true}};
    highwater_value seven = highwater_uint(7);
    OK(highwater_schema_column(schema, "id", "u64", false, &error));
    OK(highwater_schema_column(schema, "n", "i64", false, &error));
    OK(highwater_schema_column(schema, "name", "text(400)", true, &error));
    OK(highwater_schema_column(schema, "added", "u8", false, &error));
    OK(highwater_schema_default(schema, "added", &seven, &error));
    OK(highwater_schema_primary_key(schema, id, 1, &error));
    OK(highwater_schema_index(schema, "by_n_down", n, 1, NULL, 0, 0, &error));
    RETURNS(HIGHWATER_SCHEMA, highwater_table_or_create(db, "u", schema, &table, &error));
    OK(highwater_migrate(db, "u", schema, &table, &error));
    CHECK(strcmp(highwater_table_column_type(table, 2), "text(400)") == 0 && highwater_table_columns(table) == 4);
    size_t at;
    OK(highwater_table_column(table, "added", &at, &error));
    CHECK(at == 3);
    highwater_schema_free(schema);
    highwater_table_free(table);

    OK(highwater_tables(db, &names, &error));
    CHECK(highwater_names_count(names) == 2 && strcmp(highwater_names_get(names, 1), "u") == 0);
    CHECK(highwater_names_get(names, 2) == NULL);
    highwater_names_free(names);
}

static void options(highwater_db *db) {
    char *value = NULL;
    OK(highwater_set_option(db, "io-capacity", "4000", &error));
    OK(highwater_get_option(db, "io_capacity", &value, &error));
    CHECK(strcmp(value, "4000") == 0);
    highwater_string_free(value);
    RETURNS(HIGHWATER_BAD_OPTION, highwater_get_option(db, "no_such", &value, &error));
    CHECK(value == NULL);
    RETURNS(HIGHWATER_BAD_OPTION, highwater_set_option(db, "flush_method", "fsync", &error));
}

static void changes(highwater_db *db) {
    highwater_table *table = created(db, "logged", true);
    highwater_changes *stream = NULL;
    highwater_change change;
    OK(highwater_changes_open(db, 0, &stream, &error));
    RETURNS(HIGHWATER_NOT_FOUND, highwater_changes_next(stream, &change, &error));
    RETURNS(HIGHWATER_NOT_FOUND, highwater_changes_wait(stream, 1, &error));
    filled(db, table, 4, 5);
    highwater_value key[] = {highwater_uint(4)};
    highwater_txn *txn = begun(db);
    OK(highwater_delete(txn, table, key, 1, &error));
    committed(txn);
    OK(highwater_changes_wait(stream, 10000, &error));
    OK(highwater_changes_next(stream, &change, &error));
    CHECK(change.kind == HIGHWATER_CHANGE_INSERT && strcmp(change.table, "logged") == 0 && !change.ends_transaction);
    CHECK(change.key_count == 1 && change.key[0].of.u64 == 4 && change.row_count == 3 && change.row[1].of.i64 == 16);
    OK(highwater_changes_next(stream, &change, &error));
    CHECK(change.ends_transaction && change.unix_us > 0);
    uint64_t first = change.sequence;
    OK(highwater_changes_next(stream, &change, &error));
    CHECK(change.kind == HIGHWATER_CHANGE_DELETE && change.row == NULL && change.row_count == 0);
    CHECK(change.sequence > first);
    RETURNS(HIGHWATER_NOT_FOUND, highwater_changes_next(stream, &change, &error));
    highwater_changes_free(stream);
    OK(highwater_trim_changes(db, first, &error));
    RETURNS(HIGHWATER_CHANGES_TRIMMED, highwater_changes_open(db, 0, &stream, &error));
    highwater_table_free(table);
}

static void backups(highwater_db *db) {
    uint64_t findings = 7, count;
    char *report = NULL;
    OK(highwater_flush_log(db, &error));
    OK(highwater_backup(db, "monday", NULL, 0, &error));
    highwater_table *table = NULL;
    OK(highwater_open_table(db, "logged", &table, &error));
    filled(db, table, 10, 12);
    highwater_table_free(table);
    OK(highwater_backup(db, "tuesday", "monday", 0, &error));
    RETURNS(HIGHWATER_USAGE, highwater_backup(db, "monday", NULL, 0, &error));
    const char *chain[] = {"monday", "tuesday"};
    OK(highwater_restore(chain, 2, "copy", NULL, 0, &error));
    OK(highwater_check(db, &findings, &report, &error));
    CHECK(findings == 0 && report[0] == 0);
    highwater_string_free(report);

    highwater_db *copy = NULL;
    highwater_txn *txn = NULL;
    OK(highwater_open_read_only("copy", NULL, 0, &copy, &error));
    RETURNS(HIGHWATER_USAGE, highwater_begin(copy, NULL, &txn, &error));
    OK(highwater_snapshot(copy, &txn, &error));
    OK(highwater_open_table(copy, "logged", &table, &error));
    OK(highwater_count(txn, table, NULL, &count, &error));
    CHECK(count == 4);
    highwater_txn_free(txn);
    highwater_table_free(table);
    OK(highwater_close(copy, &error));
}

int main(void) {
    highwater_db *db = opened("db");
    highwater_table *table = created(db, "t", false);
    filled(db, table, 1, 3);
    highwater_table_free(table);
    options(db);
    changes(db);
    schema_changes(db);
    backups(db);
    char *metrics = NULL;
    OK(highwater_metrics(db, false, &metrics, &error));
    CHECK(strstr(metrics, "\nhighwater_trx_commits_total ") != NULL);
    highwater_string_free(metrics);
    OK(highwater_close(db, &error));
    return 0;
}
