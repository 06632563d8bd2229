/*
  Highwater as a storage engine of MariaDB: what the half that is C++ calls in the half that is Rust.

  MIT OR Apache-2.0, as the engine: it knows no server.
*/

/*
  Rules
  1. Plain data and opaque objects only. Nothing here is of the server, so that another one can use it.
  2. A function returns a hw_code. After one that is neither HW_OK nor HW_NOT_FOUND, hw_error_text() and
     hw_error_index() of the same thread say more, until the next call.
  3. Pointers to objects are valid and not null. A session and a table are used by one thread at a time; the database
     and an interrupt handle by any number.
  4. Bytes that a function hands out are valid until the next call with the same table.
  5. src/header_test.rs compares this file with the functions of src/.
*/
#ifndef HIGHWATER_SERVER_H
#define HIGHWATER_SERVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hw_database hw_database;
typedef struct hw_session hw_session;
typedef struct hw_table hw_table;
typedef struct hw_interrupt hw_interrupt;

/* Bytes; of a column, `data` null is NULL. */
typedef struct { const uint8_t *data; size_t length; } hw_bytes;
typedef struct { const hw_bytes *data; size_t length; } hw_columns;
typedef struct { hw_bytes *data; size_t length; } hw_columns_out;
typedef struct { const uint32_t *data; size_t length; } hw_positions;

typedef enum {
  HW_OK = 0,
  HW_NOT_FOUND = 1,
  HW_DUPLICATE = 2,
  HW_LOCK_TIMEOUT = 3,
  HW_LOCK_REFUSED = 4,
  HW_DEADLOCK = 5,
  HW_INTERRUPTED = 6,
  HW_CONFLICT = 7,
  HW_NO_TABLE = 8,
  HW_TABLE_EXISTS = 9,
  HW_TABLE_CHANGED = 10,
  HW_DISK_FULL = 11,
  HW_ROW_TOO_LARGE = 12,
  HW_KEY_TOO_LONG = 13,
  HW_BAD_VALUE = 14,
  HW_CORRUPT = 15,
  HW_STOPPED = 16,
  HW_SCHEMA = 17,
  HW_NO_XID = 18,
  HW_DUPLICATE_XID = 19,
  HW_IN_PREPARED = 20,
  HW_OTHER = 21,
  HW_PANIC = 22
} hw_code;

/* Of this thread's last call that failed. */
hw_bytes hw_error_text(void);
/* Name of the index that has the duplicate, or is locked; empty if none. */
hw_bytes hw_error_index(void);

/* ---- The database ---- */

/* Opens the database in a folder, creates it if there is none. Options are pairs of name and value. */
int32_t hw_database_open(hw_bytes folder, hw_columns options, hw_database **out);
int32_t hw_database_close(hw_database *database);
/* Has `tell` called by each thread that waits for a lock: with 1 when the wait begins, and the owners (hw_lock_owner) of
   what is in its way; with 0 when it has ended. */
int32_t hw_on_lock_wait(const hw_database *database, void (*tell)(uint32_t begins, const uint64_t *owners, size_t count));
/* Changes an option that can be changed while the database is open. */
int32_t hw_option_set(hw_database *database, hw_bytes name, hw_bytes value);
/* Calls `visit` with each option and its present value. */
int32_t hw_options(const hw_database *database, void (*visit)(void *, hw_bytes, hw_bytes), void *context);
/* Calls `visit` with each counter. */
int32_t hw_counters(const hw_database *database, void (*visit)(void *, hw_bytes, uint64_t), void *context);
/* Calls `visit` with the lines of the state's report. */
int32_t hw_status(const hw_database *database, void (*visit)(void *, hw_bytes), void *context);
/* A value of a row: a text, or a number, or NULL. */
typedef struct { hw_bytes text; uint64_t number; uint32_t has_number; } hw_cell;
typedef void (*hw_visit_row)(void *context, const hw_cell *cells, size_t count);
/* connection, owner of its locks, transaction, state, level, seconds since it began, undo records, name if prepared */
int32_t hw_list_transactions(const hw_database *database, hw_visit_row visit, void *context);
/* table, primary key in hex, owner, connection, mode, whether it waits: of each explicit lock on a row and each request */
int32_t hw_list_locks(const hw_database *database, hw_visit_row visit, void *context);
/* name, value, what it counts, InnoDB's name of it */
int32_t hw_list_metrics(const hw_database *database, hw_visit_row visit, void *context);
/* Makes all commits before durable. */
int32_t hw_flush_log(const hw_database *database);
/* Copies the database into a folder, new or empty, while it is in use. */
int32_t hw_backup(const hw_database *database, hw_bytes folder);
/* The end of the redo log. */
int32_t hw_lsn(const hw_database *database, uint64_t *lsn);

