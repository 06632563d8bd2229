//! Changes of a table in the catalog.
//!
//! Rule: new records and trees are written first, without references to them: the other copy of the definition, the
//! previous layout, the trees of an empty table. One mini-transaction puts them in use; then the replaced ones are
//! removed. So a crash leaves the table before or after the change, and records that the next opening removes.

use super::catalog::Catalog;
use super::catalog_entry::TableEntry;
use super::definition_record::{FIRST_LAYOUT, encode_definition, encode_layout};
use super::record::{IndexRecord, ObjectState, PART_BYTES, RecordKey, TableRecord};
use super::row_layout::present_columns;
use super::table_change::Altered;
use crate::error::{Error, Result};
use crate::space::reserve::{self, SpacePriority};

impl Catalog {
    /// Gives a table another definition, atomically and durably.
    ///
    /// # Errors
    /// `Schema` if the table has the maximum number of row layouts; `DiskFull`, an I/O error. The table is unchanged
    /// then.
    pub(crate) fn alter_table(&self, table: &TableEntry, altered: Altered) -> Result<TableEntry> {
        let Altered { definition, columns } = altered;
        let before = present_columns(&table.definition, &table.columns);
        let mut after = TableEntry { definition, columns, ..table.clone() };
        if present_columns(&after.definition, &after.columns) != before {
            after.record.layout = next_layout(table)?;
            after.older_layouts.push(before);
        }
        let bytes = encode_definition(&after.definition, &after.columns);
        after.record.definition_bytes = bytes.len() as u32;
        after.record.definition_copy = table.record.definition_copy.other();
        debug_assert_ne!(after.record.definition_copy, table.record.definition_copy, "the valid copy is overwritten");
        debug_assert_eq!(after.definition.indexes.len(), table.indexes.len(), "an alteration loses an index");
        let named = table
            .indexes
            .iter()
            .zip(&after.definition.indexes)
            .map(|(index, positioned)| IndexRecord { definition: after.columns.with_ids(positioned), ..index.clone() });
        after.indexes = named.collect();
        let replaced = match self.put_altered(table, &after, &bytes) {
            Ok(()) => table.definition_keys(),
            Err(error) => {
                self.remove_unused(after.definition_keys());
                return Err(error);
            }
        };
        after.check();
        self.remove_unused(replaced);
        Ok(after)
    }

    /// Removes records of a definition or a layout that is not in use. A failure is ignored: such records are not read,
    /// and the next opening removes them.
    pub(crate) fn remove_unused(&self, keys: Vec<RecordKey>) {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        let _ = keys.into_iter().try_for_each(|key| self.remove(key));
    }

    fn put_altered(&self, before: &TableEntry, after: &TableEntry, definition: &[u8]) -> Result<()> {
        self.put_definition(after.id, after.record.definition_copy, definition)?;
        if after.record.layout != before.record.layout {
            let kept = after.older_layouts.last().map(|columns| encode_layout(columns)).unwrap_or_default();
            for (part, bytes) in (0..).zip(kept.chunks(PART_BYTES)) {
                self.put(RecordKey::Layout { table: after.id, layout: before.record.layout, part }, bytes)?;
            }
        }
        let table = (RecordKey::Table(after.id), after.record.encode());
        let changed = before.indexes.iter().zip(&after.indexes).filter(|(old, new)| old != new);
        let indexes = changed.map(|(_, index)| (RecordKey::Index(after.id, index.tree.id), index.encode()));
        self.replace(&std::iter::once(table).chain(indexes).collect::<Vec<_>>())?;
        self.flush()
    }

    /// Replaces a table by an empty one with the same definition, atomically and durably: `before` is to be removed.
    /// Auto-increment starts again.
    ///
    /// # Errors
    /// `DiskFull`, an I/O error. The table is unchanged then.
    pub(crate) fn truncate_table(&self, before: &mut TableEntry) -> Result<TableEntry> {
        let mut after = self.begin_table(before.definition.clone(), Some(before.record.create_id))?;
        let removed = TableRecord { state: ObjectState::Dropping, ..before.record };
        let ready = TableRecord { state: ObjectState::Ready, ..after.record };
        debug_assert!(before.id < after.id, "rule 3 of the catalog: the new table has the number {:?}", after.id);
        debug_assert_eq!(before.record.create_id, after.record.create_id, "a truncated table is another one");
        // Keys ascend: new numbers are greater.
        let states = [(before.id, removed), (after.id, ready)];
        let states = states.map(|(id, record)| (RecordKey::Table(id), record.encode()));
        if let Err(error) = self.replace(&states) {
            let _ = self.finish_drop(&after.remains());
            return Err(error);
        }
        (before.record, after.record) = (removed, ready);
        self.flush()?;
        Ok(after)
    }
}

fn next_layout(table: &TableEntry) -> Result<u8> {
    table.record.layout.checked_add(1).ok_or_else(|| {
        let (name, changes) = (&table.definition.name, u8::MAX - FIRST_LAYOUT);
        Error::Schema(format!(
            "table {name}: its columns were changed {changes} times, and rows may still be laid out as any of these \
             changes left them; the columns can be changed again after the rows were exported, the table truncated and \
             the rows imported again"
        ))
    })
}
