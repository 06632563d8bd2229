//! Dumps: what is loaded equals what was dumped, and every other stream is refused, by name of the place, with nothing
//! loaded.

use crate::support::{memory, memory_with, open, options, sound};
use crate::testing::{TestDb, commit_all};
use highwater::config::PageSize;
use highwater::{
    Database, Dump, Error, Index, NumberRange, Options, Schema, TableChange, Type, UNFINISHED_LOAD, Value, values,
};
use highwater_storage::StorageSet;
use std::io::{Read, Write};

/// One table with every form of column and index, with rows of three layouts; an empty one; one without a number left.
fn filled() -> TestDb {
    let db = memory();
    let schema = Schema::new()
        .column("id", Type::U32)
        .auto_increment("id")
        .column("name", Type::Text(60))
        .collation("name", "ascii_ci")
        .nullable("weight", Type::F32)
        .column("price", Type::Decimal(30, 4))
        .nullable("body", Type::Binary(100_000))
        .column("code", Type::Fixed(3))
        .column("seen", Type::DateTime)
        .column("small", Type::I24)
        .column("wide", Type::U16)
        .primary_key_with(Index::new(&["id"]).descending("id"))
        .index_with("by_name", Index::new(&["name", "seen"]).descending("seen").covering(&["small"]))
        .index_with("by_body", Index::new(&["body"]).prefix("body", 7))
        .unique_index("by_code", &["code"])
        .attachment(b"\0what the program keeps\xff");
    let table = db.create_table("all forms", schema).unwrap();
    let price = |n: u64| highwater::Decimal::new(-i128::from(n), 4);
    let seen = |n: u64| highwater::DateTime::from_unix_us(n as i64 - 5);
    let row = |n: u64| {
        let body = (!n.is_multiple_of(3)).then(|| vec![n as u8; (n * n) as usize]);
        let code = [n as u8, 0, 255];
        (format!("Name {n}"), n.is_multiple_of(2).then_some(n as f64 / 3.0), price(n), body, code, seen(n), -(n as i64))
    };
    let mut txn = db.begin().unwrap();
    for n in 1..=200 {
        let (name, weight, price, body, code, seen, small) = row(n);
        txn.insert(&table, &values![null, &name[..], weight, price, body.as_deref(), &code[..], seen, small, n])
            .unwrap();
    }
    (1..=200u64).step_by(9).for_each(|n| assert!(txn.delete(&table, &values![n]).unwrap()));
    txn.commit().unwrap();
    let changes = [TableChange::add_column("added", Type::U16, 7u16), TableChange::widen_column("wide", Type::U32)];
    let table = db.alter_table("all forms", &changes).unwrap();
    db.transact(|txn| txn.update(&table, &values![5u64], &[(9, 9u16.into())]).map(drop)).unwrap();
    db.create_table("empty", Schema::new().column("k", Type::Text(700)).primary_key(&["k"]).long_keys()).unwrap();
    let used_up = Schema::new().column("n", Type::U8).auto_increment("n").primary_key(&["n"]);
    let used_up = db.create_table("used up", used_up).unwrap();
    let all = NumberRange { count: 255, ..NumberRange::default() };
    db.transact(|txn| txn.reserve_numbers(&used_up, all)).unwrap();
    db
}

fn dumped(db: &Database) -> Vec<u8> {
    let mut dump = Vec::new();
    let report = db.dump(&mut dump).unwrap();
    assert_eq!(report.bytes, dump.len() as u64);
    dump
}

/// Every table: its definition, its next number, its rows.
fn contents(db: &Database) -> Vec<(String, Option<u64>, Vec<Vec<Value>>)> {
    let mut read = db.snapshot().unwrap();
    let of = |table: &highwater::Table| {
        let rows = read.scan(table).iter().unwrap().map(|row| row.unwrap().to_values()).collect();
        (format!("{:?}", table.definition()), table.next_number(), rows)
    };
    db.tables().iter().map(of).collect()
}

