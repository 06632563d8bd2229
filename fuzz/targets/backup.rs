//! Verifying and restoring backups whose files were edited and whose checksums are right.

#![no_main]

use highwater::config::FlushMethod;
use highwater::internals::checksum_fixer;
use highwater::{Database, Options, RestoreOptions, Until};
use highwater_fuzz::bases::unpack;
use highwater_fuzz::input::Input;
use highwater_fuzz::judge;
use serde_json::Value;
use std::ops::ControlFlow::Continue;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes of a page of the backups.
const PAGE_BYTES: usize = 4096;
/// Edits of an input.
const MAX: usize = 16;

struct State {
    folder: tempfile::TempDir,
    backups: Vec<Vec<Vec<u8>>>,
}

static STATE: OnceLock<State> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let state = STATE.get_or_init(|| State {
        folder: highwater_fuzz::folder(),
        backups: (0..).map_while(|n| unpack("backup", n)).collect(),
    });
    let mut input = Input::new(data);
    let mut files = input.one_of(&state.backups).clone();
    let (how, to) = (input.byte(), input.byte());
    for _ in 0..MAX {
        if !input.is_empty() {
            edit(&mut files, &mut input);
        }
    }
    (0..2).for_each(|link| fix(&mut files[3 * link..3 * link + 3]));
    let folder = state.folder.path();
    let chain: Vec<PathBuf> = (0..2).map(|link| write(folder, link, &files[3 * link..])).collect();
    let chain = &chain[..1 + usize::from(how & 1)];
    let target = folder.join("restored");
    let _ = std::fs::remove_dir_all(&target);
    let end = manifest(&files[3 * (chain.len() - 1) + 2])["manifest"]["end_lsn"].as_u64().unwrap_or(0);
    let database = Options { flush_method: FlushMethod::Fsync, buffer_pool_size: 1 << 20, ..Options::default() };
    let until = (to > 0).then(|| Until::Lsn(end.wrapping_sub(u64::from(to))));
    let options = RestoreOptions { database: database.clone(), redo: None, until, check: how & 2 != 0 };
    match Database::restore(chain, &target, &options, &mut |_| Continue(())) {
        Ok(_) => restored(&target, database, how & 2 != 0),
        Err(error) => judge::precise(&error),
    }
});

/// A database that was restored opens, and passes its check if the restore checked it.
fn restored(target: &Path, options: Options, is_checked: bool) {
    let db = match Database::open(target, options) {
        Ok(db) => db,
        Err(error) => return judge::precise(&error),
    };
    if is_checked {
        let report = db.check().expect("what was checked can be checked");
        assert!(report.is_sound(), "{:?}", report.findings);
    }
    if let Err(error) = db.close() {
        judge::precise(&error);
    }
}

fn write(folder: &Path, link: usize, files: &[Vec<u8>]) -> PathBuf {
    let dir = folder.join(["full", "more"][link]);
    std::fs::create_dir_all(&dir).expect("a folder in memory is made");
    for (name, bytes) in ["pages", "redo-groups", "backup.json"].iter().zip(files) {
        std::fs::write(dir.join(name), bytes).expect("a file in memory is written");
    }
    dir
}

fn manifest(file: &[u8]) -> Value {
    serde_json::from_slice(file).unwrap_or_default()
}

/// Changes some bytes of a file, or a number of a manifest.
fn edit(files: &mut [Vec<u8>], input: &mut Input<'_>) {
    let what = input.byte();
    let link = 3 * usize::from(what & 1);
    match what >> 1 & 7 {
        0 | 1 => {
            let (field, number) = (input.byte(), input.u64() >> (input.byte() & 63));
            edit_manifest(&mut files[link + 2], field, number);
        }
        2 => {
            let len = files[link + 2].len();
            let (at, bytes) = (input.below(len + 1), input.some(32));
            overwrite(&mut files[link + 2], at, bytes);
        }
        3 => {
            let file = &mut files[link + usize::from(what >> 4 & 1)];
            file.resize(input.u32() as usize % (1 << 20), 0);
        }
        4 => {
            let (at, bytes) = (input.below(files[link + 1].len() + 1), input.some(64));
            overwrite(&mut files[link + 1], at, bytes);
        }
        _ => {
            let pages = files[link].len() / (4 + PAGE_BYTES);
            let (page, at) = (input.below(pages.max(1)), input.below(4 + PAGE_BYTES));
            overwrite(&mut files[link], page * (4 + PAGE_BYTES) + at, input.some(64));
        }
    }
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    let there = bytes.iter_mut().skip(at);
    there.zip(with).for_each(|(there, byte)| *there = *byte);
}

fn edit_manifest(file: &mut Vec<u8>, field: u8, number: u64) {
    let mut sealed = manifest(file);
    let Some(fields) = sealed["manifest"].as_object_mut() else { return };
    let at = usize::from(field) % fields.len().max(1);
    if let Some((_, value)) = fields.iter_mut().nth(at)
        && value.is_u64()
    {
        *value = number.into();
    }
    *file = serde_json::to_vec(&sealed).expect("a manifest has string keys");
}

/// Makes the checksums of a backup right: pages, groups of redo, files, manifest.
fn fix(files: &mut [Vec<u8>]) {
    let [pages, redo, text] = files else { return };
    let mut sealed = manifest(text);
    let number = |name: &str| sealed["manifest"][name].as_u64();
    let (Some(start), Some(generation)) = (number("start_lsn"), number("generation")) else { return };
    for record in pages.chunks_exact_mut(4 + PAGE_BYTES) {
        let (number, page) = record.split_at_mut(4);
        checksum_fixer::stamp_page(page, u32::from_le_bytes(std::array::from_fn(|n| number[n])));
    }
    let mut at = 0;
    while let Some(frame) = redo.get(at..at + 8) {
        let len = u32::from_le_bytes(std::array::from_fn(|n| frame[n])) as usize;
        let Some(payload) = redo.get(at + 8..).and_then(|rest| rest.get(..len)) else { break };
        let frame = checksum_fixer::frame(payload, start.wrapping_add(at as u64), generation);
        redo[at..at + 8].copy_from_slice(&frame);
        at += 8 + len;
    }
    let sums = [pages, redo].map(|file| (file.len(), format!("{:08x}", checksum_fixer::sum(file))));
    for (n, (bytes, sum)) in sums.into_iter().enumerate() {
        let Some(file) = sealed["manifest"]["files"].get_mut(n) else { return };
        (file["bytes"], file["crc32c"]) = (bytes.into(), sum.into());
    }
    let sum = checksum_fixer::sum(sealed["manifest"].to_string().as_bytes());
    sealed["crc32c"] = format!("{sum:08x}").into();
    *text = serde_json::to_vec(&sealed).expect("a manifest has string keys");
}
