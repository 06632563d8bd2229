//! Undo streams whose last page is damaged or an old version: the database opens without it if the undo directory says
//! that all transactions of the stream have ended, which it never says of another stream.

use crate::db::open_parts::OpenParts;
use crate::db::testing::by_id;
use crate::db::{Database, PreparedTxn, WriteTxn};
use crate::error::Result;
use crate::inspect::{PageContents, RawFile, UndoStreamInfo};
use crate::space::ROOT_UNDO;
use crate::testing::small_options;
use crate::types::PageNo;
use crate::undo::record::{TxnState, UndoKind};
use crate::undo::{RECORDS_AT, UndoFields, UndoPlace, read_directories, scan_page, with_record};
use crate::{Type, Xid, values};
use highwater_storage::{Faults, MemoryDevice, StorageSet};
use std::sync::Barrier;

const PAGE_BYTES: usize = 4096;
const TABLES: [&str; 2] = ["one", "two"];
/// Streams of the database that tests begin with.
const STREAMS: u64 = 3;

fn open(storage: &StorageSet) -> Result<Database> {
    Database::open_storage(storage.clone(), small_options())
}

/// A transaction that has put rows with these ids into both tables.
fn writer(db: &Database, ids: std::ops::Range<u64>) -> Result<WriteTxn> {
    let mut txn = db.begin()?;
    for table in TABLES {
        let table = db.table(table)?;
        ids.clone().try_for_each(|id| txn.insert(&table, &values![id, "new"]).map(drop))?;
    }
    Ok(txn)
}

/// The ids of both tables.
fn ids(db: &Database) -> [Vec<u64>; 2] {
    TABLES.map(|table| {
        let mut snapshot = db.snapshot().unwrap();
        let rows = snapshot.scan(&db.table(table).unwrap()).iter().unwrap();
        rows.map(|row| row.unwrap().u64(0)).collect()
    })
}

fn expect_ids(db: &Database, expected: std::ops::Range<u64>) {
    let expected: Vec<u64> = expected.collect();
    assert_eq!(ids(db), [expected.clone(), expected]);
}

/// A database with three streams and with rows 0 to 29, of which each stream has ten.
fn with_streams(storage: &StorageSet) -> Database {
    let db = open(storage).unwrap();
    for table in TABLES {
        db.create_table(table, by_id().column("text", Type::Text(20))).unwrap();
    }
    let writers: Vec<_> = (0..STREAMS).map(|n| writer(&db, n * 10..n * 10 + 10).unwrap()).collect();
    writers.into_iter().for_each(|writer| writer.commit().unwrap());
    db
}

/// Makes everything durable, with nothing for recovery to do, and forgets page copies.
fn flushed(db: &Database, storage: &StorageSet) -> StorageSet {
    let ctx = db.context();
    ctx.pool.flush_all().unwrap();
    let end = crate::pool::cleaner::checkpoint_target(&ctx.pool, &ctx.log);
    ctx.log.flush_to(ctx.log.end_lsn()).unwrap();
    ctx.log.checkpoint(end).unwrap();
    at_rest(storage)
}

/// A copy, without copies of pages.
fn at_rest(storage: &StorageSet) -> StorageSet {
    let copy = storage.cut(0);
    copy.memory_devices().unwrap()[2].damage(|bytes| bytes.fill(0));
    copy
}

fn data(storage: &StorageSet) -> &MemoryDevice {
    &storage.memory_devices().unwrap()[0]
}

/// The page of the directory, and the streams, as they are on disk.
fn directory(storage: &StorageSet) -> (PageNo, Vec<UndoStreamInfo>) {
    let file = RawFile::open(data(storage)).unwrap();
    let PageContents::FileHeader(roots) = file.look_at(PageNo(0)).unwrap().contents else { panic!("no roots") };
    let page = roots[ROOT_UNDO];
    let PageContents::UndoDirectory { streams, .. } = file.look_at(page).unwrap().contents else {
        panic!("no directory")
    };
    (page, streams)
}

fn with_damage(storage: &StorageSet, page: PageNo) -> StorageSet {
    let copy = at_rest(storage);
    data(&copy).damage(|bytes| bytes[page.0 as usize * PAGE_BYTES + 70] ^= 1);
    copy
}

/// A copy on which a page is as in `other`.
fn with_page_of(storage: &StorageSet, other: &StorageSet, page: PageNo) -> StorageSet {
    let (copy, image) = (at_rest(storage), data(other).image());
    let range = page.0 as usize * PAGE_BYTES..(page.0 as usize + 1) * PAGE_BYTES;
    data(&copy).damage(|bytes| bytes[range.clone()].copy_from_slice(&image[range]));
    copy
}

