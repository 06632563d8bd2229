//! Backups concurrent with transactions, schema changes, growth and power cuts, with real threads.

use crate::backup::{back_up, restored};
use crate::bank::{Bank, between, check_bank};
use crate::support::{options, sound};
use highwater::config::{ChangeBuffering, PageStoreKind};
use highwater::{BackupOptions, Database, Options};
use highwater_storage::StorageSet;
use std::ops::ControlFlow::Continue;
use std::path::PathBuf;

pub(crate) fn variants() -> Vec<Options> {
    let small = Options {
        buffer_pool_size: 1 << 20,
        segment_size: 256 << 10,
        segment_fill_pct: 90,
        lock_wait_timeout_ms: 5000,
        ..options()
    };
    [
        (PageStoreKind::InPlace, ChangeBuffering::Memory),
        (PageStoreKind::OutOfPlace, ChangeBuffering::Memory),
        (PageStoreKind::InPlace, ChangeBuffering::Disk),
    ]
    .map(|(page_store, change_buffering)| Options { page_store, change_buffering, ..small.clone() })
    .to_vec()
}

/// The log is a ring of 4 MiB that goes round several times during each backup.
#[test]
fn a_backup_with_transactions_and_schema_changes_is_of_one_moment() {
    for options in variants() {
        let folder = tempfile::tempdir().unwrap();
        let bank = Bank::new(&StorageSet::memory(), options.clone());
        let slow = BackupOptions { max_bytes_per_s: 16 << 20, ..BackupOptions::default() };
        let (mut chain, mut bounds): (Vec<PathBuf>, _) = (Vec::new(), Vec::new());
        bank.during(|| {
            for link in 0..3 {
                bank.wait_for_growth(200);
                let dest = folder.path().join(format!("link-{link}"));
                let how = BackupOptions { base: chain.last().cloned(), ..slow.clone() };
                let before = bank.acknowledged();
                bank.db.backup(&dest, &how, &mut |_| Continue(())).unwrap();
                bounds.push((before, bank.acknowledged()));
                chain.push(dest);
            }
        });
        for (links, (least, max)) in bounds.iter().enumerate() {
            let copy = folder.path().join(format!("copy-{links}"));
            check_bank(&restored(&chain[..=links], &copy, &options).unwrap(), &between(least, max));
        }
        sound(&bank.db);
    }
}

#[test]
fn power_cuts_of_the_source_during_a_backup_lose_nothing() {
    for (seed, options) in (0..9).zip(variants().into_iter().cycle()) {
        let (folder, storage) = (tempfile::tempdir().unwrap(), StorageSet::memory());
        let bank = Bank::new(&storage, options.clone());
        let slow = BackupOptions { max_bytes_per_s: 8 << 20, ..BackupOptions::default() };
        let (cut, least) = bank.during(|| {
            bank.wait_for_growth(100);
            let mut cut = None;
            let tell = &mut |progress: highwater::BackupProgress| {
                if cut.is_none() && progress.pages * 3 > progress.total * (seed % 3) {
                    let least = bank.acknowledged();
                    cut = Some((storage.cut(seed), least));
                }
                Continue(())
            };
            bank.db.backup(folder.path().join("full"), &slow, tell).unwrap();
            cut.unwrap()
        });
        let db = Database::open_storage(cut, options.clone()).unwrap();
        check_bank(&db, &between(&least, &bank.acknowledged()));
        // What is recovered is the base of nothing newer than itself, and can be backed up.
        back_up(&db, &folder.path().join("again"), None).unwrap();
    }
}
