//! The functions of the header, called as the C++ half calls them: a table, transactions, two phases, a crash.

use crate::abi::{
    Array, ArrayOut, Bytes, ColumnDefinition, Columns, Context, Filter, IndexDefinition, KeyPart, Read, SessionOptions,
    TableChanges, TableDefinition, VisitRow, XidParts,
};
use crate::cursor::{hw_cursor_next, hw_cursor_next_beyond, hw_cursor_open, hw_cursor_prev, hw_cursor_seek};
use crate::database::{
    Database, hw_database_close, hw_database_open, hw_table_alter, hw_table_create, hw_table_drop, hw_table_has_version,
};
use crate::failure::{Code, hw_error_index, hw_error_text};
use crate::information::{Cell, hw_list_locks, hw_list_metrics, hw_list_transactions};
use crate::rows::{hw_delete, hw_get, hw_insert, hw_key, hw_row_key, hw_row_unlock, hw_update};
use crate::session::{
    Session, hw_commit, hw_rollback, hw_rollback_to, hw_savepoint, hw_session_new, hw_statement_begin, hw_statement_end,
};
use crate::table::{Table, hw_index_has, hw_row_number, hw_table_estimate, hw_table_open, hw_table_truncate};
use crate::two_phases::{hw_commit_ordered, hw_finish, hw_prepare, hw_recover};
use std::path::Path;

const OK: i32 = Code::Ok as i32;
const NOT_FOUND: i32 = Code::NotFound as i32;
const REPEATABLE_READ: SessionOptions = SessionOptions {
    isolation: 2,
    snapshot_at_begin: 0,
    first_committer_wins: 0,
    flush_log: 3,
    lock_timeout_ms: 100,
    skip_locked: 0,
};

fn bytes(text: &str) -> Bytes {
    Bytes::of(text.as_bytes())
}

fn open(folder: &Path) -> Box<Database> {
    let mut database = None;
    let options = [bytes("page_size"), bytes("4KiB"), bytes("buffer_pool_size"), bytes("4MiB")];
    let code = hw_database_open(bytes(folder.to_str().unwrap()), Array::of(&options), &mut database);
    assert_eq!(code, OK, "{}", hw_error_text().text());
    database.unwrap()
}

/// A table of a number, a text of up to 9 bytes that may be NULL and has a unique index.
fn create(database: &Database, name: &str) -> i32 {
    let column = |name, kind, size, nullable| ColumnDefinition { name: bytes(name), kind, size, nullable };
    let columns = [column("id", 8, 0, 0), column("s", 13, 9, 1)];
    let part = |column| KeyPart { column, descending: 0, prefix: 0 };
    let (primary, unique) = ([part(0)], [part(1)]);
    let indexes = [IndexDefinition { name: bytes("by_s"), unique: 1, parts: Array::of(&unique) }];
    let definition = TableDefinition {
        columns: Array::of(&columns),
        primary_key: Array::of(&primary),
        indexes: Array::of(&indexes),
        auto_increment: -1,
        next_number: 0,
        version: bytes("first"),
    };
    hw_table_create(database, bytes(name), &definition)
}

fn table(database: &Database, name: &str) -> Box<Table> {
    let mut table = None;
    assert_eq!(hw_table_open(database, bytes(name), &mut table), OK);
    table.unwrap()
}

fn session(database: &Database) -> Box<Session> {
    let mut session = None;
    assert_eq!(hw_session_new(database, 7, &mut session), OK);
    let mut session = session.unwrap();
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    session
}

fn insert(session: &mut Session, table: &mut Table, id: u32, text: Option<&str>) -> i32 {
    let id = id.to_le_bytes();
    let row = [Bytes::of(&id), text.map_or(Bytes::null(), bytes)];
    hw_insert(session, table, Columns::of(&row))
}

const BOTH: [u32; 2] = [0, 1];

fn read() -> Read {
    let filter = Filter { judge: None, context: std::ptr::null_mut(), columns: Array::null() };
    Read { lock: 0, skip_locked: 0, all_columns: 1, wanted: Array::of(&BOTH), covering: 0, filter }
}

/// All rows in the order of an index.
fn rows(session: &mut Session, table: &mut Table, index: &str) -> Vec<(u32, Option<String>)> {
    let mut found = Vec::new();
    let mut row = [Bytes::null(); 2];
    assert_eq!(hw_cursor_open(table, bytes(index), &read()), OK);
    let mut code = hw_cursor_seek(session, table, 6, Columns::null(), ArrayOut::of(&mut row));
    while code == OK {
        let id = u32::from_le_bytes(row[0].elements().try_into().unwrap());
        found.push((id, row[1].get().map(|text| String::from_utf8(text.to_vec()).unwrap())));
        code = hw_cursor_next(session, table, ArrayOut::of(&mut row));
    }
    assert_eq!(code, NOT_FOUND, "{}", hw_error_text().text());
    found
}