fn purged(db: &Database) {
    let started = std::time::Instant::now();
    while db.purge_state().history_list_length > 0 {
        assert!(started.elapsed().as_secs() < 120, "{:?}", db.purge_state());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Opens it, uses it, cuts the power, opens it again and closes it; twice.
fn use_without(storage: StorageSet, page: PageNo, rows: u64) {
    let (mut storage, mut rows) = (storage, rows);
    for cut in 0..2 {
        let db = open(&storage).unwrap();
        expect_ids(&db, 0..rows);
        let state = db.purge_state();
        let is_named = |text: &String| text.contains(&format!("page {page} "));
        assert!(state.skipped > 0 && state.damage.iter().any(is_named), "page {page}: {state:?}");
        let writers: Vec<_> = (0..STREAMS + 1).map(|n| writer(&db, rows + n..rows + n + 1).unwrap()).collect();
        writers.into_iter().for_each(|writer| writer.commit().unwrap());
        rows += STREAMS + 1;
        let open_one = writer(&db, rows..rows + 5).unwrap();
        db.context().log.flush_to(db.context().log.end_lsn()).unwrap();
        let after = storage.cut(cut);
        drop(open_one);
        drop(db);
        let db = open(&after).unwrap();
        expect_ids(&db, 0..rows);
        purged(&db);
        let findings = db.check().unwrap().findings;
        let named = format!("page {page}:");
        assert!(findings.iter().all(|finding| finding.to_string().contains(&named)), "{findings:?}");
        assert!(!findings.is_empty(), "the check does not name page {page}");
        db.close().unwrap();
        storage = after;
    }
}

fn expect_refused(storage: &StorageSet, page: PageNo, stream: usize) {
    let text = open(storage).map(drop).unwrap_err().to_string();
    for part in [format!("page {page} "), format!("undo stream {stream} "), "check --salvage".to_string()] {
        assert!(text.contains(&part), "no {part:?} in {text}");
    }
}

#[test]
fn after_a_closing_the_last_page_of_a_stream_is_not_needed() {
    let storage = StorageSet::memory();
    with_streams(&storage).close().unwrap();
    let (_, streams) = directory(&storage);
    assert_eq!(streams.len(), STREAMS as usize);
    for UndoStreamInfo { last, ended_at, .. } in streams {
        assert!(ended_at.is_some());
        use_without(with_damage(&storage, last), last, STREAMS * 10);
    }
}

/// Streams that were not bound after the last closing keep what it said of them; of the others nothing is known.
#[test]
fn after_a_crash_the_last_pages_of_used_streams_are_needed() {
    let storage = StorageSet::memory();
    with_streams(&storage).close().unwrap();
    let db = open(&storage).unwrap();
    writer(&db, 30..31).unwrap().commit().unwrap();
    let crashed = flushed(&db, &storage);
    drop(db);
    let (_, streams) = directory(&crashed);
    assert_eq!(streams.iter().filter(|stream| stream.ended_at.is_none()).count(), 1);
    for (number, UndoStreamInfo { last, ended_at, .. }) in streams.iter().enumerate() {
        let damaged = with_damage(&crashed, *last);
        match ended_at {
            Some(_) => use_without(damaged, *last, 31),
            None => expect_refused(&damaged, *last, number),
        }
    }
}

/// A prepared transaction stays in its stream, and one that is still open at a closing is rolled back by the next
/// opening.
#[test]
fn a_stream_with_a_transaction_is_never_taken_for_ended() {
    let storage = StorageSet::memory();
    let db = with_streams(&storage);
    let name = Xid::new(1, b"order-17", b"").unwrap();
    let prepared: PreparedTxn = writer(&db, 100..105).unwrap().prepare(name).unwrap().unwrap();
    let open_one = writer(&db, 200..205).unwrap();
    db.close().unwrap();
    drop((prepared, open_one));
    let (_, streams) = directory(&storage);
    assert_eq!(streams.iter().filter(|stream| stream.ended_at.is_none()).count(), 2);
    for (number, UndoStreamInfo { last, ended_at, .. }) in streams.iter().enumerate() {
        let damaged = with_damage(&storage, *last);
        if ended_at.is_none() {
            expect_refused(&damaged, *last, number);
            continue;
        }
        let db = open(&damaged).unwrap();
        assert_eq!(db.prepared().len(), 1);
        expect_ids(&db, 0..30);
        assert!(db.finish_prepared(&db.prepared()[0].xid, true).is_ok());
        assert_eq!(ids(&db)[0], (0..30).chain(100..105).collect::<Vec<_>>());
    }
}

/// A last page that lost its newest write is found by where its records end, and costs as little.
#[test]
fn an_old_version_of_a_last_page_is_skipped() {
    let storage = StorageSet::memory();
    let db = with_streams(&storage);
    let before = flushed(&db, &storage);
    writer(&db, 30..40).unwrap().commit().unwrap();
    db.close().unwrap();
    let ([_, was], [_, is]) = ([0, 1].map(|_| directory(&before).1), [0, 1].map(|_| directory(&storage).1));
    assert!(was.iter().zip(&is).all(|(was, is)| was.last == is.last));
    let old = |stream: &&UndoStreamInfo| {
        let at = stream.last.0 as usize * PAGE_BYTES..(stream.last.0 as usize + 1) * PAGE_BYTES;
        data(&before).image()[at.clone()] != data(&storage).image()[at]
    };
    let last = is.iter().find(old).expect("one of the streams has more records").last;
    use_without(with_page_of(&storage, &before, last), last, 40);
}

/// An old version of the directory says of a stream with a transaction that all have ended: it is not believed.
#[test]
fn an_old_version_of_the_directory_is_refused() {
    let storage = StorageSet::memory();
    with_streams(&storage).close().unwrap();
    let closed = at_rest(&storage);
    let db = open(&storage).unwrap();
    let open_one = writer(&db, 30..40).unwrap();
    let crashed = flushed(&db, &storage);
    drop((open_one, db));
    let (page, streams) = directory(&crashed);
    let number = streams.iter().position(|stream| stream.ended_at.is_none()).expect("a stream is bound");
    expect_refused(&with_page_of(&crashed, &closed, page), streams[number].last, number);
    expect_ids(&open(&crashed).unwrap(), 0..30);
}

/// Opens, binds a stream that has a note, and closes while a transaction is active.
fn live(storage: StorageSet) -> Result<()> {
    let db = open(&storage)?;
    let open_one = writer(&db, 30..32)?;
    db.context().log.flush_to(db.context().log.end_lsn())?;
    writer(&db, 40..41)?.commit()?;
    let closed = db.close();
    drop(open_one);
    closed
}

/// What recovery makes of the files: no stream that is said to have ended has a transaction that has not.
fn expect_right_notes(storage: StorageSet, what: &str) {
    let parts = OpenParts::open(storage, small_options()).unwrap();
    let (entries, ..) = read_directories(&parts.ctx, &parts.space).unwrap();
    for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.ended_at != 0) {
        let fields = UndoFields::read(&parts.ctx.pool.fix_s(entry.last).unwrap(), entry.last).unwrap();
        let (mut header, start) = (fields.header, UndoPlace { page: entry.last, offset: RECORDS_AT });
        let (end, _) = scan_page(&parts.ctx, start, |offset, record, _| {
            header = if record.kind == UndoKind::Header { Some(UndoPlace { offset, ..start }) } else { header };
            Ok(true)
        })
        .unwrap();
        assert_eq!(end, entry.ended_at, "{what}: stream {number}");
        if let Some(header) = header {
            let (_, state, _) = with_record(&parts.ctx, header, |record| record.header()).unwrap();
            let has_ended = matches!(state, TxnState::Committed | TxnState::RolledBack);
            assert!(has_ended, "{what}: stream {number} has a transaction that is {state:?}");
        }
    }
}

/// The power is cut at every change of the devices from an opening to the closing.
#[test]
fn no_cut_leaves_a_note_on_a_stream_with_a_transaction() {
    let base = StorageSet::memory();
    with_streams(&base).close().unwrap();
    for step in 0.. {
        let set = at_rest(&base);
        let faults = Faults::new();
        faults.power_off_after(step);
        let whole = live(set.map(|device| faults.wrap(device))).is_ok() && !faults.is_power_off();
        for seed in 0..3 {
            let after = set.cut(step * 3 + seed);
            let what = format!("step {step}, seed {seed}");
            expect_right_notes(after.cut(seed), &what);
            let db = open(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
            let [one, two] = ids(&db);
            assert!(one == two && one[..30].iter().copied().eq(0..30), "{what}: {one:?}");
            assert!(one.len() == 30 || one[30..] == [40], "{what}: {one:?}");
        }
        if whole {
            break;
        }
    }
}

/// Both need the directory's mutex and the latch of its page.
#[test]
fn streams_with_notes_are_bound_while_new_ones_are_made() {
    const WRITERS: u64 = 12;
    for _ in 0..20 {
        let storage = StorageSet::memory();
        with_streams(&storage).close().unwrap();
        let db = open(&storage).unwrap();
        let all_write = Barrier::new(WRITERS as usize);
        std::thread::scope(|scope| {
            for n in 0..WRITERS {
                let (db, all_write) = (&db, &all_write);
                scope.spawn(move || {
                    all_write.wait();
                    let txn = writer(db, 100 + n..101 + n).unwrap();
                    all_write.wait();
                    txn.commit().unwrap();
                });
            }
        });
        assert_eq!(ids(&db)[0].len() as u64, STREAMS * 10 + WRITERS);
    }
}
