//! How much of each list a run tries: a slice (`cargo xtask test`) or everything (`cargo xtask soak`).
//!
//! Rules
//! 1. A slice is a function of the commit's hash alone: the same commit tries the same things, another commit others.
//! 2. Lists of tests and of steps are cut into [`MAX_PARTS`] parts, so ten commits try a given part with a probability
//!    of 94 %, and all parts of a list with 78 %. What is drawn at random has other seeds in each commit; of the
//!    mutants, and of the bytes of files that are damaged, a slice has a smaller part: all of them are the matter of a
//!    soak.
//! 3. Tests that go through a long list of cases (every write of a run, every short history) try one part of
//!    [`TEST_PARTS`] in a slice; the variable [`PART`] names it. Without the variable they try all cases.

use std::fmt;
use std::path::Path;
use std::process::Command;

/// Parts of a list, rule 2.
pub(super) const MAX_PARTS: u64 = 4;
/// Parts of a list of cases in a test.
pub(super) const TEST_PARTS: u64 = MAX_PARTS;
/// Environment variable of the tests: `K/N`, the part K (from 0) of N.
pub(super) const PART: &str = "HIGHWATER_TEST_PART";

/// What a run tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The part of each list that this commit's hash selects.
    Slice(u64),
    /// Each list as a whole; the number seeds what is random.
    Everything(u64),
}

impl Extent {
    /// The slice of the commit that is checked out below `root`.
    ///
    /// # Errors
    /// In words: there is no commit.
    pub(super) fn of_commit(root: &Path) -> Result<Extent, String> {
        let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
        let output = output.map_err(|error| format!("git rev-parse HEAD: {error}"))?;
        Extent::of_hash(String::from_utf8_lossy(&output.stdout).trim())
    }

    fn of_hash(hash: &str) -> Result<Extent, String> {
        let digits = hash.get(..16).ok_or_else(|| format!("`{hash}` is not a commit's hash"))?;
        let number = u64::from_str_radix(digits, 16).map_err(|error| format!("`{hash}`: {error}"))?;
        Ok(Extent::Slice(number))
    }

    /// The number of a slice, or of everything.
    pub(super) fn choose(self, slice: u64, everything: u64) -> String {
        match self {
            Extent::Slice(_) => slice.to_string(),
            Extent::Everything(_) => everything.to_string(),
        }
    }

    /// The part, from 0, of a list that is cut into `parts` parts; none for everything. `list` makes the parts of
    /// different lists independent of each other.
    pub(super) fn part(self, list: &str, parts: u64) -> Option<u64> {
        match self {
            Extent::Slice(hash) => Some(mixed(hash, list) % parts),
            Extent::Everything(_) => None,
        }
    }

    /// Those of `items` that are tried: the item n of the list is in the part `n % MAX_PARTS`.
    pub(super) fn of<T>(self, list: &str, items: impl IntoIterator<Item = T>) -> Vec<T> {
        let part = self.part(list, MAX_PARTS);
        let numbered = (0..).zip(items).filter(|(n, _)| part.is_none_or(|part| n % MAX_PARTS == part));
        numbered.map(|(_, item)| item).collect()
    }

    /// A seed for random numbers of the step `list`.
    pub(super) fn seed(self, list: &str) -> String {
        let (Extent::Slice(number) | Extent::Everything(number)) = self;
        (mixed(number, list) >> 32).to_string()
    }

    /// The value of [`PART`].
    pub(super) fn test_part(self) -> Option<String> {
        self.part("tests", TEST_PARTS).map(|part| format!("{part}/{TEST_PARTS}"))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Slice(hash) => write!(formatter, "the slice of commit {hash:016x}"),
            Extent::Everything(_) => formatter.write_str("everything"),
        }
    }
}

/// A hash of both: FNV-1a, then the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(number: u64, list: &str) -> u64 {
    let bytes = list
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut mixed = number ^ bytes;
    for multiplier in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(multiplier);
    }
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_slice_follows_from_the_hash_and_lists_differ() {
        let slice = Extent::of_hash("284c9da0123456789abcdef0123456789abcdef0").unwrap();
        assert_eq!(slice, Extent::Slice(0x284c_9da0_1234_5678));
        assert_eq!((slice.seed("power"), slice.part("tests", 4)), (slice.seed("power"), slice.part("tests", 4)));
        assert_ne!(slice.seed("power"), slice.seed("crash"));
        assert!(Extent::of_hash("").is_err() && Extent::of_hash("not a hash of a commit").is_err());
    }

    #[test]
    fn ten_commits_try_nearly_all_parts() {
        let mut complete = 0;
        for first in 0..1000 {
            let parts = (0..10).filter_map(|n| Extent::Slice(mixed(first * 10 + n, "commit")).part("a list", 4));
            complete += usize::from(parts.fold(0, |seen, part| seen | 1 << part) == 0b1111);
        }
        assert!(complete > 700, "{complete} of 1000");
    }

    #[test]
    fn the_parts_of_a_list_make_up_the_whole() {
        assert_eq!(Extent::Everything(7).of("a list", 0..10), (0..10).collect::<Vec<_>>());
        let mut seen = BTreeMap::new();
        for hash in 0..200_u64 {
            let part = Extent::Slice(mixed(hash, "commit")).of("a list", 0..10);
            assert!((2..=3).contains(&part.len()), "{part:?}");
            seen.insert(part[0], part);
        }
        let mut all: Vec<_> = seen.into_values().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn everything_has_no_part() {
        assert_eq!((Extent::Everything(1).part("tests", 4), Extent::Everything(1).test_part()), (None, None));
        assert_eq!((Extent::Everything(1).choose(2, 3), Extent::Slice(1).choose(2, 3)), ("3".into(), "2".into()));
    }
}
