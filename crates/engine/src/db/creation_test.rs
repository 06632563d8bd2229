//! Creation is done again after a crash, and never over a database that was in use.

use super::*;
use crate::db::open_parts::OpenParts;
use crate::testing::{open, small_options, small_parts};
use highwater_storage::{Device, Faults, MemoryDevice};
use std::sync::Arc;

/// The files of a database that was in use; `stopped` without being closed.
fn used(stopped: bool) -> [Vec<u8>; 3] {
    let mut parts = small_parts();
    parts.space.prepare(&parts.ctx).unwrap();
    let mut mtr = parts.ctx.mtr_with(4096, 1).unwrap();
    parts.space.set_root(&mut mtr, crate::space::ROOT_UNDO, crate::types::PageNo(9));
    mtr.commit();
    parts.ctx.pool.flush_all().unwrap();
    if !stopped {
        parts.close().unwrap();
    }
    parts.storage().memory_devices().unwrap().each_ref().map(MemoryDevice::image)
}

fn set(files: &[Vec<u8>; 3]) -> StorageSet {
    let [data, redo, doublewrite] = files.clone().map(|file| Arc::new(MemoryDevice::holding(file)) as Arc<dyn Device>);
    StorageSet::of_devices(data, redo, doublewrite)
}

fn refusal(files: &[Vec<u8>; 3]) -> Error {
    let set = set(files);
    let error = OpenParts::open(set.clone(), small_options()).map(drop).unwrap_err();
    for (device, file) in [&set.data, &set.redo, &set.doublewrite].into_iter().zip(files) {
        let mut now = vec![0; device.len_bytes().unwrap() as usize];
        device.read_at(0, &mut now).unwrap();
        assert!(now == *file, "{} was changed", device.name());
    }
    error
}

#[test]
fn a_database_without_its_data_is_not_overwritten() {
    for stopped in [false, true] {
        let whole = used(stopped);
        let id = crate::inspect::look(&MemoryDevice::holding(whole[1].clone())).unwrap().headers[0].clone();
        let id = format!("{:016x}", id.unwrap().database_id);
        for data in [vec![], vec![0; whole[0].len()], vec![0; 4096]] {
            let error = refusal(&[data, whole[1].clone(), whole[2].clone()]);
            assert!(matches!(&error, Error::Corrupt(text) if text.contains(&id)), "{error}");
        }
    }
}

#[test]
fn a_doublewrite_file_with_pages_shows_that_there_was_a_database() {
    let whole = used(false);
    assert!(whole[2].iter().any(|byte| *byte != 0), "closing wrote pages through it");
    let error = refusal(&[vec![], vec![], whole[2].clone()]);
    assert!(matches!(&error, Error::Corrupt(_)), "{error}");
}

#[test]
fn something_else_in_the_redo_is_left_alone() {
    for foreign in [vec![7; 100], vec![7; 1 << 20], b"PK\x03\x04".repeat(5000)] {
        let error = refusal(&[vec![], foreign, vec![]]);
        assert!(matches!(error, Error::Incompatible(_)), "{error}");
    }
}

#[test]
fn an_emptied_redo_is_named() {
    let whole = used(false);
    for redo in [vec![], vec![0; whole[1].len()]] {
        let error = refusal(&[whole[0].clone(), redo, whole[2].clone()]);
        assert!(matches!(&error, Error::Incompatible(text) if text.contains("restore a backup")), "{error}");
    }
}

/// It is needed only to repair pages that a crash tore.
#[test]
fn an_emptied_doublewrite_file_is_made_again() {
    for stopped in [false, true] {
        let [data, redo, _] = used(stopped);
        drop(open(set(&[data, redo, vec![]]), small_options()));
    }
}

/// Power cuts at every change that creation makes, with any part of what was not synced kept.
#[test]
fn a_creation_cut_short_can_be_done_again() {
    let options = || Options { log_file_size: 4 << 20, ..small_options() };
    for changes in 0..40 {
        let (storage, faults) = (StorageSet::memory(), Faults::new());
        faults.power_off_after(changes);
        let powered = storage.map(|device| faults.wrap(device));
        let _ = OpenParts::open(powered, options());
        for seed in 0..4 {
            drop(open(storage.cut(seed), options()));
        }
    }
}

/// Power cuts while the device is measured for a new database: what the measurement left does not look like use.
#[test]
fn a_measurement_that_was_cut_short_is_no_trace_of_a_database() {
    use crate::config::FlushMethod;
    for changes in (0..300).step_by(7) {
        let (storage, faults) = (StorageSet::memory(), Faults::new());
        faults.power_off_after(changes);
        let powered = storage.clone().map(|device| faults.wrap(device));
        let _ = crate::db::probe::measure_unused(&*powered.doublewrite, FlushMethod::Direct);
        for seed in 0..2 {
            let left = storage.cut(seed);
            assert!(is_uncreated(&left).unwrap());
            check_never_used(&left).unwrap();
            drop(open(left, small_options()));
        }
    }
}
