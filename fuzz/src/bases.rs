//! Small databases and backups that inputs damage: committed, compressed, in `bases/`. `cargo run --bin bases` in this
//! folder recreates them, which is needed when a format changes.

use crate::input::Input;
use highwater::Options;
use highwater::internals::checksum_fixer::ChecksumFixer;
use highwater_storage::StorageSet;
use highwater_torture::corruption::{Files, Left, STORES, Store, damaged, options};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Unit in which places of edits are chosen.
const BLOCK_BYTES: usize = 4096;
/// Edits of an input.
const MAX_EDITS: usize = 32;
/// Length of an edited file at most.
const MAX_BYTES: usize = 16 << 20;

/// Every database: how its pages are kept and how it was left.
pub fn databases() -> impl Iterator<Item = (Store, Left)> {
    STORES.into_iter().flat_map(|store| [(store, Left::Closed), (store, Left::Stopped)])
}

/// File of base number `n` of this kind.
pub fn path(kind: &str, n: usize) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("bases/{kind}-{n}.zst"))
}

/// Files as one: each with its length in front, compressed.
pub fn pack(files: &[&[u8]]) -> Vec<u8> {
    let plain: Vec<u8> =
        files.iter().flat_map(|file| [&(file.len() as u64).to_le_bytes()[..], file].concat()).collect();
    zstd::bulk::compress(&plain, 19).expect("bytes are compressed")
}

/// The files of base number `n` of this kind; none if there is no such base.
pub fn unpack(kind: &str, n: usize) -> Option<Vec<Vec<u8>>> {
    let packed = std::fs::read(path(kind, n)).ok()?;
    let plain = zstd::stream::decode_all(&packed[..]).expect("a base is whole");
    let (mut rest, mut files) = (&plain[..], Vec::new());
    while let Some((len, more)) = rest.split_first_chunk::<8>() {
        let (file, more) = more.split_at(u64::from_le_bytes(*len) as usize);
        files.push(file.to_vec());
        rest = more;
    }
    Some(files)
}

/// A small database.
pub struct Base {
    /// What it is opened with.
    pub options: Options,
    files: Files,
    /// Its checksums.
    pub checksums: ChecksumFixer,
    /// Blocks of each file that are not zeros.
    blocks: [Vec<usize>; 3],
}

/// All of them.
pub fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| {
        let load = |(n, (store, _)): (usize, (Store, Left))| {
            let files = unpack("database", n).expect("the bases are made by `cargo run --bin bases`");
            let [data, redo, copies] = <[Vec<u8>; 3]>::try_from(files).expect("a database has three files");
            let checksums = ChecksumFixer::of([&data, &redo, &copies]).expect("a base is whole");
            let used = |file: &Vec<u8>| -> Vec<usize> {
                let blocks = file.chunks(BLOCK_BYTES).enumerate();
                blocks.filter(|(_, block)| block.iter().any(|byte| *byte != 0)).map(|(number, _)| number).collect()
            };
            let blocks = [used(&data), used(&redo), used(&copies)];
            let options = options(store).expect("the options of a base are right");
            Base { options, checksums, blocks, files: [data, redo, copies].map(Arc::new) }
        };
        databases().enumerate().map(load).collect()
    })
}

impl Base {
    /// Its files (data, redo, doublewrite) as they are.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// A page-sized block of the data file that is not zeros.
    pub fn block(&self, input: &mut Input<'_>) -> Vec<u8> {
        let at = *input.one_of(&self.blocks[0]) * BLOCK_BYTES;
        self.files[0][at..at + BLOCK_BYTES].to_vec()
    }

    /// Its files with the edits of an input, checksums made right.
    pub fn edited(&self, input: &mut Input<'_>) -> Files {
        let mut files: [Option<Vec<u8>>; 3] = [None, None, None];
        let mut edits: [Vec<Range<usize>>; 3] = Default::default();
        for _ in 0..MAX_EDITS {
            if input.is_empty() {
                break;
            }
            let what = input.byte();
            let file = [0, 0, 0, 0, 0, 1, 1, 2][usize::from(what & 7)];
            let bytes = files[file].get_or_insert_with(|| self.files[file].to_vec());
            edits[file].extend(self.edit(file, what >> 3, bytes, input));
        }
        for (file, edits) in edits.iter().enumerate() {
            if let Some(bytes) = &mut files[file] {
                self.checksums.fix(file, bytes, edits);
            }
        }
        let mut number = 0;
        files.map(|bytes| {
            number += 1;
            bytes.map_or_else(|| Arc::clone(&self.files[number - 1]), Arc::new)
        })
    }

    /// One edit; says where.
    fn edit(&self, file: usize, what: u8, bytes: &mut Vec<u8>, input: &mut Input<'_>) -> Option<Range<usize>> {
        if self.blocks[file].is_empty() {
            return None;
        }
        let at = input.one_of(&self.blocks[file]) * BLOCK_BYTES;
        match what {
            0 => {
                // Another length.
                bytes.resize((input.u32() as usize).min(MAX_BYTES), 0);
                None
            }
            1 => {
                // A block is that of another place.
                let from = input.one_of(&self.blocks[file]) * BLOCK_BYTES;
                let block = self.files[file][from..].iter().take(BLOCK_BYTES).copied().collect::<Vec<u8>>();
                overwrite(bytes, at, &block)
            }
            2 => {
                // A number at one of the first places.
                let at = at + usize::from(input.byte());
                overwrite(bytes, at, &input.u32().to_le_bytes())
            }
            _ => {
                let at = at + input.below(BLOCK_BYTES);
                overwrite(bytes, at, input.some(64))
            }
        }
    }
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) -> Option<Range<usize>> {
    let there = bytes.get_mut(at..at + with.len())?;
    there.copy_from_slice(with);
    Some(at..at + with.len())
}

/// Devices that show these files and keep what is written to themselves.
pub fn storage(files: &Files) -> StorageSet {
    damaged(files, &[]).expect("memory tells its length")
}