#[test]
fn a_loaded_database_equals_the_dumped_one() {
    let db = filled();
    let dump = dumped(&db);
    for page_size in [4096, 16384] {
        let copy = Options { page_size: PageSize::Bytes(page_size), ..options() };
        let copy = memory_with(copy);
        let report = copy.load(&dump[..]).unwrap();
        assert_eq!((report.bytes, report.rows()), (dump.len() as u64, 177));
        let names: Vec<&str> = report.tables.iter().map(|table| &table.name[..]).collect();
        assert_eq!(names, ["all forms", "empty", "used up"]);
        assert_eq!(contents(&copy), contents(&db));
        sound(&copy);
        // The same bytes again, except for the size of the pages.
        assert_eq!(dumped(&copy) == dump, page_size == 4096);
    }
}

/// A small database whose dump has several blocks of each kind.
fn small() -> TestDb {
    let db = memory();
    for name in ["a", "b"] {
        let schema = Schema::new().column("id", Type::U8).column("x", Type::Text(9)).primary_key(&["id"]);
        let table = db.create_table(name, schema.index("by_x", &["x"])).unwrap();
        commit_all(&db, 0..3u8, |txn, n| txn.insert(&table, &values![n, "text"]));
    }
    db
}

fn refused(into: &Database, dump: &[u8]) -> String {
    let error = into.load(dump).expect_err("a stream that is no dump");
    assert!(matches!(error, Error::BadDump(_)), "{error:?}");
    assert!(into.tables().is_empty(), "{error}");
    error.to_string()
}

#[test]
fn each_damaged_byte_is_noticed_and_nothing_is_loaded() {
    let (dump, into) = (dumped(&small()), memory());
    for at in 0..dump.len() {
        let mut damaged = dump.clone();
        damaged[at] ^= 1 << (at % 8);
        let message = refused(&into, &damaged);
        assert!(message.contains("damaged: ") || message.contains("cut off") || at < 16, "byte {at}: {message}");
    }
    into.load(&dump[..]).unwrap();
}

#[test]
fn a_dump_that_is_cut_off_or_goes_on_names_the_place() {
    let (dump, into) = (dumped(&small()), memory());
    for end in 0..dump.len() {
        let message = refused(&into, &dump[..end]);
        assert!(message.contains(&format!("it ends at byte {end}")) || end < 8, "{end}: {message}");
    }
    let longer = [&dump[..], b"x"].concat();
    let message = refused(&into, &longer);
    assert_eq!(message, format!("the dump is damaged: bytes follow its end at byte {}", dump.len()));
}

/// The dump without its block `number`, or with that block twice.
fn with_block(dump: &[u8], number: usize, times: usize) -> Vec<u8> {
    let (mut out, mut at) = (dump[..16].to_vec(), 16);
    for block in 0.. {
        if at == dump.len() {
            break;
        }
        let stored = u32::from_le_bytes(dump[at + 16..at + 20].try_into().unwrap()) as usize;
        let bytes = &dump[at..at + 24 + stored];
        (0..if block == number { times } else { 1 }).for_each(|_| out.extend(bytes));
        at += bytes.len();
    }
    out
}

#[test]
fn missing_and_repeated_blocks_are_noticed() {
    let (dump, into) = (dumped(&small()), memory());
    assert_eq!(with_block(&dump, 0, 1), dump);
    for number in 0..5 {
        for times in [0, 2] {
            let message = refused(&into, &with_block(&dump, number, times));
            assert!(message.contains("blocks are missing, or in another order"), "{number} {times}: {message}");
        }
    }
}

#[test]
fn another_version_is_named() {
    let mut dump = dumped(&small());
    dump[8] = 7;
    let sum = crc32c(&dump[..12]);
    dump[12..16].copy_from_slice(&sum.to_le_bytes());
    let message = refused(&memory(), &dump);
    assert!(message.contains("has format version 7; this program reads versions 1 to 1"), "{message}");
    let message = refused(&memory(), b"id,name\n1,Ada\n");
    assert!(message.contains("this is no dump of a Highwater database"), "{message}");
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// The promise: what version 1 of the format wrote is read for ever. The file stays as it
/// is; so does what `filled` makes.
#[test]
fn the_first_format_is_read() {
    let db = memory();
    db.load(&include_bytes!("dump-format-1.bin")[..]).unwrap();
    assert_eq!(contents(&db), contents(&filled()));
}

/// A stream that calls back before a byte.
struct At<S, F> {
    stream: S,
    bytes: usize,
    at: usize,
    call: Option<F>,
}

impl<S, F: FnOnce()> At<S, F> {
    fn pass(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= self.at
            && let Some(call) = self.call.take()
        {
            call();
        }
    }
}

impl<S: Write, F: FnOnce()> Write for At<S, F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pass(bytes.len());
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl<S: Read, F: FnOnce()> Read for At<S, F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stream.read(bytes)?;
        self.pass(read);
        Ok(read)
    }
}