/* ---- Tables, by name ---- */

typedef enum {
  HW_I8, HW_I16, HW_I24, HW_I32, HW_I64, HW_U8, HW_U16, HW_U24, HW_U32, HW_U64, HW_F32, HW_F64,
  HW_FIXED,  /* `size` bytes that compare as they are, 1 to 255 */
  HW_BINARY  /* up to `size` bytes */
} hw_type;

typedef struct { hw_bytes name; uint32_t type; uint32_t size; uint32_t nullable; } hw_column_definition;
/* `prefix`: how many bytes count; 0: all. */
typedef struct { uint32_t column; uint32_t descending; uint32_t prefix; } hw_key_part;
typedef struct { const hw_key_part *data; size_t length; } hw_key_parts;
typedef struct { hw_bytes name; uint32_t unique; hw_key_parts parts; } hw_index_definition;
typedef struct { const hw_column_definition *data; size_t length; } hw_column_definitions;
typedef struct { const hw_index_definition *data; size_t length; } hw_index_definitions;

typedef struct {
  hw_column_definitions columns;
  hw_key_parts primary_key;
  hw_index_definitions indexes;
  int32_t auto_increment; /* position of the column, or -1 */
  uint64_t next_number;   /* 0: 1 */
  hw_bytes version;       /* kept with the table */
} hw_table_definition;

int32_t hw_table_create(hw_database *database, hw_bytes name, const hw_table_definition *definition);
int32_t hw_table_drop(hw_database *database, hw_bytes name);
/* Drops all tables whose names begin so. */
int32_t hw_tables_drop(hw_database *database, hw_bytes prefix);
int32_t hw_table_rename(hw_database *database, hw_bytes name, hw_bytes to);
/* Adds an index to the table of a handler. After HW_DUPLICATE `duplicate` has these columns of one of the rows that are
   equal, until the handler reads. */
int32_t hw_index_create(hw_table *table, hw_database *database, const hw_index_definition *index, hw_positions wanted,
                        hw_columns_out duplicate);
int32_t hw_index_drop(hw_database *database, hw_bytes table, hw_bytes index);

/* Changes of a table that take a moment: columns get other names, are dropped, are added behind the others. */
typedef struct { uint32_t column; hw_bytes name; } hw_column_name;
typedef struct { const hw_column_name *data; size_t length; } hw_column_names;
typedef struct {
  hw_column_names names;
  hw_positions dropped;
  hw_column_definitions added;
  hw_columns defaults; /* of the added: what rows have that are there; null: NULL */
  hw_bytes version;    /* kept with the table from then on */
} hw_table_changes;
int32_t hw_table_alter(hw_database *database, hw_bytes table, const hw_table_changes *changes);
/* Whether the table has this version: HW_OK or HW_NOT_FOUND. */
int32_t hw_table_has_version(const hw_database *database, hw_bytes table, hw_bytes version);

/* ---- An open table: of one handler ---- */

