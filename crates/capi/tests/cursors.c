/* Scans by key and by index, forward and backward, with ends, prefixes, columns and limits; seeks; concurrent changes. */
#include "check.h"

static highwater_txn *txn;
static highwater_table *table;

/* The ids that a scan delivers are these, up to a 0. */
static void delivers(const highwater_scan *scan, const uint64_t *ids) {
    highwater_cursor *cursor = NULL;
    const highwater_value *row;
    size_t count, wanted = 0;
    OK(highwater_cursor_open(txn, table, scan, &cursor, &error));
    for (; ids[wanted] != 0; wanted++) {
        OK(highwater_cursor_next(cursor, &row, &count, &error));
        CHECK(row[count - 1].of.u64 == ids[wanted] || row[0].of.u64 == ids[wanted]);
    }
    RETURNS(HIGHWATER_NOT_FOUND, highwater_cursor_next(cursor, &row, &count, &error));
    CHECK(row == NULL && count == 0);
    highwater_cursor_free(cursor);
    uint64_t counted;
    OK(highwater_count(txn, table, scan, &counted, &error));
    CHECK(counted == wanted);
}
#define DELIVERS(scan, ...) delivers(scan, (const uint64_t[]){__VA_ARGS__, 0})

static void scans(void) {
    highwater_value three[] = {highwater_uint(3)}, six[] = {highwater_uint(6)}, n[] = {highwater_int(36)};
    DELIVERS(NULL, 1, 2, 3, 4, 5, 6, 7, 8);
    highwater_scan scan = {.from = three, .from_count = 1, .to = six, .to_count = 1};
    DELIVERS(&scan, 3, 4, 5, 6);
    scan.from_exclusive = scan.to_exclusive = true;
    DELIVERS(&scan, 4, 5);
    scan.reverse = true;
    DELIVERS(&scan, 5, 4);
    scan.limit = 1;
    DELIVERS(&scan, 5);
    scan = (highwater_scan){.index = "by_n", .from = n, .from_count = 1, .reverse = true};
    DELIVERS(&scan, 8, 7, 6);
    scan = (highwater_scan){.prefix = three, .prefix_count = 1};
    DELIVERS(&scan, 3);
    size_t columns[] = {1, 0};
    scan.columns = columns;
    scan.column_count = 2;
    DELIVERS(&scan, 3);

    highwater_cursor *cursor = NULL;
    const highwater_value *row;
    scan = (highwater_scan){.reverse = true};
    OK(highwater_cursor_open(txn, table, &scan, &cursor, &error));
    RETURNS(HIGHWATER_NOT_FOUND, highwater_cursor_previous(cursor, &row, NULL, &error));
    OK(highwater_cursor_next(cursor, &row, NULL, &error));
    OK(highwater_cursor_next(cursor, &row, NULL, &error));
    OK(highwater_cursor_previous(cursor, &row, NULL, &error));
    CHECK(row[0].of.u64 == 8);
    highwater_cursor_free(cursor);

    scan = (highwater_scan){.prefix = three, .prefix_count = 1};
    scan.from = three;
    scan.from_count = 1;
    RETURNS(HIGHWATER_USAGE, highwater_cursor_open(txn, table, &scan, &cursor, &error));
    SAYS("ends or a prefix");
    scan = (highwater_scan){.index = "nope"};
    RETURNS(HIGHWATER_NO_SUCH_INDEX, highwater_cursor_open(txn, table, &scan, &cursor, &error));
    CHECK(strcmp(highwater_error_index(error), "nope") == 0);
    scan = (highwater_scan){.lock = 7};
    RETURNS(HIGHWATER_USAGE, highwater_cursor_open(txn, table, &scan, &cursor, &error));
}

static void moves(highwater_db *db) {
    highwater_cursor *cursor = NULL;
    const highwater_value *row;
    highwater_value five[] = {highwater_uint(5)}, nine[] = {highwater_uint(9), highwater_int(0), highwater_text("nine")};
    txn = begun(db);
    OK(highwater_cursor_open(txn, table, NULL, &cursor, &error));
    OK(highwater_cursor_seek(cursor, HIGHWATER_SEEK_ABOVE, five, 1, &row, NULL, &error));
    CHECK(row[0].of.u64 == 6);
    OK(highwater_cursor_previous(cursor, &row, NULL, &error));
    CHECK(row[0].of.u64 == 5);
    OK(highwater_delete(txn, table, five, 1, &error));
    OK(highwater_insert(txn, table, nine, 3, NULL, &error));
    OK(highwater_cursor_seek(cursor, HIGHWATER_SEEK_LAST, NULL, 0, &row, NULL, &error));
    CHECK(row[0].of.u64 == 9 && memcmp(row[2].of.bytes.data, "nine", row[2].of.bytes.length) == 0);
    OK(highwater_cursor_seek(cursor, HIGHWATER_SEEK_AT_MOST, five, 1, &row, NULL, &error));
    CHECK(row[0].of.u64 == 4);
    OK(highwater_cursor_seek(cursor, HIGHWATER_SEEK_FIRST, NULL, 0, &row, NULL, &error));
    CHECK(row[0].of.u64 == 1);
    RETURNS(HIGHWATER_NOT_FOUND, highwater_cursor_previous(cursor, &row, NULL, &error));
    RETURNS(HIGHWATER_USAGE, highwater_cursor_seek(cursor, 6, five, 1, &row, NULL, &error));
    highwater_cursor_free(cursor);
    highwater_txn_free(txn);
}

int main(void) {
    highwater_db *db = opened("db");
    table = created(db, "t", false);
    filled(db, table, 1, 8);
    OK(highwater_snapshot(db, &txn, &error));
    scans();
    highwater_txn_free(txn);
    txn = begun(db);
    scans();
    highwater_txn_free(txn);
    moves(db);
    highwater_table_free(table);
    OK(highwater_close(db, &error));
    return 0;
}