/// The server drops a temporary table within the transaction that uses it, prepared or not; and goes down.
#[test]
fn a_temporary_table_is_dropped_while_it_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = open(folder.path());
    let began = std::time::Instant::now();
    let names = |database: &Database| database.db.tables().iter().map(|table| table.name().to_string()).collect();
    let none: Vec<String> = Vec::new();
    for ends in [hw_commit, hw_rollback] {
        let name = "tmp/#sql-temptable-1-2";
        assert_eq!(create(&database, name), OK);
        let (mut session, mut table) = (session(&database), table(&database, name));
        assert_eq!(insert(&mut session, &mut table, 1, Some("a")), OK);
        assert_eq!(hw_table_drop(&database, bytes(name)), OK);
        let there: Vec<String> = names(&database);
        assert_eq!(there, [name]);
        assert_eq!(ends(&mut session), OK);
        let there: Vec<String> = names(&database);
        assert_eq!(there, none);
    }
    // A prepared transaction has used it, and the server goes down.
    let xid = XidParts { format_id: 1, global: bytes("g"), branch: bytes("b") };
    {
        let name = "tmp/#sql-temptable-1-3";
        assert_eq!(create(&database, name), OK);
        let (mut session, mut table) = (session(&database), table(&database, name));
        assert_eq!(insert(&mut session, &mut table, 1, Some("a")), OK);
        assert_eq!(hw_table_drop(&database, bytes(name)), OK);
        assert_eq!(hw_prepare(&mut session, &xid), OK);
    }
    assert_eq!(hw_database_close(Some(database)), OK);
    database = open(folder.path());
    assert_eq!(hw_finish(&database, &xid, 1), OK);
    let there: Vec<String> = names(&database);
    assert_eq!(there, none);
    assert!(began.elapsed() < std::time::Duration::from_secs(8), "it waits for itself");
}

/// Appends the row to the texts of the context.
extern "C" fn note_row(context: Context, cells: *const Cell, count: usize) {
    // SAFETY: the test's own list, which it hands over and keeps; the cells live during the call.
    let (rows, cells) = unsafe { (&mut *context.cast::<Vec<Vec<String>>>(), std::slice::from_raw_parts(cells, count)) };
    rows.push(cells.iter().map(Cell::to_string).collect());
}

#[test]
fn transactions_locks_and_counters_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "d/t"), OK);
    let (mut session, mut table) = (session(&database), table(&database, "d/t"));
    assert_eq!(insert(&mut session, &mut table, 1, Some("a")), OK);
    assert_eq!(hw_commit(&mut session), OK);
    let listed = |list: extern "C" fn(&Database, VisitRow, Context) -> i32| {
        let mut rows: Vec<Vec<String>> = Vec::new();
        assert_eq!(list(&database, note_row, std::ptr::from_mut(&mut rows).cast()), OK);
        rows
    };
    assert!(listed(hw_list_transactions).is_empty() && listed(hw_list_locks).is_empty());
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    let (key, mut row) = (1u32.to_be_bytes(), [Bytes::null(); 2]);
    let locking = Read { lock: 1, ..read() };
    assert_eq!(hw_get(&mut session, &mut table, Bytes::of(&key), &locking, ArrayOut::of(&mut row)), OK);
    let transactions = listed(hw_list_transactions);
    let owner = transactions[0][1].clone();
    assert_eq!(transactions, [["7", &owner, "NULL", "ACTIVE", "REPEATABLE READ", "0", "0", "NULL"]]);
    assert_eq!(listed(hw_list_locks), [["d/t", "00000001", &owner, "7", "SHARED", "NO"]]);
    assert_eq!(hw_row_unlock(&mut session, &mut table), NOT_FOUND);
    assert_eq!(insert(&mut session, &mut table, 2, Some("b")), OK);
    assert!(listed(hw_list_transactions)[0][2] != "NULL" && listed(hw_list_transactions)[0][6] == "1");
    let xid = XidParts { format_id: 1, global: bytes("g"), branch: bytes("b") };
    assert_eq!(hw_prepare(&mut session, &xid), OK);
    assert_eq!(listed(hw_list_transactions)[0][3], "PREPARED");
    assert_eq!(hw_commit(&mut session), OK);
    assert!(listed(hw_list_transactions).is_empty() && listed(hw_list_locks).is_empty());
    let metrics = listed(hw_list_metrics);
    let value = |name: &str| metrics.iter().find(|row| row[0] == name).map(|row| row[1].clone());
    assert!(metrics.len() > 50 && value("trx_commits") == Some("2".to_string()) && value("pool_pages").is_some());
}

