//! Closing and opening again: merged or not, in every mode.

use super::*;
use crate::config::{FlushLog, MergeAtClose};

const ALL: [ChangeBuffering; 3] = [ChangeBuffering::Off, ChangeBuffering::Disk, ChangeBuffering::Memory];

#[test]
fn what_is_pending_at_a_close_is_there_at_the_next_opening() {
    let mut recovered_bytes = 0;
    for (seed, mode) in (0..).zip(MODES) {
        for next in ALL {
            for merge in [MergeAtClose::Off, MergeAtClose::On] {
                let mut rng = Rng::with_seed(40 + seed);
                let options = Options { change_buffer_merge_at_close: merge, ..options_of(mode) };
                let (db, mut rows) = filled(options, 12_000, &mut rng);
                let table = db.table("t").unwrap();
                (0..30).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
                let storage = db.storage().clone();
                db.close().unwrap();
                // A close is as durable as a commit.
                let storage = storage.cut(seed);
                let db = Database::open_storage(storage, options_of(next)).unwrap();
                let note = format!("{mode:?}, merged {merge:?}, opened with {next:?}");
                if mode == ChangeBuffering::Memory && merge == MergeAtClose::On {
                    assert_eq!(db.stats().recovery_redo_bytes, 0, "{note}");
                } else if mode == ChangeBuffering::Memory {
                    recovered_bytes += db.stats().recovery_redo_bytes;
                }
                assert_same(&db, &rows, &note);
                let table = db.table("t").unwrap();
                (0..30).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
                assert_same(&db, &rows, &note);
            }
        }
    }
    assert!(recovered_bytes > 0, "nothing was pending at any close");
}

/// Commits that need not be durable are after a close, with what is pending for them.
#[test]
fn a_close_makes_pending_changes_durable() {
    for mode in MODES {
        let mut rng = Rng::with_seed(43);
        let change_buffer_merge_at_close = MergeAtClose::Off;
        let options = Options {
            flush_log_at_trx_commit: FlushLog::EverySecond,
            change_buffer_merge_at_close,
            ..options_of(mode)
        };
        let (db, mut rows) = filled(options.clone(), 12_000, &mut rng);
        let table = db.table("t").unwrap();
        (0..50).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        let storage = db.storage().clone();
        db.close().unwrap();
        let db = Database::open_storage(storage.cut(1), options).unwrap();
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}

/// A database that is opened to be read only shows what is pending, and writes none of it.
#[test]
fn reading_only_shows_what_is_pending() {
    for mode in MODES {
        let mut rng = Rng::with_seed(44);
        let options = Options { change_buffer_merge_at_close: MergeAtClose::Off, ..options_of(mode) };
        let (db, mut rows) = filled(options, 12_000, &mut rng);
        let table = db.table("t").unwrap();
        (0..30).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        let storage = db.storage().clone();
        db.close().unwrap();
        let images = || storage.memory_devices().unwrap().each_ref().map(|device| device.image());
        let before = images();
        let db = Database::open_storage_idle(storage.overlaid().unwrap(), options_of(mode)).unwrap();
        assert_eq!(in_order_of(&db, &db.table("t").unwrap(), "by_a").len(), rows.len());
        db.close().unwrap();
        assert!(images() == before, "{mode:?}");
    }
}
