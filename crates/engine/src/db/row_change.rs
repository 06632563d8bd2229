//! The row in a closure of `modify`, and its changes.
//!
//! Rule: columns of the closure's row may be on overflow pages. A column is read when the closure accesses it; a column
//! that the closure does not set keeps its pages (`txn::overflow_columns`).

use crate::error::Result;
use crate::table::unread::UnreadColumns;
use crate::table::version::TableVersion;
use crate::table::{Changes, RowRef};
use crate::txn::Outside;

/// Makes `new` the row that `change` makes of `old`; true if its key changes, or its auto-increment number grows.
#[inline]
pub(super) fn apply(
    version: &TableVersion,
    old: &[u8],
    new: &mut Vec<u8>,
    outside: Option<&mut Outside<'_>>,
    change: &mut (impl FnMut(RowRef<'_>, &mut Changes<'_>) + ?Sized),
) -> Result<bool> {
    let mut changes = Changes::new(version.layouts.present());
    match &outside {
        None => change(version.layouts.read(old)?, &mut changes),
        Some(outside) => {
            let unread = UnreadColumns::new(outside);
            change(version.layouts.read(old)?.with_unread(&unread), &mut changes);
            unread.check()?;
        }
    }
    if let Some(error) = changes.take_error() {
        return Err(error);
    }
    version.layouts.rebuild(old, &changes, new)?;
    if let Some(outside) = outside {
        version.layouts.keep_unchanged(old, &changes, outside, new)?;
    }
    let names_key = changes.columns().any(|column| version.definition.is_key(column));
    let counts = version.definition.auto_increment.filter(|counter| changes.columns().any(|column| column == *counter));
    let raises = counts.is_some_and(|counter| version.counted(new, counter) > version.counted(old, counter));
    Ok(raises || names_key && version.key.differs(version.row(old), version.row(new)))
}