/// Ends at "d"; passes what the context has.
extern "C" fn judge(context: Context, columns: Columns) -> u32 {
    // SAFETY: the test's own text, which it hands over and keeps.
    let passed = unsafe { &*context.cast::<String>() };
    match columns.elements()[0].text() {
        text if text == *passed => 1,
        text if text == "d" => 2,
        _ => 0,
    }
}

#[test]
fn entries_are_judged_and_cover_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "d/t"), OK);
    let (mut session, mut table) = (session(&database), table(&database, "d/t"));
    for (id, text) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        assert_eq!(insert(&mut session, &mut table, id, Some(text)), OK);
    }
    assert_eq!(hw_commit(&mut session), OK);
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    assert_eq!(hw_index_has(&table, bytes("by_s"), Array::of(&[1, 0])), OK);
    assert_eq!(hw_index_has(&table, bytes("by_s"), Array::of(&[2])), NOT_FOUND);
    assert_eq!(hw_index_has(&table, bytes("PRIMARY"), Array::of(&[1])), NOT_FOUND);
    assert_eq!(hw_index_has(&table, bytes("none"), Array::of(&[0])), Code::Other as i32);

    let (mut passed, columns) = ("b".to_string(), [1]);
    let context = std::ptr::from_mut(&mut passed).cast();
    let filter = Filter { judge: Some(judge), context, columns: Array::of(&columns) };
    let mut row = [Bytes::null(); 2];
    for covering in [0, 1] {
        let read = Read { covering, filter, ..read() };
        assert_eq!(hw_cursor_open(&mut table, bytes("by_s"), &read), OK);
        let mut found = Vec::new();
        let mut code = hw_cursor_seek(&mut session, &mut table, 6, Columns::null(), ArrayOut::of(&mut row));
        while code == OK {
            found.push((row[0].elements()[0], row[1].text()));
            code = hw_cursor_next_beyond(&mut session, &mut table, ArrayOut::of(&mut row));
        }
        assert_eq!(code, NOT_FOUND, "{}", hw_error_text().text());
        assert_eq!(found, [(1, "a".to_string()), (3, "c".to_string())]);
    }
    // Not a column of the index's key.
    let no_column = [7];
    let read = Read { filter: Filter { columns: Array::of(&no_column), ..filter }, ..read() };
    assert_eq!(hw_cursor_open(&mut table, bytes("by_s"), &read), OK);
    let code = hw_cursor_seek(&mut session, &mut table, 6, Columns::null(), ArrayOut::of(&mut row));
    assert_eq!(code, Code::Other as i32, "{}", hw_error_text().text());
}

#[test]
fn moves_go_on_from_a_row_that_was_read_without_a_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "d/t"), OK, "{}", hw_error_text().text());
    let (mut session, mut table) = (session(&database), table(&database, "d/t"));
    for id in [1, 3, 5] {
        assert_eq!(insert(&mut session, &mut table, id, None), OK);
    }
    let mut row = [Bytes::null(); 2];
    let point = |session: &mut Session, table: &mut Table, id: u32, row: &mut [Bytes; 2]| {
        let id = id.to_le_bytes();
        hw_cursor_seek(session, table, 8, Columns::of(&[Bytes::of(&id)]), ArrayOut::of(row))
    };
    assert_eq!(hw_cursor_open(&mut table, bytes("PRIMARY"), &read()), OK);
    assert_eq!((point(&mut session, &mut table, 3, &mut row), row[0].elements()[0]), (OK, 3));
    // The key has no other row; after it there is one, and another one after that.
    assert_eq!(hw_cursor_next(&mut session, &mut table, ArrayOut::of(&mut row)), NOT_FOUND);
    assert_eq!(hw_cursor_next_beyond(&mut session, &mut table, ArrayOut::of(&mut row)), OK);
    assert_eq!(row[0].elements()[0], 5);
    assert_eq!(hw_cursor_next_beyond(&mut session, &mut table, ArrayOut::of(&mut row)), NOT_FOUND);
    // A row that is not there has neighbors.
    assert_eq!(point(&mut session, &mut table, 2, &mut row), NOT_FOUND);
    assert_eq!(hw_cursor_next_beyond(&mut session, &mut table, ArrayOut::of(&mut row)), OK);
    assert_eq!(row[0].elements()[0], 3);
}

