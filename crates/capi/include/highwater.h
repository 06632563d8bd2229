/* Highwater: a transactional storage engine for flash. Generated from the library's source; it is not edited by hand.
 *
 * Rules
 *
 * 1. Results. A function that can fail returns a highwater_code. HIGHWATER_OK is success; HIGHWATER_NOT_FOUND is an
 *    answer (no such row, no further row), not a failure. With any other code *error is a highwater_error with the
 *    message, which the caller owns and frees with highwater_error_free. A call first sets *error to null. error itself
 *    may be null. An error belongs to its call, not to a thread or a handle: no other call changes it.
 *
 * 2. Handles. The caller owns each handle that a function returns (highwater_db **, highwater_txn **, ...), and frees
 *    it with the function that is named after it. A call first sets the pointer for a returned handle to null; freeing
 *    null does nothing. Handles may be freed in any order: a cursor may outlive its transaction, a transaction its
 *    database.
 *    Calls with such a cursor fail with HIGHWATER_USAGE after the end of its transaction, all calls with
 *    HIGHWATER_CLOSED after that of the database. An unexpected null pointer and a handle of another type are refused
 *    with HIGHWATER_USAGE; the use of a freed handle is a mistake that cannot always be detected.
 *
 * 3. Threads. Any number of threads may use a database, a table and a schema at the same time. A transaction with its
 *    cursors, and a stream of changes, may be used by one thread at a time: a second one gets HIGHWATER_USAGE. No call
 *    with a handle may be running when the handle is freed. Any thread may call highwater_interrupt.
 *
 * 4. Texts. Text parameters are UTF-8 and end with a NUL; paths of folders are as the system has them. Parameters need
 *    to be valid only during the call. Texts and bytes in values have a length and no NUL.
 *
 * 5. After a fork the child cannot use the handles of its parent, except to free them: each call fails with
 *    HIGHWATER_FORKED.
 */


#ifndef HIGHWATER_H
#define HIGHWATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Unlike other indexes it refuses a second row with the same values.
#define HIGHWATER_INDEX_UNIQUE 1

// The result of a function.
typedef enum {
  // Done.
  HIGHWATER_OK = 0,
  // There is no such row, or no further one. Not a failure.
  HIGHWATER_NOT_FOUND = 1,
  // A unique key exists already.
  HIGHWATER_DUPLICATE_KEY = 2,
  // Another transaction held a lock for too long. The call was undone; the transaction can continue.
  HIGHWATER_LOCK_TIMEOUT = 3,
  // A lock that is not waited for is held by another transaction. The call was undone; the transaction can continue.
  HIGHWATER_LOCK_NOT_AVAILABLE = 4,
  // The transaction was rolled back to end a deadlock: run it again.
  HIGHWATER_DEADLOCK = 5,
  // Another thread has interrupted the call. It was undone; the transaction can continue.
  HIGHWATER_INTERRUPTED = 6,
  // The row changed after the transaction's snapshot: run the transaction again.
  HIGHWATER_WRITE_CONFLICT = 7,
  // There is no such table.
  HIGHWATER_NO_SUCH_TABLE = 8,
  // There is such a table already.
  HIGHWATER_TABLE_EXISTS = 9,
  // The table was dropped or changed since its handle was made: open it again.
  HIGHWATER_TABLE_CHANGED = 10,
  // The table has no such column.
  HIGHWATER_NO_SUCH_COLUMN = 11,
  // The table has no such index.
  HIGHWATER_NO_SUCH_INDEX = 12,
  // A table or an index cannot be as it is described.
  HIGHWATER_SCHEMA = 13,
  // A value does not fit its column.
  HIGHWATER_BAD_VALUE = 14,
  // A key is too long for its index.
  HIGHWATER_KEY_TOO_LONG = 15,
  // A row is too large.
  HIGHWATER_ROW_TOO_LARGE = 16,
  // There is no such option, or it does not take the value.
  HIGHWATER_BAD_OPTION = 17,
  // The folder cannot be opened: it is in use, missing, incomplete or not writable.
  HIGHWATER_OPEN = 18,
  // The files are not a database, or of another version.
  HIGHWATER_INCOMPATIBLE = 19,
  // Something in the files is damaged.
  HIGHWATER_CORRUPT = 20,
  // An input or output operation failed.
  HIGHWATER_IO = 21,
  // There is no space left.
  HIGHWATER_DISK_FULL = 22,
  // An earlier failure stopped the database: close it and open it again.
  HIGHWATER_STOPPED = 23,
  // The database was closed.
  HIGHWATER_CLOSED = 24,
  // The database was opened before this process was forked: open it after fork.
  HIGHWATER_FORKED = 25,
  // Changes after the position are no longer kept.
  HIGHWATER_CHANGES_TRIMMED = 26,
  // A wrong call: a null pointer, a wrong handle, a transaction that has ended, a handle that another thread uses.
  HIGHWATER_USAGE = 27,
  // Something else; the message says what.
  HIGHWATER_OTHER = 28,
  // A mistake in the library. The handles that were given can be freed.
  HIGHWATER_PANIC = 29,
} highwater_code;

