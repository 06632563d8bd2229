//! Cases of damage that leave bytes well-formed: at the wrong place, or of an older time.

use super::damage::Damage;
use super::database::{File, Small};
use super::places::{BLOCK, ByteRole, Places};
use super::sweep::is_blank;
use highwater_bench::Result;

/// Header blocks of each file, whose cases are in every part.
const HEADER_BLOCKS: u64 = 2;

/// A case of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name, for tables.
    pub what: String,
    /// The damage.
    pub damages: Vec<Damage>,
    /// The role of the damaged byte, if it is one byte.
    pub(super) place: Option<ByteRole>,
    /// Whether wrong rows are allowed if the check finds something: an old version of a page has a right checksum.
    pub(super) may_be_seen_by_check_only: bool,
}

impl Case {
    /// Damage of a byte with this role.
    pub fn of_byte(what: &str, damages: Vec<Damage>, place: ByteRole) -> Case {
        Case { what: what.to_string(), damages, place: Some(place), may_be_seen_by_check_only: false }
    }

    /// Whether it belongs to the part `number`, from 0, of `parts`, as its first damaged block determines. The first
    /// blocks of each file belong to every part.
    pub fn is_of_part(&self, number: u64, parts: u64) -> bool {
        let block = self.damages.first().map_or(0, |damage| damage.offset / BLOCK);
        block < HEADER_BLOCKS || block % parts == number
    }
}

/// Kinds of damage that leave every checksum right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two blocks of a file have changed places.
    Swapped,
    /// A block was written to the place of another one.
    Misdirected,
    /// A block has its contents at an earlier close: the device lost a write.
    Stale,
    /// A whole file has its contents at an earlier close.
    OlderFile,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Swapped, Kind::Misdirected, Kind::Stale, Kind::OlderFile];

    fn name(self) -> &'static str {
        match self {
            Kind::Swapped => "swapped blocks",
            Kind::Misdirected => "misdirected block",
            Kind::Stale => "lost write",
            Kind::OlderFile => "older file",
        }
    }
}

/// All cases of a kind; of pairs of blocks those whose distance is a multiple of `every`, or one.
///
/// # Errors
/// The engine's, of the files as they are.
pub fn cases(small: &Small, kind: Kind, every: usize) -> Result<Vec<Case>> {
    let places = Places::of(small)?;
    let mut cases = Vec::new();
    for file in File::ALL {
        let (new, old) = (&small.files[file as usize], &small.older[file as usize]);
        let what = format!("{}: {}", file.name(), kind.name());
        let mut add = |damages| {
            let may_be_seen_by_check_only = kind == Kind::Stale;
            cases.push(Case { what: what.clone(), damages, place: None, may_be_seen_by_check_only });
        };
        let put = |offset: usize, bytes: &[u8]| Damage { file, offset: offset as u64, bytes: bytes.to_vec() };
        let block_bytes = BLOCK as usize;
        match kind {
            Kind::OlderFile if old != new => add(vec![Damage { file, offset: 0, bytes: resized(old, new.len()) }]),
            Kind::OlderFile => {}
            Kind::Stale => {
                let pairs = old.chunks_exact(block_bytes).zip(new.chunks_exact(block_bytes)).enumerate();
                pairs
                    .filter(|(_, (old, new))| old != new)
                    .for_each(|(n, (old, _))| add(vec![put(n * block_bytes, old)]));
            }
            Kind::Swapped | Kind::Misdirected => {
                let is_used = |n: &usize| {
                    let first = (*n * block_bytes) as u64;
                    !is_blank(&new[*n * block_bytes..][..block_bytes])
                        && places.place(file, first + 100) != ByteRole::Unused
                };
                let used: Vec<usize> = (0..new.len() / block_bytes).filter(is_used).collect();
                let block = |n: usize| &new[n * block_bytes..][..block_bytes];
                for (i, &a) in used.iter().enumerate() {
                    for (j, &b) in used.iter().enumerate().skip(i + 1) {
                        if j - i != 1 && !(i * 7 + j * 13).is_multiple_of(every) || block(a) == block(b) {
                            continue;
                        }
                        let there = put(b * block_bytes, block(a));
                        let back = put(a * block_bytes, block(b));
                        match kind {
                            Kind::Swapped => add(vec![there, back]),
                            _ => add(vec![if (i + j) % 2 == 0 { there } else { back }]),
                        }
                    }
                }
            }
        }
    }
    Ok(cases)
}

/// An older file, extended by zeros to the present length.
fn resized(old: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = old.to_vec();
    bytes.resize(len, 0);
    bytes
}
