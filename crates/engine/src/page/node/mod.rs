//! Nodes: the layout of records in a tree page, and reads of them.
//!
//! ```text
//! 32  count        u16   records
//! 34  heap_start   u16   lowest byte the heap uses; the heap grows down towards the slots
//! 36  garbage      u16   heap bytes that belong to no record
//! 38  prefix_len   u16   bytes every key of the page begins with: what both fences have in common
//! 40  lower_len    u16   lower fence, 0xFFFF = none (no bound)
//! 42  upper_len    u16   upper fence, 0xFFFF = none
//! 44  upper_child  u32   inner page: the child right of the last separator; 0 on a leaf
//! 48  last_insert  u16   highest slot of the latest run of insertions, 0xFFFF = unknown
//! 50  run          u16   insertions of that run, 15 bits; the highest bit: one of them was late (see `run.rs`)
//! 52  skip         u16   suffix bytes before the head, the same in every record
//! 54  slots        10 bytes each, in key order:
//!                  { offset u16, key_len u16, value_len u16, head u32 }
//! ..  free space
//! ..  heap         records { suffix without the head, value }
//! end-lower_len-upper_len  upper fence, then the lower fence at the very end
//! ```
//!
//! Terms
//! - Fences: the page covers keys in `[lower, upper)`. The root's outer fences are infinite.
//! - Suffix: a key without the page's prefix; only suffixes are stored. `key_len` is the suffix's length.
//! - Head: four bytes of the suffix as a big-endian number, padded with zeros. It decides most comparisons without
//!   touching the heap, and its bytes are not stored a second time there. It is after the suffix's first `skip` bytes,
//!   which all records of the page have in common beyond the prefix: on pages with an infinite fence (every root) the
//!   prefix is empty and the first four bytes of all keys would often be the same. Each record keeps its own copy of
//!   them, so that an insertion that does not share them lowers `skip` without needing space.
//! - Inner record: key = separator, value = child page number (u32); the child holds keys `< separator` and
//!   `>=` the separator before it.
//!
//! Rules
//! 1. Reading never panics on any bytes; a page that passed [`check`] gives the right answers.
//! 2. A search runs on latched pages and on optimistic views alike ([`PageBytes`]).
//! 3. Sizes are planned with `skip` 0, the smallest they can be; a higher `skip` uses space that is not needed
//!    otherwise.
//! 4. `last_insert` and `run` only help to choose split points; correctness never depends on them.
//!
//! Differs from InnoDB: no record chain and no page directory (slots are the order), no sibling links (fences instead),
//! no per-record transaction fields (they are part of the clustered value).

mod bulk;
mod changes;
mod check;
mod edit;
mod layout;
mod run;
mod search;
mod view;

pub(crate) use bulk::{append, refence};
pub(crate) use changes::{LeafChange, apply_changes, apply_changes_in_place, changes, make_canonical};
pub(crate) use check::check;
pub(crate) use edit::{Fences, Misfit, format, insert, remove, set_child, splice};
pub(crate) use layout::{
    CHILD_BYTES, SLOTS, TreeLimits, common_prefix, max_key_bytes, max_long_key_bytes, prefix_of, record_bytes,
    shortest_separator,
};
pub(crate) use run::Ascent;
pub(crate) use search::{
    child_at, child_slot_before, child_slot_covering, count, covers, fences_child, heap_start, is_unbounded, record,
    search,
};
pub(crate) use view::Node;