// The kind of a value. Any integer fits any integer column that can store the number.
typedef enum {
  // No value.
  HIGHWATER_KIND_NULL = 0,
  // A signed integer: `of.i64`.
  HIGHWATER_KIND_INT = 1,
  // An unsigned integer: `of.u64`.
  HIGHWATER_KIND_UINT = 2,
  // A floating point number: `of.f64`.
  HIGHWATER_KIND_F64 = 3,
  // A decimal number: `of.decimal`, an integer of 128 bits, and `scale`, how many of its digits follow the point.
  HIGHWATER_KIND_DECIMAL = 4,
  // Text or JSON in UTF-8: `of.bytes`, without a NUL at the end.
  HIGHWATER_KIND_TEXT = 5,
  // Bytes: `of.bytes`.
  HIGHWATER_KIND_BYTES = 6,
  // A point in time: `of.i64`, microseconds since 1970-01-01T00:00:00Z.
  HIGHWATER_KIND_DATETIME = 7,
  // True or false: `of.u64`, 1 or 0.
  HIGHWATER_KIND_BOOL = 8,
  // A day: `of.i64`, days since 1970-01-01.
  HIGHWATER_KIND_DATE = 9,
  // A time of day: `of.u64`, microseconds since midnight.
  HIGHWATER_KIND_TIME = 10,
  // A UUID: `of.uuid`, 16 bytes.
  HIGHWATER_KIND_UUID = 11,
} highwater_kind;

// The isolation level of a transaction. docs/design/isolation.md has the anomalies that each level prevents.
typedef enum {
  // All plain reads see what had committed at the first one.
  HIGHWATER_REPEATABLE_READ = 0,
  // Each plain read sees what had committed when it began.
  HIGHWATER_READ_COMMITTED = 1,
  // Plain reads see the newest rows, committed or not.
  HIGHWATER_READ_UNCOMMITTED = 2,
  // Plain reads lock what they read.
  HIGHWATER_SERIALIZABLE = 3,
} highwater_isolation;

// The durability of a commit.
typedef enum {
  // As the database's option `flush_log_at_trx_commit` says.
  HIGHWATER_DURABILITY_DEFAULT = 0,
  // Its redo is written and synced: the commit survives a power cut.
  HIGHWATER_DURABILITY_SYNC = 1,
  // Its redo is written: the commit survives the end of the process.
  HIGHWATER_DURABILITY_WRITE = 2,
  // Nothing: its redo is written and synced within a second.
  HIGHWATER_DURABILITY_NONE = 3,
} highwater_durability;

// The mode in which a read locks the rows that it finds.
typedef enum {
  // Not at all.
  HIGHWATER_LOCK_NONE = 0,
  // Shared, until the transaction ends.
  HIGHWATER_LOCK_SHARED = 1,
  // Exclusively, until the transaction ends.
  HIGHWATER_LOCK_EXCLUSIVE = 2,
} highwater_lock;

// The behavior of a call at locks of other transactions.
typedef enum {
  // It waits, as long as the transaction's options say.
  HIGHWATER_WAIT_DEFAULT = 0,
  // It fails with `HIGHWATER_LOCK_NOT_AVAILABLE`.
  HIGHWATER_NOWAIT = 1,
  // A read passes over rows that are locked.
  HIGHWATER_SKIP_LOCKED = 2,
} highwater_wait;

// The target of `highwater_cursor_seek`. Values are of the first columns of the cursor's index.
typedef enum {
  // To the first row whose key begins with the values or is greater.
  HIGHWATER_SEEK_AT_LEAST = 0,
  // To the first row whose key is greater and does not begin with the values.
  HIGHWATER_SEEK_ABOVE = 1,
  // To the last row whose key begins with the values or is smaller.
  HIGHWATER_SEEK_AT_MOST = 2,
  // To the last row whose key is smaller than the values.
  HIGHWATER_SEEK_BELOW = 3,
  // To the first row.
  HIGHWATER_SEEK_FIRST = 4,
  // To the last row.
  HIGHWATER_SEEK_LAST = 5,
} highwater_seek;