int32_t hw_table_open(hw_database *database, hw_bytes name, hw_table **out);
void hw_table_close(hw_table *table);
/* Position of a column; HW_NOT_FOUND. */
int32_t hw_table_column(const hw_table *table, hw_bytes name, uint32_t *position);
/* Whether the keys of an index have the values of these columns: HW_OK or HW_NOT_FOUND. */
int32_t hw_index_has(const hw_table *table, hw_bytes index, hw_positions columns);
int32_t hw_table_truncate(hw_table *table, hw_database *database);

typedef struct {
  uint64_t rows;
  uint64_t row_bytes;
  uint64_t index_bytes;
  uint64_t next_number; /* 0: it has no such column */
} hw_table_info;
int32_t hw_table_get_info(hw_table *table, hw_database *database, hw_table_info *info);
int32_t hw_table_analyze(hw_table *table, hw_database *database);
/* How many rows have the same first `columns` columns of an index, on average; 0: not known. */
int32_t hw_table_rows_per_key(const hw_table *table, hw_bytes index, uint32_t columns, double *rows);
/* About how many entries are between two beginnings of keys. `after`: the bound is behind all keys that begin so. A
   bound without columns is open. */
int32_t hw_table_estimate(hw_table *table, hw_database *database, hw_bytes index, hw_columns low, uint32_t low_after,
                          hw_columns high, uint32_t high_after, uint64_t *entries);
/* Compares what all tables have with what their indexes have. `visit` gets each finding that is of this table or of
   none. */
int32_t hw_table_check(const hw_table *table, hw_database *database, void (*visit)(void *, hw_bytes), void *context);

int32_t hw_numbers_reserve(hw_session *session, hw_table *table, uint64_t count, uint64_t every, uint64_t offset,
                           uint64_t *first);
/* Until the statement ends no other transaction takes a number, or inserts a greater one than any before. */
int32_t hw_numbers_lock(hw_session *session, hw_table *table);
int32_t hw_numbers_set(hw_session *session, hw_table *table, uint64_t next);
/* The next number of a hidden primary key. */
int32_t hw_row_number(hw_table *table, hw_database *database, uint64_t *number);

/* ---- A session: of one connection ---- */

typedef enum { HW_READ_UNCOMMITTED, HW_READ_COMMITTED, HW_REPEATABLE_READ, HW_SERIALIZABLE } hw_isolation;
/* What the session's next transaction begins with, and its statements wait. */
typedef struct {
  uint32_t isolation;
  uint32_t snapshot_at_begin;
  uint32_t first_committer_wins;
  uint32_t flush_log;       /* 0, 1, 2; 3: as the database */
  uint64_t lock_timeout_ms; /* 0: does not wait */
  uint32_t skip_locked;
} hw_session_options;

/* `connection`: by which the session is listed. */
int32_t hw_session_new(hw_database *database, uint64_t connection, hw_session **out);
void hw_session_free(hw_session *session);
hw_interrupt *hw_session_interrupt(const hw_session *session);
void hw_interrupt_raise(const hw_interrupt *interrupt);
void hw_interrupt_free(hw_interrupt *interrupt);

/* Begins a transaction, if none is open. */
int32_t hw_begin(hw_session *session, const hw_session_options *options);
/* Begins a statement in it, if none has begun. */
int32_t hw_statement_begin(hw_session *session, const hw_session_options *options);
/* Ends the statement, if one has begun. */
int32_t hw_statement_end(hw_session *session, uint32_t keep);
int32_t hw_savepoint(hw_session *session, uint64_t *savepoint);
int32_t hw_rollback_to(hw_session *session, uint64_t savepoint);
int32_t hw_commit(hw_session *session);
int32_t hw_rollback(hw_session *session);
/* The owner of the locks of the transaction that was begun last; no other transaction has the same. */
uint64_t hw_lock_owner(const hw_session *session);
/* The number of the open transaction; 0: none, or it has changed nothing. */
uint64_t hw_transaction_id(const hw_session *session);

