//! Every flipped byte is an error, a finding, or dead space.

use super::*;

/// Everything that a reader can read.
fn dump(db: &Database) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for table in db.tables() {
        let mut read = db.snapshot()?;
        for row in read.scan(&table).iter()? {
            out.push(format!("{}: {:?}", table.name(), row?.as_ref().as_bytes()));
        }
        for index in &table.definition().indexes {
            for row in read.scan(&table).index(&index.name).iter()? {
                out.push(format!("{} {}: {:?}", table.name(), index.name, row?.as_ref().as_bytes()));
            }
        }
    }
    Ok(out)
}

/// Flips one byte after the other. The result is an error, a finding, or dead space: then readers get what they
/// got before.
fn sweep(device: usize, step: usize) {
    let storage = closed(150);
    if device == 2 {
        // With its last batch.
        let db = Database::open_storage(storage.clone(), small_options()).unwrap();
        fill(&db, &db.table("empty").unwrap(), 100).unwrap();
        db.close().unwrap();
    }
    let whole = dump(&Database::open_storage_idle(copy(&storage), small_options()).unwrap()).unwrap();
    let len = storage.memory_devices().unwrap()[device].image().len();
    let mut found = [0; 3];
    for (n, at) in (0..len).step_by(step).enumerate() {
        let damaged = copy(&storage);
        damaged.memory_devices().unwrap()[device].damage(|bytes| bytes[at] ^= 1 << (n % 8));
        let outcome = catch_unwind(AssertUnwindSafe(|| -> Result<_> {
            let db = Database::open_storage_idle(damaged.clone(), small_options())?;
            let report = db.check()?;
            Ok((report.is_sound(), dump(&db)))
        }));
        match outcome.unwrap_or_else(|_| panic!("byte {at} of device {device}: a panic")) {
            Err(_) => found[0] += 1,
            Ok((false, _)) => found[1] += 1,
            Ok((true, now)) => {
                assert!(now.is_ok_and(|now| now == whole), "byte {at} of device {device}: not found, but not the same");
                found[2] += 1;
            }
        }
        let _ = inspect::scan(&*damaged.data, &mut |_, _| {});
    }
    assert!(device != 0 || found.iter().all(|&n| n > 0), "errors, findings, dead space: {found:?}");
}

#[test]
fn any_flipped_byte_of_the_data_file_is_found_or_dead_space() {
    sweep(0, 5_003);
}

#[test]
fn any_flipped_byte_of_the_redo_is_found_or_dead_space() {
    sweep(1, 41_011);
}

#[test]
fn any_flipped_byte_of_the_doublewrite_file_is_found_or_dead_space() {
    sweep(2, 7_001);
}