// The kind of a change, of a row or of a table.
typedef enum {
  // The row is new.
  HIGHWATER_CHANGE_INSERT = 0,
  // The row was there, and has other values.
  HIGHWATER_CHANGE_UPDATE = 1,
  // The row was deleted.
  HIGHWATER_CHANGE_DELETE = 2,
  // The table itself was changed, dropped, renamed or truncated: a copy of it has to be made again.
  HIGHWATER_CHANGE_TABLE = 3,
} highwater_change_kind;

// A stream of changes. One thread at a time may use it.
typedef struct highwater_changes highwater_changes;

// A place in the rows of a scan. It stays open while its transaction does other things, changes included.
typedef struct highwater_cursor highwater_cursor;

// An open database. Any number of threads may use it at a time; `highwater_close` is the last call.
typedef struct highwater_db highwater_db;

// The error of a failed call.
typedef struct highwater_error highwater_error;

// Names of tables.
typedef struct highwater_names highwater_names;

// A row that was read. It keeps what its values point to, whatever becomes of the transaction.
typedef struct highwater_row highwater_row;

// A table to be created.
typedef struct highwater_schema highwater_schema;

// A table of an open database. Any number of threads and transactions may use it at a time. It is valid until the
// table is dropped, renamed or truncated, or its columns are changed; then calls fail with `HIGHWATER_TABLE_CHANGED`.
typedef struct highwater_table highwater_table;

// A transaction, or a snapshot. One thread at a time may use it and its cursors; a second one gets `HIGHWATER_USAGE`.
typedef struct highwater_txn highwater_txn;

// An integer of 128 bits in two halves: `high * 2^64 + low`.
typedef struct {
  // The upper half, signed.
  int64_t high;
  // The lower half.
  uint64_t low;
} highwater_int128;

// Bytes and their number.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // Number of bytes.
  size_t length;
} highwater_bytes;

// The contents of a value, by its kind.
typedef union {
  // `INT`, `DATETIME`, `DATE`.
  int64_t i64;
  // `UINT`, `BOOL`, `TIME`.
  uint64_t u64;
  // `F64`.
  double f64;
  // `DECIMAL`.
  highwater_int128 decimal;
  // `TEXT`, `BYTES`.
  highwater_bytes bytes;
  // `UUID`.
  uint8_t uuid[16];
} highwater_datum;

// A value of a column. One of zeros is NULL.
typedef struct {
  // A `highwater_kind`.
  int32_t kind;
  // Of a decimal number: how many of its digits follow the point.
  uint32_t scale;
  // The contents.
  highwater_datum of;
} highwater_value;

// A column of a key. Zeros after the name: the whole column, ascending.
typedef struct {
  // Its name.
  const char *name;
  // Whether greater values come first.
  bool descending;
  // Length of an indexed prefix of text or bytes; 0: the whole column. Not in a primary key.
  uint16_t prefix_bytes;
} highwater_key_column;

// An option by its name, with its value as text: what the command line takes, `{"buffer_pool_size", "64MiB"}`.
typedef struct {
  // Its name; dashes and underscores are the same.
  const char *name;
  // Its value.
  const char *value;
} highwater_option;

// Options of a transaction. All zeros are the defaults.
typedef struct {
  // A `highwater_isolation`.
  int32_t isolation;
  // A `highwater_durability`.
  int32_t durability;
  // Longest wait for a lock, in milliseconds; 0: as the database's option `lock_wait_timeout_ms` says.
  uint64_t lock_wait_timeout_ms;
  // Whether a write to a row that another transaction has changed after the snapshot fails with
  // `HIGHWATER_WRITE_CONFLICT`.
  bool first_committer_wins;
  // Whether the snapshot is taken at the begin, not at the first read.
  bool snapshot_at_begin;
} highwater_txn_options;

