//! Recreates the files in `bases/`: small databases of every kind, and backups of them.

use highwater::inspect;
use highwater::internals::{BackgroundStep, DeterministicDb, OpenOverrides};
use highwater::{BackupOptions, Database, Options, values};
use highwater_fuzz::bases::{databases, pack, path};
use highwater_storage::{MemoryDevice, StorageSet};
use highwater_torture::corruption::{Left, Small};
// Its symbols are needed when this is built with instruments, as the targets are.
use libfuzzer_sys as _;
use std::error::Error;
use std::ops::ControlFlow::Continue;
use std::path::Path;
use std::sync::Arc;

/// Groups of an input, and bytes of each.
const SEED_GROUPS: usize = 12;
const SEED_BYTES: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    for (n, (store, left)) in databases().enumerate() {
        let small = Small::new(store, left)?;
        let files = small.files.each_ref().map(|file| &file[..]);
        keep("database", n, &files)?;
        seed_of_redo(n, &small)?;
        if left == Left::Closed {
            backups(&small, n / 2)?;
        }
    }
    Ok(())
}

fn keep(kind: &str, n: usize, files: &[&[u8]]) -> Result<(), Box<dyn Error>> {
    let packed = pack(files);
    println!("{kind} {n}: {} bytes of {}", packed.len(), files.iter().map(|file| file.len()).sum::<usize>());
    Ok(std::fs::write(path(kind, n), packed)?)
}

/// An input of the target `redo`: the last groups of the log once more.
fn seed_of_redo(n: usize, small: &Small) -> Result<(), Box<dyn Error>> {
    let redo = MemoryDevice::holding(small.files[1].to_vec());
    let mut payloads = Vec::new();
    inspect::look(&redo)?.each_window(&redo, 1 << 20, |window| {
        payloads.extend(window.groups().map(|(_, payload)| payload.to_vec()));
    })?;
    let mut input = vec![n as u8];
    for payload in payloads.iter().rev().take(SEED_GROUPS).filter(|payload| payload.len() < SEED_BYTES) {
        input.extend((payload.len() as u16).to_le_bytes());
        input.extend(payload);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/redo");
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::write(folder.join(format!("base-{n}")), input)?)
}

/// A full backup with redo of its own, and an incremental one.
fn backups(small: &Small, n: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [database, full, more] = ["database", "full", "more"].map(|name| folder.path().join(name));
    std::fs::create_dir(&database)?;
    for (name, file) in ["data", "redo", "doublewrite"].iter().zip(&small.files) {
        std::fs::write(database.join(name), &file[..])?;
    }
    let set = StorageSet::open(&database, &Default::default())?;
    let options = Options { create_if_missing: false, ..small.options.clone() };
    let db = DeterministicDb::open(set, options, &OpenOverrides::default(), Arc::default())?;
    change(db.database(), 1)?;
    db.database().backup(&full, &BackupOptions::default(), &mut |_| Continue(()))?;
    change(db.database(), 2)?;
    BackgroundStep::ALL.iter().try_for_each(|step| db.step(*step))?;
    let base = Some(full.clone());
    db.database().backup(&more, &BackupOptions { base, ..Default::default() }, &mut |_| Continue(()))?;
    db.close()?;
    let read = |dir: &Path| -> std::io::Result<Vec<Vec<u8>>> {
        ["pages", "redo-groups", "backup.json"].iter().map(|name| std::fs::read(dir.join(name))).collect()
    };
    let files = [read(&full)?, read(&more)?].concat();
    keep("backup", n, &files.iter().map(|file| &file[..]).collect::<Vec<_>>())
}

fn change(db: &Database, version: u64) -> Result<(), Box<dyn Error>> {
    let table = db.table("person")?;
    let mut txn = db.begin()?;
    for id in 0..10 {
        txn.insert(&table, &values![2000 + version * 100 + id, "someone", null, "a note"])?;
    }
    Ok(txn.commit()?)
}
