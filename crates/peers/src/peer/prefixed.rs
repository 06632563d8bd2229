//! Trees of an LSM engine in one key space: the key of each begins with the tree's number.
//!
//! Rules
//! 1. One key space has one memtable, so that the memory of many trees is one number. MyRocks keeps its indexes so.
//! 2. Numbers are assigned in order, and kept under the names, in the tree 0.

use highwater_bench::Result;

/// A tree's number, as its keys begin.
pub(crate) type Tree = [u8; 4];

const NAMES: Tree = [0; 4];

/// The key under which the number of a name is kept.
pub(crate) fn name_key(name: &str) -> Vec<u8> {
    [&NAMES[..], name.as_bytes()].concat()
}

/// Number of a tree: the one kept, or the next one, which `put` keeps. `get` finds the value of a key; the empty name
/// has the number that was assigned last.
pub(crate) fn number(
    name: &str,
    get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
    put: impl Fn(&[u8], &[u8]) -> Result<()>,
) -> Result<Tree> {
    let read =
        |name: &str| -> Result<Option<Tree>> { Ok(get(&name_key(name))?.and_then(|kept| Tree::try_from(kept).ok())) };
    if let Some(kept) = read(name)? {
        return Ok(kept);
    }
    let next = (u32::from_be_bytes(read("")?.unwrap_or(NAMES)) + 1).to_be_bytes();
    put(&name_key(""), &next)?;
    put(&name_key(name), &next)?;
    Ok(next)
}

/// A key and the end of a range with their tree in front, in buffers that are used again.
#[derive(Default)]
pub(crate) struct Keys {
    key: Vec<u8>,
    end: Vec<u8>,
}

impl Keys {
    pub(crate) fn key(&mut self, tree: Tree, key: &[u8]) -> &[u8] {
        self.key.clear();
        self.key.extend_from_slice(&tree);
        self.key.extend_from_slice(key);
        &self.key
    }

    /// The bounds of a range of a tree, the second excluded.
    pub(crate) fn range(&mut self, tree: Tree, from: &[u8], to: &[u8]) -> (&[u8], &[u8]) {
        self.end.clear();
        match to.is_empty() {
            true => self.end.extend_from_slice(&(u32::from_be_bytes(tree) + 1).to_be_bytes()),
            false => {
                self.end.extend_from_slice(&tree);
                self.end.extend_from_slice(to);
            }
        }
        self.key(tree, from);
        (&self.key, &self.end)
    }
}

/// A key without its tree.
pub(crate) fn within(key: &[u8]) -> &[u8] {
    key.get(NAMES.len()..).unwrap_or_default()
}