// The parameters of a scan. With all zeros it reads all rows in the order of the primary key. Values are of the first
// columns of the index, in its order.
typedef struct {
  // Name of the index; null: the primary key.
  const char *index;
  // Start: the first row whose key begins with these values or is greater; a count of 0: the beginning.
  const highwater_value *from;
  // Their number.
  size_t from_count;
  // End: the last row whose key begins with these values or is smaller; a count of 0: the end.
  const highwater_value *to;
  // Their number.
  size_t to_count;
  // Instead of `from` and `to`: all rows whose first key columns have these values.
  const highwater_value *prefix;
  // Their number.
  size_t prefix_count;
  // Positions of the columns that are read, in this order; a count of 0: all.
  const size_t *columns;
  // Their number.
  size_t column_count;
  // Most rows that it delivers; 0: all.
  uint64_t limit;
  // Longest wait for each lock, in milliseconds, with `HIGHWATER_WAIT_DEFAULT`; 0: as the transaction's.
  uint64_t lock_timeout_ms;
  // A `highwater_lock`.
  int32_t lock;
  // A `highwater_wait`.
  int32_t wait;
  // Whether rows whose key begins with the values of `from` are excluded.
  bool from_exclusive;
  // Whether rows whose key begins with the values of `to` are excluded.
  bool to_exclusive;
  // Whether the last column of `prefix`, text or bytes, only begins with the last value.
  bool starts_with;
  // Whether it reads backward, from the last row to the first.
  bool reverse;
} highwater_scan;

// A change that a committed transaction made.
typedef struct {
  // Number of the transaction: they ascend, with gaps. It is the position from which to continue, once all changes
  // of the transaction were taken.
  uint64_t sequence;
  // Time immediately before the commit, or of the prepare: microseconds since 1970-01-01T00:00:00Z.
  int64_t unix_us;
  // Name of the table, as it was then.
  const char *table;
  // Values of the primary key's columns.
  const highwater_value *key;
  // Their number; 0 if the table was changed.
  size_t key_count;
  // The row as it was then; null if it was deleted or the table was changed.
  const highwater_value *row;
  // Number of its values.
  size_t row_count;
  // A `highwater_change_kind`.
  int32_t kind;
  // Whether this is the last change of its transaction.
  bool ends_transaction;
} highwater_change;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The code of an error; `HIGHWATER_OK` of null.
highwater_code highwater_error_code(const highwater_error *error);

// The message of an error, with the remedy, in UTF-8; "" for null. It lives as long as the error.
const char *highwater_error_message(const highwater_error *error);

// Name of the table that the error is about; NULL if it names none. It lives as long as the error.
const char *highwater_error_table(const highwater_error *error);

// Name of the index that the error is about, "PRIMARY" for the primary key; NULL if it names none. It lives as long as
// the error.
const char *highwater_error_index(const highwater_error *error);

// Whether the same transaction may succeed when it is rolled back and run again: it met other transactions.
bool highwater_error_is_retryable(const highwater_error *error);

// Frees an error; null is ignored.
void highwater_error_free(highwater_error *error);

// NULL.
highwater_value highwater_null(void);

// A signed integer.
highwater_value highwater_int(int64_t number);

// An unsigned integer.
highwater_value highwater_uint(uint64_t number);

// A floating point number.
highwater_value highwater_f64(double number);

// True or false.
highwater_value highwater_bool(bool truth);

// Text or JSON that ends with a NUL, which lives longer than the value; NULL for a null pointer.
highwater_value highwater_text(const char *text);

// Text or JSON of a length in bytes, which lives longer than the value.
highwater_value highwater_text_of_length(const char *data,
                                         size_t length);

// Bytes, which live longer than the value.
highwater_value highwater_blob(const uint8_t *data,
                               size_t length);

// A point in time: microseconds since 1970-01-01T00:00:00Z.
highwater_value highwater_datetime(int64_t unix_us);

// A day: days since 1970-01-01.
highwater_value highwater_date(int32_t unix_days);

// A time of day: microseconds since midnight. A call that is given one of a day or more is refused.
highwater_value highwater_time(uint64_t us_since_midnight);

// A UUID: 16 bytes, which are copied. NULL for a null pointer.
highwater_value highwater_uuid(const uint8_t *bytes);

// A decimal number: `unscaled / 10^scale`.
highwater_value highwater_decimal(int64_t unscaled,
                                  uint32_t scale);

// Reads a decimal number such as "-19.95" into `value`.
highwater_code highwater_decimal_from_text(const char *number,
                                           highwater_value *value,
                                           highwater_error **error);

// A table without columns yet. Free it with `highwater_schema_free`; tables that are created by it do not need it.
highwater_schema *highwater_schema_new(void);

// Frees a schema; null is ignored.
void highwater_schema_free(highwater_schema *schema);