#[test]
fn a_dump_is_one_snapshot_and_keeps_its_tables() {
    let db = small();
    let before = contents(&db);
    let change = || {
        let table = db.table("b").unwrap();
        db.transact(|txn| txn.insert(&table, &values![9u8, "late"]).map(drop)).unwrap();
        for refused in [db.drop_table("b"), db.alter_table("b", &[TableChange::drop_column("x")]).map(drop)] {
            assert!(!matches!(refused, Ok(())), "{refused:?}");
        }
    };
    let mut dump = Vec::new();
    db.dump(At { stream: &mut dump, bytes: 0, at: 1, call: Some(change) }).unwrap();
    let copy = memory();
    copy.load(&dump[..]).unwrap();
    assert_eq!(contents(&copy), before);
}

#[test]
fn a_crash_in_a_load_leaves_no_table_in_part() {
    let dump = dumped(&filled());
    for seed in 0..12 {
        let set = StorageSet::memory();
        let db = open(&set);
        let mut after = None;
        let at = dump.len() * seed as usize / 11;
        let cut = || after = Some(set.cut(seed));
        db.load(At { stream: &dump[..], bytes: 0, at, call: Some(cut) }).unwrap();
        let db = Database::open_storage(after.expect("a cut"), options()).unwrap();
        let names: Vec<String> = db.tables().iter().map(|table| table.name().to_string()).collect();
        assert!(names.iter().all(|name| name.starts_with(UNFINISHED_LOAD)), "{names:?}");
        if let Some(name) = names.first() {
            let message = db.load(&dump[..]).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("cut off by a crash"), "{message}");
        }
        names.iter().for_each(|name| db.drop_table(name).unwrap());
        db.load(&dump[..]).unwrap();
        assert_eq!(contents(&db), contents(&filled()));
    }
}

#[test]
fn what_cannot_be_loaded_is_named_and_nothing_is() {
    let large = Options { page_size: PageSize::Bytes(16384), ..options() };
    let large = memory_with(large);
    let schema = Schema::new().column("k", Type::Text(2000)).primary_key(&["k"]);
    let table = large.create_table("keys", schema).unwrap();
    let long = "k".repeat(1500);
    db_insert(&large, &table, &["a", "b", &long]);
    let dump = dumped(&large);
    assert_eq!(Dump::read(&dump[..]).unwrap().page_bytes(), 16384);
    let into = memory();
    let error = into.load(&dump[..]).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("row 3 of table keys in the dump: ") && error.contains("1501 bytes; in its tree"),
        "{error}"
    );
    assert!(!error.contains(UNFINISHED_LOAD), "{error}");
    assert!(into.tables().is_empty());

    let other = into.create_table("keys", Schema::new().column("n", Type::U8).primary_key(&["n"])).unwrap();
    assert!(matches!(into.load(&dump[..]), Err(Error::TableExists { table }) if table == other.name()));
    assert_eq!(into.tables().len(), 1);
}

fn db_insert(db: &Database, table: &highwater::Table, keys: &[&str]) {
    commit_all(db, keys.iter(), |txn, key| txn.insert(table, &values![*key]));
}

#[test]
fn a_dump_reads_what_was_opened_to_be_read() {
    let set = StorageSet::memory();
    let db = open(&set);
    db.load(&dumped(&small())[..]).unwrap();
    db.close().unwrap();
    let idle = Database::open_storage_idle(set.overlaid().unwrap(), options()).unwrap();
    assert_eq!(dumped(&idle), dumped(&small()));
    assert!(matches!(idle.load(&dumped(&small())[..]), Err(Error::TableExists { .. })));
}
