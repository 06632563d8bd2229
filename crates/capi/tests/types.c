/* Values of all types come back as they were, through a reopening; wrong ones are refused by name. */
#include "check.h"

static const char *const TYPES[] = {"i8",  "i16", "i24",           "i32",            "i64",      "u8",         "u16",
                                    "u24", "u32", "u64",           "f32",            "f64",      "text(20)",   "binary(20)",
                                    "bool", "date", "time",        "datetime",       "uuid",     "json(80)",   "fixed(3)",
                                    "decimal(12,2)", "decimal(38,10)"};

static bool same(const highwater_value *a, const highwater_value *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
        case HIGHWATER_KIND_NULL: return true;
        case HIGHWATER_KIND_F64: return a->of.f64 == b->of.f64;
        case HIGHWATER_KIND_DECIMAL:
            return a->scale == b->scale && a->of.decimal.high == b->of.decimal.high && a->of.decimal.low == b->of.decimal.low;
        case HIGHWATER_KIND_TEXT:
        case HIGHWATER_KIND_BYTES:
            return a->of.bytes.length == b->of.bytes.length &&
                   memcmp(a->of.bytes.data, b->of.bytes.data, a->of.bytes.length) == 0;
        case HIGHWATER_KIND_UUID: return memcmp(a->of.uuid, b->of.uuid, 16) == 0;
        default: return a->of.u64 == b->of.u64;
    }
}

static void refused(highwater_txn *txn, highwater_table *table, const highwater_value *good, size_t at,
                    highwater_value bad, highwater_code code, const char *says) {
    highwater_value row[COUNT(TYPES) + 1];
    memcpy(row, good, sizeof row);
    row[0] = highwater_uint(9);
    row[at] = bad;
    RETURNS(code, highwater_insert(txn, table, row, COUNT(row), NULL, &error));
    SAYS(says);
}

int main(void) {
    highwater_db *db = opened("db");
    highwater_schema *schema = highwater_schema_new();
    highwater_key_column id[] = {{.name = "id"}};
    OK(highwater_schema_column(schema, "id", "u64", false, &error));
    for (size_t i = 0; i < COUNT(TYPES); i++) {
        char name[16];
        snprintf(name, sizeof name, "c%zu", i + 1);
        OK(highwater_schema_column(schema, name, TYPES[i], true, &error));
    }
    RETURNS(HIGHWATER_USAGE, highwater_schema_column(schema, "bad", "text(0)", true, &error));
    SAYS("column bad: text(0)");
    OK(highwater_schema_primary_key(schema, id, 1, &error));
    highwater_table *table = NULL;
    OK(highwater_create_table(db, "all", schema, &table, &error));
    highwater_schema_free(schema);
    CHECK(highwater_table_columns(table) == COUNT(TYPES) + 1);
    CHECK(strcmp(highwater_table_column_type(table, 22), "decimal(12,2)") == 0);
    CHECK(highwater_table_column_nullable(table, 1) && !highwater_table_column_nullable(table, 0));
    CHECK(highwater_table_column_name(table, 24) == NULL);

    uint8_t uuid[16], bytes[] = {0, 255, 7};
    for (int i = 0; i < 16; i++) uuid[i] = (uint8_t)(i * 16);
    highwater_value large;
    OK(highwater_decimal_from_text("-1234567890123456789012345678.0123456789", &large, &error));
    highwater_value row[] = {
        highwater_uint(1), highwater_int(-128), highwater_int(-32768), highwater_int(-8388608), highwater_int(INT32_MIN),
        highwater_int(INT64_MIN), highwater_uint(255), highwater_uint(65535), highwater_uint(16777215),
        highwater_uint(UINT32_MAX), highwater_uint(UINT64_MAX), highwater_f64(0.25), highwater_f64(-1e300),
        highwater_text("na\xc3\xafve"), highwater_blob(bytes, 3), highwater_bool(true), highwater_date(-1),
        highwater_time(86399999999u), highwater_datetime(-1), highwater_uuid(uuid), highwater_text("{\"a\": [1, null]}"),
        highwater_blob(bytes, 3), highwater_decimal(-1995, 2), large};
    CHECK(COUNT(row) == COUNT(TYPES) + 1);
    highwater_txn *txn = begun(db);
    OK(highwater_insert(txn, table, row, COUNT(row), NULL, &error));

    highwater_value nulls[COUNT(TYPES) + 1];
    memset(nulls, 0, sizeof nulls);
    nulls[0] = highwater_uint(2);
    OK(highwater_insert(txn, table, nulls, COUNT(nulls), NULL, &error));

    refused(txn, table, row, 1, highwater_int(128), HIGHWATER_BAD_VALUE, "column c1");
    refused(txn, table, row, 13, highwater_text("a text of more than 20 bytes"), HIGHWATER_BAD_VALUE, "column c13");
    refused(txn, table, row, 13, highwater_text("\xff"), HIGHWATER_USAGE, "number 13 from 0: the value is text that is not UTF-8");
    refused(txn, table, row, 15, (highwater_value){.kind = HIGHWATER_KIND_BOOL, .of.u64 = 2}, HIGHWATER_USAGE, "2 as true");
    refused(txn, table, row, 17, highwater_time(86400000000u), HIGHWATER_USAGE, "microseconds since midnight");
    refused(txn, table, row, 20, highwater_text("{"), HIGHWATER_BAD_VALUE, "column c20");
    refused(txn, table, row, 22, highwater_decimal(1, 3), HIGHWATER_BAD_VALUE, "column c22");
    refused(txn, table, row, 22, highwater_decimal(1, 300), HIGHWATER_USAGE, "300 digits");
    refused(txn, table, row, 1, (highwater_value){.kind = 99}, HIGHWATER_USAGE, "the kind 99");
    refused(txn, table, row, 14, highwater_blob(NULL, 5), HIGHWATER_USAGE, "5 bytes at a null pointer");
    RETURNS(HIGHWATER_BAD_VALUE, highwater_insert(txn, table, row, 3, NULL, &error));
    RETURNS(HIGHWATER_USAGE, highwater_decimal_from_text("1,5", &large, &error));
    committed(txn);
    highwater_table_free(table);
    OK(highwater_close(db, &error));

    db = opened("db");
    OK(highwater_open_table(db, "all", &table, &error));
    OK(highwater_snapshot(db, &txn, &error));
    for (uint64_t number = 1; number <= 2; number++) {
        highwater_value key[] = {highwater_uint(number)};
        highwater_row *found = NULL;
        OK(highwater_get(txn, table, key, 1, &found, &error));
        size_t count = 0;
        const highwater_value *values = highwater_row_values(found, &count);
        CHECK(count == COUNT(row));
        for (size_t i = 0; i < count; i++) {
            if (!same(&values[i], number == 1 ? &row[i] : &nulls[i])) {
                fprintf(stderr, "row %d, column %zu\n", (int)number, i);
                return 1;
            }
        }
        highwater_row_free(found);
    }
    highwater_txn_free(txn);
    highwater_table_free(table);
    OK(highwater_close(db, &error));
    return 0;
}