// Adds a column. The type is one of `i8 i16 i24 i32 i64 u8 u16 u24 u32 u64 f32 f64 decimal(DIGITS,SCALE) text(BYTES)
// binary(BYTES) fixed(BYTES) bool date time datetime uuid json(BYTES)`.
highwater_code highwater_schema_column(highwater_schema *schema,
                                       const char *name,
                                       const char *type_name,
                                       bool nullable,
                                       highwater_error **error);

// Sets what a column has in rows that were inserted before it was added (`highwater_migrate`).
highwater_code highwater_schema_default(highwater_schema *schema,
                                        const char *column,
                                        const highwater_value *value,
                                        highwater_error **error);

// Makes an integer column auto-increment: a NULL that is inserted there becomes the next number.
highwater_code highwater_schema_auto_increment(highwater_schema *schema,
                                               const char *column,
                                               highwater_error **error);

// Sets the columns that identify a row and in whose order rows are kept.
highwater_code highwater_schema_primary_key(highwater_schema *schema,
                                            const highwater_key_column *columns,
                                            size_t count,
                                            highwater_error **error);

// Adds a secondary index. `covered` names columns that its entries hold in addition to the index's columns and those
// of the primary key. `flags` is 0 or `HIGHWATER_INDEX_UNIQUE`.
highwater_code highwater_schema_index(highwater_schema *schema,
                                      const char *name,
                                      const highwater_key_column *columns,
                                      size_t count,
                                      const char *const *covered,
                                      size_t covered_count,
                                      uint32_t flags,
                                      highwater_error **error);

// Has the indexes of the table compare a text column by a collation, for example `ascii_ci`.
highwater_code highwater_schema_collation(highwater_schema *schema,
                                          const char *column,
                                          const char *collation,
                                          highwater_error **error);

// Has rows expire at the moment that a column of type `datetime` has.
highwater_code highwater_schema_expires(highwater_schema *schema,
                                        const char *column,
                                        highwater_error **error);

// Lets the keys of the table be longer than an eighth of a page: up to seven 32nds.
highwater_code highwater_schema_long_keys(highwater_schema *schema,
                                          highwater_error **error);

// Keeps the changes of the table's rows for `highwater_changes`.
highwater_code highwater_schema_log_changes(highwater_schema *schema,
                                            highwater_error **error);

// The table's name, which lives as long as the handle; NULL of null.
const char *highwater_table_name(const highwater_table *table);

// Number of columns of the table; 0 for null.
size_t highwater_table_columns(const highwater_table *table);

// Name of a column, from 0 on, which lives as long as the handle; NULL if there is none.
const char *highwater_table_column_name(const highwater_table *table,
                                        size_t at);

// Type of a column, from 0 on, as `highwater_schema_column` takes it; it lives as long as the handle. NULL if there is
// no such column.
const char *highwater_table_column_type(const highwater_table *table,
                                        size_t at);

// Whether a column, from 0 on, may be NULL.
bool highwater_table_column_nullable(const highwater_table *table,
                                     size_t at);

// Position of the column of a name, from 0 on.
highwater_code highwater_table_column(const highwater_table *table,
                                      const char *name,
                                      size_t *at,
                                      highwater_error **error);

// Frees a table handle; null is ignored. The table stays.
void highwater_table_free(highwater_table *table);

// Version of the library, such as "0.1.0".
const char *highwater_version(void);

// Opens the database in a folder, creating both if necessary, recovering from a crash if there was one. Options that
// are not named have their defaults.
highwater_code highwater_open(const char *folder,
                              const highwater_option *options,
                              size_t option_count,
                              highwater_db **db,
                              highwater_error **error);

// Opens an existing database to read it only: not a byte of its files is written, and no other process may have it
// open for writing. Transactions are begun by `highwater_snapshot`.
highwater_code highwater_open_read_only(const char *folder,
                                        const highwater_option *options,
                                        size_t option_count,
                                        highwater_db **db,
                                        highwater_error **error);

// A new database in memory, which is gone when it is closed.
highwater_code highwater_open_in_memory(const highwater_option *options,
                                        size_t option_count,
                                        highwater_db **db,
                                        highwater_error **error);

// Closes a database and frees its handle, also when it fails; null is ignored. Calls of its tables, transactions and
// cursors fail with `HIGHWATER_CLOSED` from then on; they are freed as before, and the folder can be opened again once
// its transactions are.
highwater_code highwater_close(highwater_db *db,
                               highwater_error **error);

// Changes an option of the open database; not every option can be changed.
highwater_code highwater_set_option(highwater_db *db,
                                    const char *name,
                                    const char *value,
                                    highwater_error **error);

