#include <highwater.h>
#include <inttypes.h>
#include <stdio.h>

/* Says what failed, and frees what says so. */
static int failed(highwater_error *error) {
    fprintf(stderr, "%s\n", highwater_error_message(error));
    highwater_error_free(error);
    return 1;
}

int main(void) {
    highwater_error *error = NULL;
    highwater_option options[] = {{"buffer_pool_size", "64MiB"}};
    highwater_db *db = NULL;
    if (highwater_open("shop.db", options, 1, &db, &error)) return failed(error);

    highwater_schema *schema = highwater_schema_new();
    highwater_key_column id[] = {{.name = "id"}}, name[] = {{.name = "last"}, {.name = "first"}};
    highwater_table *users = NULL;
    if (highwater_schema_column(schema, "id", "u64", false, &error) ||
        highwater_schema_auto_increment(schema, "id", &error) ||
        highwater_schema_column(schema, "last", "text(64)", false, &error) ||
        highwater_schema_column(schema, "first", "text(64)", false, &error) ||
        highwater_schema_column(schema, "note", "text(4000)", true, &error) ||
        highwater_schema_primary_key(schema, id, 1, &error) ||
        highwater_schema_index(schema, "by_name", name, 2, NULL, 0, 0, &error) ||
        highwater_table_or_create(db, "user", schema, &users, &error))
        return failed(error);
    highwater_schema_free(schema);

    highwater_value ada[] = {highwater_null(), highwater_text("Lovelace"), highwater_text("Ada"), highwater_null()};
    highwater_value grace[] = {highwater_null(), highwater_text("Hopper"), highwater_text("Grace"),
                               highwater_text("compilers")};
    highwater_txn *txn = NULL;
    if (highwater_begin(db, NULL, &txn, &error) ||
        highwater_insert(txn, users, ada, 4, NULL, &error) ||
        highwater_insert(txn, users, grace, 4, NULL, &error) ||
        highwater_commit(txn, &error)) /* durable when this returns */
        return failed(error);
    highwater_txn_free(txn);

    highwater_value begin[] = {highwater_text("Love")};
    highwater_scan scan = {.index = "by_name", .prefix = begin, .prefix_count = 1, .starts_with = true};
    highwater_txn *snapshot = NULL;
    highwater_cursor *cursor = NULL;
    if (highwater_snapshot(db, &snapshot, &error) ||
        highwater_cursor_open(snapshot, users, &scan, &cursor, &error))
        return failed(error);
    const highwater_value *row;
    highwater_code code;
    while ((code = highwater_cursor_next(cursor, &row, NULL, &error)) == HIGHWATER_OK) {
        highwater_bytes first = row[2].of.bytes, last = row[1].of.bytes;
        printf("%" PRIu64 " %.*s %.*s\n", row[0].of.u64, (int)first.length, (const char *)first.data,
               (int)last.length, (const char *)last.data);
    }
    if (code != HIGHWATER_NOT_FOUND) return failed(error);
    highwater_cursor_free(cursor);
    highwater_txn_free(snapshot);
    highwater_table_free(users);
    if (highwater_close(db, &error)) return failed(error);
    return 0;
}