#[test]
fn rows_statements_and_savepoints() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "d/t"), OK, "{}", hw_error_text().text());
    assert_eq!(create(&database, "d/t"), Code::TableExists as i32);
    let (mut session, mut table) = (session(&database), table(&database, "d/t"));
    assert_eq!(insert(&mut session, &mut table, 2, Some("b")), OK);
    assert_eq!(insert(&mut session, &mut table, 1, None), OK);
    assert_eq!(insert(&mut session, &mut table, 3, Some("b")), Code::Duplicate as i32);
    assert_eq!(hw_error_index().text(), "by_s");
    assert_eq!(insert(&mut session, &mut table, 3, Some("longer than it")), Code::BadValue as i32);
    let there = [(1, None), (2, Some("b".to_string()))];
    assert_eq!(rows(&mut session, &mut table, "PRIMARY"), there);
    assert_eq!(rows(&mut session, &mut table, "by_s"), there);

    let mut savepoint = 0;
    assert_eq!(hw_savepoint(&mut session, &mut savepoint), OK);
    let id = 2u32.to_le_bytes();
    let mut key = Bytes::null();
    assert_eq!(hw_key(&mut table, Columns::of(&[Bytes::of(&id)]), &mut key), OK);
    let key = key.elements().to_vec();
    let changed = [bytes("c")];
    assert_eq!(hw_update(&mut session, &mut table, Bytes::of(&key), Array::of(&[1]), Columns::of(&changed)), OK);
    let mut row = [Bytes::null(); 2];
    assert_eq!(hw_get(&mut session, &mut table, Bytes::of(&key), &read(), ArrayOut::of(&mut row)), OK);
    assert_eq!(row[1].text(), "c");
    assert_eq!(hw_delete(&mut session, &mut table, Bytes::of(&key)), OK);
    assert_eq!(hw_delete(&mut session, &mut table, Bytes::of(&key)), NOT_FOUND);
    assert_eq!(hw_rollback_to(&mut session, savepoint), OK);
    assert_eq!(rows(&mut session, &mut table, "PRIMARY"), there);
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    assert_eq!(insert(&mut session, &mut table, 9, Some("x")), OK);
    assert_eq!(hw_statement_end(&mut session, 0), OK);
    assert_eq!(hw_commit(&mut session), OK);
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    assert_eq!(rows(&mut session, &mut table, "PRIMARY"), there);
    let mut entries = 0;
    let none = Columns::null;
    assert_eq!(hw_table_estimate(&mut table, &database, bytes("by_s"), none(), 0, none(), 0, &mut entries), OK);
    assert_eq!(entries, 2);
    assert_eq!(hw_rollback(&mut session), OK);
    drop(session);
    assert_eq!(hw_table_truncate(&mut table, &database), OK, "{}", hw_error_text().text());
    let mut number = 0;
    assert_eq!(hw_row_number(&mut table, &database, &mut number), OK);
    assert_eq!(number, 1);
    drop(table);
    assert_eq!(hw_database_close(Some(database)), OK);
}

#[test]
fn a_cursor_goes_on_beyond_its_key_and_its_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "t"), OK);
    let (mut session, mut table) = (session(&database), table(&database, "t"));
    for (id, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(insert(&mut session, &mut table, id, Some(text)), OK);
    }
    let mut row = [Bytes::null(); 2];
    let key = [bytes("b")];
    assert_eq!(hw_cursor_open(&mut table, bytes("by_s"), &read()), OK);
    assert_eq!(hw_cursor_seek(&mut session, &mut table, 0, Columns::of(&key), ArrayOut::of(&mut row)), OK);
    assert_eq!(hw_cursor_next(&mut session, &mut table, ArrayOut::of(&mut row)), NOT_FOUND);
    assert_eq!(hw_cursor_seek(&mut session, &mut table, 0, Columns::of(&key), ArrayOut::of(&mut row)), OK);
    assert_eq!(hw_commit(&mut session), OK);
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    assert_eq!(hw_cursor_next_beyond(&mut session, &mut table, ArrayOut::of(&mut row)), OK);
    assert_eq!(row[1].text(), "c");
    // From the end it continues too, and that of another transaction.
    for (id, text) in [(4, "d"), (5, "e")] {
        assert_eq!(hw_cursor_next(&mut session, &mut table, ArrayOut::of(&mut row)), NOT_FOUND);
        assert_eq!(hw_commit(&mut session), OK);
        assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
        assert_eq!(hw_cursor_next(&mut session, &mut table, ArrayOut::of(&mut row)), NOT_FOUND);
        assert_eq!(insert(&mut session, &mut table, id, Some(text)), OK);
        assert_eq!(hw_commit(&mut session), OK);
        assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
        assert_eq!(hw_cursor_next(&mut session, &mut table, ArrayOut::of(&mut row)), OK);
        assert_eq!(row[1].text(), text);
        assert_eq!(key_of_row(&table), Some(id));
    }
    // A point read of a row does not move the cursor.
    let first = 1u32.to_be_bytes();
    assert_eq!(hw_get(&mut session, &mut table, Bytes::of(&first), &read(), ArrayOut::of(&mut row)), OK);
    assert_eq!(key_of_row(&table), Some(1));
    assert_eq!(hw_cursor_prev(&mut session, &mut table, ArrayOut::of(&mut row)), OK);
    assert_eq!((row[1].text().as_str(), key_of_row(&table)), ("d", Some(4)));
}