// The value of an option that is in force, as text, to be freed with `highwater_string_free`.
highwater_code highwater_get_option(highwater_db *db,
                                    const char *name,
                                    char **value,
                                    highwater_error **error);

// Creates a table.
highwater_code highwater_create_table(highwater_db *db,
                                      const char *name,
                                      const highwater_schema *schema,
                                      highwater_table **table,
                                      highwater_error **error);

// The table with a name. It is created if it does not exist, and refused if it differs from the schema.
highwater_code highwater_table_or_create(highwater_db *db,
                                         const char *name,
                                         const highwater_schema *schema,
                                         highwater_table **table,
                                         highwater_error **error);

// Makes a table what a schema says: creates it, or adds the columns and indexes that it lacks, and widens types.
// Nothing is dropped.
highwater_code highwater_migrate(highwater_db *db,
                                 const char *name,
                                 const highwater_schema *schema,
                                 highwater_table **table,
                                 highwater_error **error);

// The table of a name.
highwater_code highwater_open_table(highwater_db *db,
                                    const char *name,
                                    highwater_table **table,
                                    highwater_error **error);

// Drops a table. It waits until the transactions that use it have ended.
highwater_code highwater_drop_table(highwater_db *db,
                                    const char *name,
                                    highwater_error **error);

// Gives a table another name. Its handles are no longer valid then.
highwater_code highwater_rename_table(highwater_db *db,
                                      const char *name,
                                      const char *to,
                                      highwater_error **error);

// Empties a table at once. Its handles are no longer valid then.
highwater_code highwater_truncate_table(highwater_db *db,
                                        const char *name,
                                        highwater_error **error);

// Builds an index while others read and write the table. Parameters are those of `highwater_schema_index`.
highwater_code highwater_create_index(highwater_db *db,
                                      const char *table,
                                      const char *name,
                                      const highwater_key_column *columns,
                                      size_t count,
                                      const char *const *covered,
                                      size_t covered_count,
                                      uint32_t flags,
                                      highwater_error **error);

// Drops an index.
highwater_code highwater_drop_index(highwater_db *db,
                                    const char *table,
                                    const char *name,
                                    highwater_error **error);

// The names of all tables, in order, to be freed with `highwater_names_free`.
highwater_code highwater_tables(highwater_db *db,
                                highwater_names **names,
                                highwater_error **error);

// Number of names; 0 for null.
size_t highwater_names_count(const highwater_names *names);

// A name, from 0 on, which lives as long as the names do; NULL if there is none.
const char *highwater_names_get(const highwater_names *names,
                                size_t at);

// Frees names; null is ignored.
void highwater_names_free(highwater_names *names);

// Begins a transaction that reads and writes; null options are the defaults.
highwater_code highwater_begin(highwater_db *db,
                               const highwater_txn_options *txn_options,
                               highwater_txn **txn,
                               highwater_error **error);

// Begins a transaction that reads one snapshot: what had committed at its first read. It takes no locks and is ended
// by `highwater_txn_free`.
highwater_code highwater_snapshot(highwater_db *db,
                                  highwater_txn **txn,
                                  highwater_error **error);

// Another transaction that reads the same snapshot, for another thread.
highwater_code highwater_same_snapshot(highwater_txn *snapshot,
                                       highwater_txn **txn,
                                       highwater_error **error);

// Commits a transaction: its changes are visible, and durable as its options say, when it returns `HIGHWATER_OK`. It
// has ended then, also when the call fails; only `highwater_txn_free` is left to be called.
highwater_code highwater_commit(highwater_txn *txn,
                                highwater_error **error);

// Rolls a transaction back. It has ended then; only `highwater_txn_free` is left to be called.
highwater_code highwater_rollback(highwater_txn *txn,
                                  highwater_error **error);

// Frees a transaction, and rolls it back if it has not ended. Null is ignored.
void highwater_txn_free(highwater_txn *txn);

// Marks this point of the transaction.
highwater_code highwater_savepoint(highwater_txn *txn,
                                   uint64_t *savepoint,
                                   highwater_error **error);

// Undoes what was done since a savepoint. Later savepoints are gone then; locks stay.
highwater_code highwater_rollback_to(highwater_txn *txn,
                                     uint64_t savepoint,
                                     highwater_error **error);