/* ---- Two phases ---- */

typedef struct { int32_t format_id; hw_bytes global; hw_bytes branch; } hw_xid;
int32_t hw_prepare(hw_session *session, const hw_xid *xid);
/* Visible from now on; a failure is what hw_commit returns. */
void hw_commit_ordered(hw_session *session);
/* Calls `visit` with each prepared transaction that has no owner. */
int32_t hw_recover(const hw_database *database, void (*visit)(void *, const hw_xid *), void *context);
int32_t hw_finish(const hw_database *database, const hw_xid *xid, uint32_t commit);

/* ---- Rows ---- */

int32_t hw_insert(hw_session *session, hw_table *table, hw_columns row);
/* The current row's key, or one that hw_key() or hw_row_key() made. HW_NOT_FOUND: no such row. */
int32_t hw_update(hw_session *session, hw_table *table, hw_bytes key, hw_positions positions, hw_columns values);
int32_t hw_delete(hw_session *session, hw_table *table, hw_bytes key);
/* The primary key of these columns. */
int32_t hw_key(hw_table *table, hw_columns columns, hw_bytes *key);

typedef enum { HW_LOCK_NONE, HW_LOCK_SHARED, HW_LOCK_EXCLUSIVE } hw_lock;
typedef enum { HW_TAKE, HW_SKIP, HW_END, HW_INTERRUPT } hw_verdict;
/* Judges an entry before its row is read or locked; `judge` null: all are taken. */
typedef struct {
  uint32_t (*judge)(void *context, hw_columns columns); /* returns a hw_verdict */
  void *context;
  hw_positions columns; /* those that it gets; hw_index_has() says that the index has them */
} hw_filter;
typedef struct {
  uint32_t lock;
  uint32_t skip_locked;
  uint32_t all_columns;   /* or only `wanted` are read of the long ones */
  hw_positions wanted;    /* in the order in which values are handed out */
  uint32_t covering;      /* a cursor takes the wanted columns from the entries of its index, where these have them */
  hw_filter filter;
} hw_read;

/* Reads the row of a primary key; hands out the wanted columns. */
int32_t hw_get(hw_session *session, hw_table *table, hw_bytes key, const hw_read *read, hw_columns_out row);

/* ---- The cursor of a table ---- */

/* HW_POINT: the row of a whole primary key, read without a filter. */
typedef enum { HW_EXACT, HW_EXACT_LAST, HW_AT_LEAST, HW_ABOVE, HW_AT_MOST, HW_BELOW, HW_FIRST, HW_LAST, HW_POINT } hw_seek;

/* Chooses index ("PRIMARY": the rows) and way of reading of the seeks after it. */
int32_t hw_cursor_open(hw_table *table, hw_bytes index, const hw_read *read);
int32_t hw_cursor_seek(hw_session *session, hw_table *table, uint32_t seek, hw_columns key, hw_columns_out row);
/* To the next row; within the key that an exact seek had. */
int32_t hw_cursor_next(hw_session *session, hw_table *table, hw_columns_out row);
int32_t hw_cursor_prev(hw_session *session, hw_table *table, hw_columns_out row);
/* As those, but continues beyond the key of an exact seek. */
int32_t hw_cursor_next_beyond(hw_session *session, hw_table *table, hw_columns_out row);
int32_t hw_cursor_prev_beyond(hw_session *session, hw_table *table, hw_columns_out row);
void hw_cursor_close(hw_table *table);
/* Key of the row that was read last, by the cursor or hw_get(); HW_NOT_FOUND. */
int32_t hw_row_key(const hw_table *table, hw_bytes *key);
/* Releases the lock of that row, where the level locks no ranges and the row was not locked before; else HW_NOT_FOUND. */
int32_t hw_row_unlock(hw_session *session, hw_table *table);

#ifdef __cplusplus
}
#endif
#endif