/// Of the row that was read last.
fn key_of_row(table: &Table) -> Option<u32> {
    let mut key = Bytes::null();
    (hw_row_key(table, &mut key) == OK).then(|| u32::from_be_bytes(key.elements().try_into().unwrap()))
}

extern "C" fn count(context: crate::abi::Context, xid: &XidParts) {
    assert_eq!(xid.global.text(), "order");
    // SAFETY: the test hands in a number that lives as long as the call.
    unsafe { *context.cast::<u32>() += 1 };
}

#[test]
fn a_prepared_transaction_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "t"), OK);
    let (mut session, mut table) = (session(&database), table(&database, "t"));
    let name = || XidParts { format_id: 1, global: bytes("order"), branch: Bytes::null() };
    assert_eq!(insert(&mut session, &mut table, 1, None), OK);
    assert_eq!(hw_prepare(&mut session, &name()), OK, "{}", hw_error_text().text());
    // The connection ends.
    drop((session, table));
    let mut found = 0u32;
    assert_eq!(hw_recover(&database, count, (&raw mut found).cast()), OK);
    assert_eq!(found, 1);
    assert_eq!(hw_finish(&database, &name(), 1), OK);
    assert_eq!(hw_finish(&database, &name(), 1), Code::NoXid as i32);

    let (mut session, mut table) = (self::session(&database), self::table(&database, "t"));
    assert_eq!(insert(&mut session, &mut table, 2, None), OK);
    assert_eq!(hw_prepare(&mut session, &name()), OK);
    hw_commit_ordered(&mut session);
    assert_eq!(hw_commit(&mut session), OK);
    assert_eq!(insert(&mut session, &mut table, 3, None), OK);
    assert_eq!(hw_prepare(&mut session, &name()), OK);
    assert_eq!(hw_rollback(&mut session), OK);
    assert_eq!(rows(&mut session, &mut table, "PRIMARY").len(), 2);
}

#[test]
fn a_table_changes_with_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    assert_eq!(create(&database, "t"), OK);
    let (mut session, mut handler) = (session(&database), table(&database, "t"));
    assert_eq!(insert(&mut session, &mut handler, 1, None), OK);
    assert_eq!(hw_commit(&mut session), OK);
    assert_eq!(hw_table_has_version(&database, bytes("t"), bytes("first")), OK);
    let added = [ColumnDefinition { name: bytes("n"), kind: 1, size: 0, nullable: 0 }];
    let default = (-2i16).to_le_bytes();
    let defaults = [Bytes::of(&default)];
    let changes = TableChanges {
        names: Array::null(),
        dropped: Array::null(),
        added: Array::of(&added),
        defaults: Columns::of(&defaults),
        version: bytes("second"),
    };
    assert_eq!(hw_table_alter(&database, bytes("t"), &changes), OK, "{}", hw_error_text().text());
    assert_eq!(hw_table_has_version(&database, bytes("t"), bytes("first")), NOT_FOUND);
    let mut row = [Bytes::null()];
    let wanted = [2];
    let read = Read { wanted: Array::of(&wanted), ..read() };
    assert_eq!(hw_cursor_open(&mut handler, bytes("PRIMARY"), &read), OK);
    assert_eq!(hw_statement_begin(&mut session, &REPEATABLE_READ), OK);
    assert_eq!(hw_cursor_seek(&mut session, &mut handler, 6, Columns::null(), ArrayOut::of(&mut row)), OK);
    assert_eq!(row[0].elements(), default);
}