// Sets the behavior of the following calls, writes included, at locks of other transactions: a `highwater_wait`. With
// `timeout_ms` above 0, `HIGHWATER_WAIT_DEFAULT` waits this many milliseconds.
highwater_code highwater_set_lock_wait(highwater_txn *txn,
                                       int32_t wait,
                                       uint64_t timeout_ms,
                                       highwater_error **error);

// Interrupts the transaction's call that waits or scans, or its next such call: the call fails with
// `HIGHWATER_INTERRUPTED`. May be called by any thread while the handle is not freed.
highwater_code highwater_interrupt(const highwater_txn *txn,
                                   highwater_error **error);

// Inserts a row. If `number` is not null, it gets the number that the auto-increment column was assigned because its
// value was NULL, else 0.
highwater_code highwater_insert(highwater_txn *txn,
                                const highwater_table *into,
                                const highwater_value *row,
                                size_t count,
                                uint64_t *number,
                                highwater_error **error);

// Inserts `row_count` rows of `column_count` values each, one row after another. A call that fails inserts none of
// them. Rows in the order of their keys are inserted fastest.
highwater_code highwater_insert_many(highwater_txn *txn,
                                     const highwater_table *into,
                                     const highwater_value *rows,
                                     size_t column_count,
                                     size_t row_count,
                                     highwater_error **error);

// Inserts a row or, if another one has its primary key or its key of a unique index, changes that one: its columns at
// the positions `changed` get the values of the row; with `changed_count` 0 all columns but those of the primary key
// and the auto-increment column. `inserted`, if not null, gets whether there was no such row.
highwater_code highwater_upsert(highwater_txn *txn,
                                const highwater_table *into,
                                const highwater_value *row,
                                size_t count,
                                const size_t *changed_columns,
                                size_t changed_count,
                                bool *inserted,
                                highwater_error **error);

// Deletes the rows that have the primary key of a row or its key of a unique index, and inserts it. `number` as of
// `highwater_insert`.
highwater_code highwater_replace(highwater_txn *txn,
                                 const highwater_table *into,
                                 const highwater_value *row,
                                 size_t count,
                                 uint64_t *number,
                                 highwater_error **error);

// Sets columns, by their positions, of the row of a primary key. `HIGHWATER_NOT_FOUND` if there is no such row.
highwater_code highwater_update(highwater_txn *txn,
                                const highwater_table *of,
                                const highwater_value *key,
                                size_t key_count,
                                const size_t *columns,
                                const highwater_value *new_values,
                                size_t count,
                                highwater_error **error);

// Deletes the row of a primary key. `HIGHWATER_NOT_FOUND` if there is no such row.
highwater_code highwater_delete(highwater_txn *txn,
                                const highwater_table *from,
                                const highwater_value *key,
                                size_t key_count,
                                highwater_error **error);

// Deletes the rows of a scan (null: all rows). `deleted`, if not null, gets their number. A call that fails deletes
// none of them.
highwater_code highwater_delete_rows(highwater_txn *txn,
                                     const highwater_table *from,
                                     const highwater_scan *scan,
                                     uint64_t *deleted,
                                     highwater_error **error);

// The values of a row, one for each column, and, if `count` is not null, their number. They live as long as the row.
const highwater_value *highwater_row_values(const highwater_row *row,
                                            size_t *count);

// Frees a row; null is ignored.
void highwater_row_free(highwater_row *row);

// Reads the row of a primary key, as the transaction sees it. `HIGHWATER_NOT_FOUND` if there is no such row.
highwater_code highwater_get(highwater_txn *txn,
                             const highwater_table *from,
                             const highwater_value *key,
                             size_t key_count,
                             highwater_row **row,
                             highwater_error **error);

// Reads the first row, in the order of an index, whose leading columns of that index have these values.
// `HIGHWATER_NOT_FOUND` if there is no such row.
highwater_code highwater_get_by(highwater_txn *txn,
                                const highwater_table *from,
                                const char *index,
                                const highwater_value *key,
                                size_t key_count,
                                highwater_row **row,
                                highwater_error **error);

// Reads the newest committed row of a primary key and locks it: a `highwater_lock` and a `highwater_wait`, with
// `timeout_ms` as of `highwater_set_lock_wait`. `HIGHWATER_NOT_FOUND` if there is no such row, or if it is locked and
// skipped.
highwater_code highwater_get_locked(highwater_txn *txn,
                                    const highwater_table *from,
                                    const highwater_value *key,
                                    size_t key_count,
                                    int32_t lock,
                                    int32_t wait,
                                    uint64_t timeout_ms,
                                    highwater_row **row,
                                    highwater_error **error);

