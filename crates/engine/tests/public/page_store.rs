//! A database whose pages are out of place, through the public API.

use crate::support::{check_indexes, options};
use crate::testing::{by_id, commit_all};
use highwater::config::{FlushMethod, PageCompression, PageStoreKind};
use highwater::{Database, Error, Options, Table, Type, values};
use highwater_storage::{Faults, StorageSet};

const ROWS: u64 = 4000;

fn out_of_place(compression: PageCompression) -> Options {
    Options {
        page_store: PageStoreKind::OutOfPlace,
        page_compression: compression,
        segment_size: 256 << 10,
        segment_fill_pct: 90,
        buffer_pool_size: 1 << 20,
        ..options()
    }
}

fn orders(db: &Database) -> Table {
    let schema =
        by_id().column("customer", Type::U64).column("note", Type::Text(600)).index("by_customer", &["customer"]);
    db.create_table("orders", schema).unwrap()
}

/// Random words: about half of a page is gained by compression.
fn note(random: &mut fastrand::Rng) -> String {
    (0..random.usize(10..60)).map(|_| ["river ", "stone ", "x", "flood ", "17 "][random.usize(..5)]).collect()
}

fn fill(db: &Database, table: &Table, random: &mut fastrand::Rng) {
    for start in (0..ROWS).step_by(100) {
        commit_all(db, start..start + 100, |txn, id| {
            txn.insert(table, &values![id, random.u64(..ROWS), note(random).as_str()])
        });
    }
}

fn change(db: &Database, table: &Table, random: &mut fastrand::Rng, transactions: u32) -> highwater::Result<()> {
    for _ in 0..transactions {
        let mut txn = db.begin()?;
        for _ in 0..20 {
            let (id, customer, note) = (random.u64(..ROWS), random.u64(..ROWS), note(random));
            txn.update(table, &values![id], &[(1, customer.into()), (2, note.as_str().into())])?;
        }
        txn.commit()?;
    }
    Ok(())
}

fn check(db: &Database, when: &str) {
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{when}: {:?}", report.findings.first());
}

#[test]
fn segments_are_used_again_and_nothing_is_lost() {
    for compression in [PageCompression::Off, PageCompression::Lz4, PageCompression::Zstd] {
        let (storage, mut random) = (StorageSet::memory(), fastrand::Rng::with_seed(7));
        let db = Database::open_storage(storage.clone(), out_of_place(compression)).unwrap();
        let table = orders(&db);
        fill(&db, &table, &mut random);
        // How often a page is flushed depends on the threads, and so does how soon segments have to be cleaned.
        for _ in 0..60 {
            change(&db, &table, &mut random, 300).unwrap();
            if db.stats().store_segments_cleaned > 1 {
                break;
            }
        }
        let stats = db.stats();
        assert!(stats.store_segments_cleaned > 1, "{compression:?}: {} segments cleaned", stats.store_segments_cleaned);
        assert_eq!((stats.bytes_written_doublewrite, stats.doublewrite_syncs), (0, 0));
        let is_smaller = stats.store_compressed_bytes_out * 10 < stats.store_compressed_bytes_in * 8;
        assert_eq!(is_smaller, compression != PageCompression::Off);
        check(&db, "before it is closed");
        db.close().unwrap();
        let db = Database::open_storage(
            storage,
            Options { page_store: PageStoreKind::InPlace, ..out_of_place(compression) },
        );
        let db = db.unwrap();
        assert_eq!(db.options().page_store, PageStoreKind::OutOfPlace, "the kind is fixed");
        check(&db, "after opening again");
        check_indexes(&db, &db.table("orders").unwrap());
    }
}

#[test]
fn the_room_of_a_dropped_table_is_used_again() {
    let (storage, mut random) = (StorageSet::memory(), fastrand::Rng::with_seed(8));
    let mut max = 0;
    for round in 0..6 {
        let db = Database::open_storage(storage.clone(), out_of_place(PageCompression::Off)).unwrap();
        let table = orders(&db);
        fill(&db, &table, &mut random);
        drop(table);
        let len = storage.data.len_bytes().unwrap();
        if round == 1 {
            max = len;
        }
        assert!(round < 2 || len <= max + max / 4, "round {round}: {len} bytes, {max} after the second");
        db.drop_table("orders").unwrap();
        check(&db, "after the drop");
        db.close().unwrap();
    }
}

/// The disk is small, so cuts hit batches, cleaning and recovery alike.
#[test]
fn power_cuts_lose_nothing() {
    for (seed, compression) in (0..12).zip(PageCompression::ALL.into_iter().cycle()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut storage = StorageSet::memory();
        let db = Database::open_storage(storage.clone(), out_of_place(compression)).unwrap();
        fill(&db, &orders(&db), &mut random);
        db.close().unwrap();
        for cut in 0..4 {
            let faults = Faults::new();
            let wrapped = storage.map(|device| faults.wrap(device));
            if let Ok(db) = Database::open_storage(wrapped, out_of_place(compression)) {
                faults.power_off_after(random.u64(..400));
                let table = db.table("orders").unwrap();
                let _ = change(&db, &table, &mut random, 200);
            }
            storage = storage.cut(seed * 10 + cut);
            let db = Database::open_storage(storage.clone(), out_of_place(compression)).unwrap();
            check(&db, &format!("seed {seed}, cut {cut}"));
            check_indexes(&db, &db.table("orders").unwrap());
            db.close().unwrap();
        }
    }
}

#[test]
fn a_folder_keeps_it_and_can_be_read_only() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(9);
    let db = Database::open(dir.path(), out_of_place(PageCompression::Zstd)).unwrap();
    let table = orders(&db);
    fill(&db, &table, &mut random);
    change(&db, &table, &mut random, 50).unwrap();
    db.close().unwrap();
    let before = std::fs::read(dir.path().join("data")).unwrap();
    let db = Database::open_read_only(dir.path(), out_of_place(PageCompression::Off)).unwrap();
    check(&db, "read only");
    check_indexes(&db, &db.table("orders").unwrap());
    db.close().unwrap();
    assert!(std::fs::read(dir.path().join("data")).unwrap() == before, "a file was changed by reading");
}

#[test]
fn options_that_do_not_fit_are_refused_before_anything_is_made() {
    let refused = |options: Options| {
        let storage = StorageSet::memory();
        let error = Database::open_storage(storage.clone(), options).err().expect("refused");
        assert_eq!(storage.data.len_bytes().unwrap(), 0);
        match error {
            Error::BadOption { option, reason } => (option, reason),
            error => panic!("{error}"),
        }
    };
    let (option, reason) = refused(Options { page_compression: PageCompression::Lz4, ..options() });
    assert!(option == "page-compression" && reason.contains("page-store out-of-place"), "{option}: {reason}");
    let no_sync = Options { flush_method: FlushMethod::DirectNoFsync, ..out_of_place(PageCompression::Off) };
    let (option, reason) = refused(no_sync);
    assert!(option == "flush-method" && reason.contains("take O_DIRECT"), "{option}: {reason}");
    let (option, _) = refused(Options { segment_size: 300_000, ..out_of_place(PageCompression::Off) });
    assert_eq!(option, "segment-size");
}
