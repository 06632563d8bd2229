//! The smallest pool, a full buffer, a small log.

use super::*;
use crate::db::testing::by_id;

#[test]
fn the_smallest_pool_buffers_changes() {
    for mode in MODES {
        let mut rng = Rng::with_seed(31);
        let options = Options { page_size: crate::config::PageSize::Bytes(16384), ..options_of(mode) };
        let (db, mut rows) = filled(options, 20_000, &mut rng);
        let table = db.table("t").unwrap();
        (0..150).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        assert!(db.stats().change_buffer_ops_buffered > 1000, "{:?}", db.stats());
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}

/// A buffer of a hundredth of the pool is full all the time: leaves are merged to free space, no thread waits for ever.
#[test]
fn a_full_buffer_makes_room() {
    for mode in MODES {
        let mut rng = Rng::with_seed(32);
        let options = Options { change_buffer_max_size: 1, ..options_of(mode) };
        let limit_bytes = options.buffer_pool_size / 100;
        let (db, mut rows) = filled(options, 12_000, &mut rng);
        let table = db.table("t").unwrap();
        for _ in 0..200 {
            transact(&db, &table, &mut rows, &mut rng);
            let bytes = db.stats().change_buffer_bytes;
            assert!(mode == ChangeBuffering::Disk || bytes <= limit_bytes + 4096, "{bytes} of {limit_bytes}");
        }
        let stats = db.stats();
        assert!(stats.change_buffer_ops_buffered > 500 && stats.change_buffer_merges > 100, "{stats:?}");
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}

/// A log of 4 MiB turns many times while little is pending: it is carried forward, and a power cut loses nothing of it.
#[test]
fn changes_are_carried_forward_in_a_small_log() {
    for seed in 0..3 {
        let mut rng = Rng::with_seed(33 + seed);
        let (db, mut rows) = filled(options(), 12_000, &mut rng);
        let table = db.table("t").unwrap();
        let filler = db.create_table("filler", by_id().column("text", Type::Text(1000))).unwrap();
        let mut turns = 0;
        while db.stats().change_buffer_relogged_ops < 300 {
            transact(&db, &table, &mut rows, &mut rng);
            let mut txn = db.begin().unwrap();
            let text = "y".repeat(900);
            for id in turns * 150..(turns + 1) * 150 {
                txn.insert(&filler, &values![id, text.as_str()]).unwrap();
            }
            txn.commit().unwrap();
            turns += 1;
            assert!(turns < 400, "{:?}", db.stats());
        }
        assert!(db.stats().change_buffer_relogged_bytes > 1000);
        let cut = db.storage().cut(seed);
        drop((table, filler, db));
        let db = Database::open_storage(cut, options()).unwrap();
        assert_same(&db, &rows, &format!("seed {seed}"));
    }
}
