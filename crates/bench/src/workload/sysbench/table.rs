//! The columns and indexes of sysbench's tables, and the values of a row.
//!
//! Rules
//! 1. The columns of further indexes come last, so that sysbench's columns keep their positions.
//! 2. c is ten groups of eleven digits (119 characters), pad five (59).

use super::Distribution;
use crate::store::{Column, IndexSpec, column};
use crate::workload::random::push_digits;
use fastrand::Rng;
use highwater::{Type, ValueRef};

pub(super) const ID: usize = 0;
pub(super) const K: usize = 1;
pub(super) const C: usize = 2;
const PAD: usize = 3;

/// Maximum number of secondary indexes of a table.
pub const MAX_SECONDARY_INDEXES: usize = 8;
/// Columns of a table with at most one secondary index.
const BASE_COLUMNS: usize = 4;
/// Columns of a table with the most indexes.
const MAX_COLUMNS: usize = BASE_COLUMNS + MAX_SECONDARY_INDEXES - 1;

const COLUMNS: [Column; MAX_COLUMNS] = [
    column("id", Type::I32),
    column("k", Type::I32),
    column("c", Type::Text(120)),
    column("pad", Type::Text(60)),
    column("k2", Type::I32),
    column("k3", Type::I32),
    column("k4", Type::I32),
    column("k5", Type::I32),
    column("k6", Type::I32),
    column("k7", Type::I32),
    column("k8", Type::I32),
];

const INDEXES: [IndexSpec; MAX_SECONDARY_INDEXES] = [
    IndexSpec { name: "k", columns: &["k"] },
    IndexSpec { name: "k2", columns: &["k2"] },
    IndexSpec { name: "k3", columns: &["k3"] },
    IndexSpec { name: "k4", columns: &["k4"] },
    IndexSpec { name: "k5", columns: &["k5"] },
    IndexSpec { name: "k6", columns: &["k6"] },
    IndexSpec { name: "k7", columns: &["k7"] },
    IndexSpec { name: "k8", columns: &["k8"] },
];

const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;

/// The columns of a table with this many secondary indexes.
pub(super) fn columns(secondary_indexes: usize) -> &'static [Column] {
    &COLUMNS[..BASE_COLUMNS + secondary_indexes.clamp(1, MAX_SECONDARY_INDEXES) - 1]
}

pub(super) fn indexes(secondary_indexes: usize) -> &'static [IndexSpec] {
    &INDEXES[..secondary_indexes.min(MAX_SECONDARY_INDEXES)]
}

/// Position of the column of an index.
pub(super) fn indexed_column(index: usize) -> usize {
    if index == 0 { K } else { BASE_COLUMNS + index - 1 }
}

/// The values of a row, in reused buffers.
#[derive(Debug)]
pub(super) struct Strings {
    pub(super) rng: Rng,
    pub(super) c: String,
    pub(super) pad: String,
    /// Keys at the positions of their columns; the positions of other columns are not used.
    keys: [u64; MAX_COLUMNS],
}

impl Strings {
    pub(super) fn new(rng: Rng) -> Strings {
        Strings { rng, c: String::with_capacity(120), pad: String::with_capacity(60), keys: [0; MAX_COLUMNS] }
    }

    /// Draws the keys of a table with this many columns.
    pub(super) fn next_keys(&mut self, keys: &Distribution, columns: usize) {
        for column in std::iter::once(K).chain(BASE_COLUMNS..columns) {
            self.keys[column] = keys.next(&mut self.rng);
        }
    }

    pub(super) fn next_c(&mut self) {
        groups(&mut self.rng, &mut self.c, C_GROUPS);
    }

    pub(super) fn next_row(&mut self) {
        self.next_c();
        groups(&mut self.rng, &mut self.pad, PAD_GROUPS);
    }

    /// The row, with every column that a table can have.
    pub(super) fn row<'r>(&'r self, id: ValueRef<'r>) -> [ValueRef<'r>; MAX_COLUMNS] {
        std::array::from_fn(|column| match column {
            ID => id,
            C => self.c.as_str().into(),
            PAD => self.pad.as_str().into(),
            _ => self.keys[column].into(),
        })
    }
}

fn groups(rng: &mut Rng, out: &mut String, groups: usize) {
    out.clear();
    for group in 0..groups {
        if group > 0 {
            out.push('-');
        }
        push_digits(rng, out, 11);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::rng;

    #[test]
    fn templates_are_groups_of_digits() {
        let mut strings = Strings::new(rng(1, 1));
        strings.next_row();
        assert_eq!((strings.c.len(), strings.pad.len()), (119, 59));
        for text in [&strings.c, &strings.pad] {
            assert!(text.split('-').all(|g| g.len() == 11 && g.bytes().all(|b| b.is_ascii_digit())), "{text}");
        }
    }

    #[test]
    fn an_index_is_on_the_column_of_its_name() {
        for secondary_indexes in 1..=MAX_SECONDARY_INDEXES {
            let (columns, indexes) = (columns(secondary_indexes), indexes(secondary_indexes));
            assert_eq!((columns.len(), indexes.len()), (3 + secondary_indexes, secondary_indexes));
            for (n, index) in indexes.iter().enumerate() {
                assert_eq!((columns[indexed_column(n)].name, index.columns), (index.name, &[index.name][..]));
            }
        }
        assert_eq!((columns(0).len(), indexes(0).len()), (BASE_COLUMNS, 0));
    }
}