// Counts the rows of a scan (null: all rows).
highwater_code highwater_count(highwater_txn *txn,
                               const highwater_table *of,
                               const highwater_scan *scan,
                               uint64_t *count,
                               highwater_error **error);

// Opens a cursor over the rows of a scan (null: all rows). It begins before the first row. Free it with
// `highwater_cursor_free`, before its transaction or after it.
highwater_code highwater_cursor_open(highwater_txn *txn,
                                     const highwater_table *over,
                                     const highwater_scan *scan,
                                     highwater_cursor **cursor,
                                     highwater_error **error);

// Moves to the next row and returns its values and, if `count` is not null, their number. They live until the next
// call of the cursor. `HIGHWATER_NOT_FOUND` after the last row, or when the scan's limit is reached.
highwater_code highwater_cursor_next(highwater_cursor *cursor,
                                     const highwater_value **row,
                                     size_t *count,
                                     highwater_error **error);

// Moves to the previous row, as `highwater_cursor_next` moves to the next one; the limit does not count here.
highwater_code highwater_cursor_previous(highwater_cursor *cursor,
                                         const highwater_value **row,
                                         size_t *count,
                                         highwater_error **error);

// Goes to a place within the scan's range: a `highwater_seek`, in the order of the index, whatever the scan's
// direction. `HIGHWATER_NOT_FOUND` if there is no such row: then it is at that end.
highwater_code highwater_cursor_seek(highwater_cursor *cursor,
                                     int32_t seek,
                                     const highwater_value *key,
                                     size_t key_count,
                                     const highwater_value **row,
                                     size_t *count,
                                     highwater_error **error);

// Frees a cursor; null is ignored.
void highwater_cursor_free(highwater_cursor *cursor);

// The changes that transactions have committed, after the transaction `since`, in tables that log them
// (`highwater_schema_log_changes`); 0 begins with all that are kept. Free it with `highwater_changes_free`.
highwater_code highwater_changes_open(highwater_db *db,
                                      uint64_t since,
                                      highwater_changes **changes,
                                      highwater_error **error);

// The next change. What it points to lives until the next call of the stream. `HIGHWATER_NOT_FOUND` at the end of what
// is committed by now: later there may be more.
highwater_code highwater_changes_next(highwater_changes *changes,
                                      highwater_change *change,
                                      highwater_error **error);

// Waits until there is a change; `HIGHWATER_NOT_FOUND` if there is none after this many milliseconds.
highwater_code highwater_changes_wait(highwater_changes *changes,
                                      uint64_t timeout_ms,
                                      highwater_error **error);

// Removes the changes up to a transaction, which all consumers have taken.
highwater_code highwater_trim_changes(highwater_db *db,
                                      uint64_t up_to,
                                      highwater_error **error);

// Frees a stream; null is ignored.
void highwater_changes_free(highwater_changes *changes);

// Makes every commit so far durable, whatever its transaction's options said.
highwater_code highwater_flush_log(highwater_db *db,
                                   highwater_error **error);

// Takes a backup into a new or empty folder while transactions run. With `base`, a backup of the same database, it has
// only the pages that have changed since; null: a full one. At most `max_bytes_per_s` bytes are read in a second; 0:
// no limit.
highwater_code highwater_backup(highwater_db *db,
                                const char *folder,
                                const char *base,
                                uint64_t max_bytes_per_s,
                                highwater_error **error);

// Makes a database, in a new or empty folder, of a full backup and the incremental ones that follow it, in order. It
// is checked, and closed when the call returns.
highwater_code highwater_restore(const char *const *backups,
                                 size_t backup_count,
                                 const char *folder,
                                 const highwater_option *options,
                                 size_t option_count,
                                 highwater_error **error);

// Verifies every page, tree and cross-reference; writers wait meanwhile. `findings` gets how many things are wrong: 0
// in a sound database. `report`, if not null, gets them as text, a line each, to be freed with
// `highwater_string_free`.
highwater_code highwater_check(highwater_db *db,
                               uint64_t *findings,
                               char **report,
                               highwater_error **error);

// Every counter as text, in Prometheus' format or, if `openmetrics`, in that of OpenMetrics, to be freed with
// `highwater_string_free`.
highwater_code highwater_metrics(highwater_db *db,
                                 bool openmetrics,
                                 char **metrics,
                                 highwater_error **error);

// Frees a text that a function has returned (`char **`); null is ignored.
void highwater_string_free(char *string);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HIGHWATER_H */
