//! Copying the readable rows of a damaged data file into another database.
//!
//! Rules
//! 1. No tree is descended: every page of the file is read, and each leaf that verifies and belongs to a table's
//!    clustered tree gives its rows. So a damaged root loses no rows.
//! 2. A page that is not in use by its extent map is left out. If the map cannot be read, freed pages may be found; a
//!    row of an older leaf is left out if a newer leaf covers its key.
//! 3. Of each row the newest version is taken whose transaction is not known to be unfinished, as far as the readable
//!    undo pages show.
//! 4. A row is copied whole or named as lost, also a row that the other database refuses: its key can be too long for
//!    smaller pages, or exist already. Ranges of keys that no leaf covers are named too. Only a failure of the other
//!    database itself, a full disk for example, ends the salvage.
//! 5. Secondary indexes are built from the copied rows. A refused index is left out and named.

use crate::check::{Finding, show_key};
use crate::db::{CHANGE_LOG, Database, WriteTxn};
use crate::error::{Error, Result};
use crate::inspect::{OnProgress, RawFile, RawTable};
use crate::page::{self, Node, PageType, header, node};
use crate::row::format::{OverflowRef, ROW_HEADER_BYTES, RowHeader};
use crate::table::definition::PRIMARY;
use crate::table::{Index, Schema, Table, TableDefinition, ValueRef};
use crate::txn::{MAX_ROW_BYTES, overflow};
use crate::types::{Lsn, PageNo, RollPtr};
use crate::undo::Xid;
use crate::undo::record::{TxnState, UndoKind};
use crate::undo::{RECORDS_AT, UndoFields, UndoPlace, place_of, record_at};
use highwater_storage::Device;
use std::collections::{BTreeSet, HashSet};

/// Rows of one transaction.
const BATCH_ROWS: usize = 500;

/// A table that was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvagedTable {
    /// Its name.
    pub name: String,
    /// Rows that were copied.
    pub rows: u64,
    /// Copied rows whose newest version was not committed, so that an older version was copied.
    pub older_versions: u64,
    /// Rows that are known and could not be copied.
    pub rows_lost: u64,
}

/// The result of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The tables, by name.
    pub tables: Vec<SalvagedTable>,
    /// The losses and damage: pages, rows, ranges of keys, indexes.
    pub losses: Vec<Finding>,
    /// The names of prepared transactions in the file. Their changes are not copied; the versions before them are.
    pub prepared: Vec<Xid>,
}

/// Copies every row of the data file that can be read into `into`, which has no tables. The file is that of a database
/// at rest: what is in its redo log only is not seen. If `into` has smaller pages, keys may be too long for it.
///
/// # Errors
/// [`Error::Incompatible`] if the page size can neither be read nor guessed, [`Error::Corrupt`] if the catalog cannot
/// be read, those of writing `into`.
pub fn salvage(data: &dyn Device, into: &Database, on_progress: &mut OnProgress<'_>) -> Result<SalvageReport> {
    let mut file = RawFile::open(data)?;
    let problem = file.catalog_problem().map(str::to_string);
    let mut wrong = if problem.is_some() { file.gather_catalog() } else { Vec::new() };
    if file.tables().is_empty()
        && let Some(problem) = &problem
    {
        let reason = wrong.pop().map_or_else(|| problem.clone(), |error| error.to_string());
        return Err(Error::Corrupt(format!("no definition of a table can be read, so no row can: {reason}")));
    }
    let (report, unfinished, prepared) = (SalvageReport::default(), HashSet::new(), HashSet::new());
    let mut work = Salvage { file: &file, report, unfinished, prepared, named: Vec::new() };
    if let Some(problem) = problem {
        work.lose(None, None, format!("the catalog was gathered from its pages: {problem}"));
    }
    wrong.iter().for_each(|error| work.lose(None, None, format!("a table or an index is lost: {error}")));
    let mut leaves = work.survey(on_progress)?;
    work.report.prepared = work.prepared_names().into_iter().collect();
    for (number, table) in file.tables().iter().enumerate() {
        let mut of_table: Vec<Leaf> = leaves.extract_if(.., |leaf| leaf.table == number).collect();
        if table.definition.name != CHANGE_LOG {
            work.copy_table(table, &mut of_table, into)?;
        }
    }
    Ok(work.report)
}

/// Lower and upper fence; `None` = no bound.
type Bounds = (Option<Vec<u8>>, Option<Vec<u8>>);

/// A leaf of a clustered tree.
struct Leaf {
    table: usize,
    page: PageNo,
    lsn: Lsn,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    /// Newer leaves that cover a part of its keys: their bounds.
    newer: Vec<Bounds>,
}

impl Leaf {
    fn is_newer_elsewhere(&self, key: &[u8]) -> bool {
        self.newer.iter().any(|(lower, upper)| {
            lower.as_ref().is_none_or(|lower| &lower[..] <= key) && upper.as_ref().is_none_or(|upper| key < &upper[..])
        })
    }
}

struct Salvage<'f> {
    file: &'f RawFile<'f>,
    report: SalvageReport,
    /// Transactions that are known not to have ended.
    unfinished: HashSet<u64>,
    /// The headers of those of them that are prepared.
    prepared: HashSet<UndoPlace>,
    /// Names in the undo log, and the header of the transaction of each.
    named: Vec<(UndoPlace, Xid)>,
}

impl Salvage<'_> {
    fn lose(&mut self, page: Option<PageNo>, table: Option<&str>, text: String) {
        let index = table.map(|_| PRIMARY.to_string());
        self.report.losses.push(Finding { page, table: table.map(str::to_string), index, text });
    }

    /// Reads every page: finds the leaves and the transactions that have not ended, and reports damage.
    fn survey(&mut self, on_progress: &mut OnProgress<'_>) -> Result<Vec<Leaf>> {
        let mut leaves = Vec::new();
        let pages = self.file.page_count();
        for number in 0..pages as u32 {
            let page_no = PageNo(number);
            if number.is_multiple_of(64) {
                on_progress(u64::from(number), pages);
            }
            let is_mapped = self.file.extent(number / 64).is_some();
            if is_mapped && self.file.owner(page_no).is_none() {
                continue;
            }
            let sound = self.file.page(page_no).and_then(|page| header::verify(&page, page_no).map(|()| page));
            let found = sound.and_then(|page| self.survey_page(page_no, &page));
            match found {
                Ok(leaf) => leaves.extend(leaf),
                Err(error) => {
                    let name = self.file.name_of(page_no).map_or(String::new(), |name| format!("{name}: "));
                    self.lose(Some(page_no), None, format!("{name}{}", error.into_reason()));
                }
            }
        }
        Ok(leaves)
    }

    fn survey_page(&mut self, page_no: PageNo, page: &[u8]) -> Result<Option<Leaf>> {
        match header::page_type(page)? {
            PageType::Undo => self.survey_undo(page_no, page).map(|()| None),
            PageType::Leaf => {
                let owner = header::owner(page);
                let Some(table) = self.file.tables().iter().position(|table| table.trees[0].id == owner) else {
                    return Ok(None);
                };
                node::check(page, page_no)?;
                let found = Node::new(page);
                let (lower, upper) = (found.lower().map(<[u8]>::to_vec), found.upper().map(<[u8]>::to_vec));
                Ok(Some(Leaf { table, page: page_no, lsn: header::lsn(page), lower, upper, newer: Vec::new() }))
            }
            _ => page::check_not_lost(page, page_no).map(|()| None),
        }
    }

    fn survey_undo(&mut self, page_no: PageNo, page: &[u8]) -> Result<()> {
        let (mut offset, mut header) = (RECORDS_AT, UndoFields::read(page, page_no)?.header);
        while let Some(record) = record_at(page, page_no, offset)? {
            if record.kind == UndoKind::Header {
                let (place, (id, state, _)) = (UndoPlace { page: page_no, offset }, record.header()?);
                header = Some(place);
                if matches!(state, TxnState::Active | TxnState::Prepared) {
                    self.unfinished.insert(id.0);
                }
                self.prepared.extend((state == TxnState::Prepared).then_some(place));
            }
            if record.kind == UndoKind::Xid {
                self.named.extend(header.zip(Some(record.xid()?.xid)));
            }
            offset += record.bytes;
        }
        Ok(())
    }

    /// The names of the prepared transactions.
    fn prepared_names(&self) -> BTreeSet<Xid> {
        let named = self.named.iter().filter(|(header, _)| self.prepared.contains(header));
        named.map(|(_, xid)| xid.clone()).collect()
    }

    fn copy_table(&mut self, table: &RawTable, leaves: &mut [Leaf], into: &Database) -> Result<()> {
        let name = table.definition.name.clone();
        let target = match into.create_table(&name, schema_of(&table.definition)) {
            Err(error) if is_refusal(&error) => {
                self.lose(None, Some(&name), format!("the table and its rows are lost: {error}"));
                None
            }
            created => Some(created?),
        };
        let mut done = SalvagedTable { name, ..SalvagedTable::default() };
        self.arrange(table, leaves);
        for leaf in leaves.iter() {
            self.copy_leaf(table, leaf, into, target.as_ref(), &mut done)?;
        }
        if target.is_some() {
            self.build_indexes(table, into)?;
        }
        self.report.tables.push(done);
        Ok(())
    }

    fn build_indexes(&mut self, table: &RawTable, into: &Database) -> Result<()> {
        let TableDefinition { name, indexes, .. } = &table.definition;
        for index in indexes {
            let text = match into.create_index_with(name, &index.name, Index::of(&table.definition, index)) {
                Err(Error::DuplicateKey { .. }) => "it is unique, but two rows are equal: it was left out".to_string(),
                Err(error) if is_refusal(&error) => format!("it was left out: {error}"),
                built => {
                    built?;
                    continue;
                }
            };
            let (table, index) = (Some(name.clone()), Some(index.name.clone()));
            self.report.losses.push(Finding { page: None, table, index, text });
        }
        Ok(())
    }

    /// Sorts the leaves of a table, records which newer leaves cover parts of older ones, and reports the gaps.
    fn arrange(&mut self, table: &RawTable, leaves: &mut [Leaf]) {
        leaves.sort_by(|a, b| (&a.lower, b.lsn).cmp(&(&b.lower, a.lsn)));
        for i in 0..leaves.len() {
            for j in i + 1..leaves.len() {
                if leaves[i].upper.is_some() && leaves[j].lower >= leaves[i].upper {
                    break;
                }
                let (older, newer) = if leaves[i].lsn < leaves[j].lsn { (i, j) } else { (j, i) };
                let bounds = (leaves[newer].lower.clone(), leaves[newer].upper.clone());
                leaves[older].newer.push(bounds);
            }
        }
        let key = |key: &Option<Vec<u8>>| {
            key.as_ref().map_or("the end".to_string(), |key| show_key(&table.trees[0].key, key))
        };
        let mut covered = Some(Vec::new());
        for leaf in leaves.iter() {
            let Some(from) = &covered else { break };
            let lower = leaf.lower.clone().unwrap_or_default();
            if lower > *from {
                let from = if from.is_empty() { "the beginning".to_string() } else { key(&covered) };
                let text = format!("rows from {from} up to {} are lost", key(&leaf.lower));
                self.lose(None, Some(&table.definition.name), text);
            }
            covered = leaf.upper.clone().map(|upper| upper.max(from.clone()));
        }
        if let Some(from) = &covered {
            let from = if from.is_empty() { "the beginning".to_string() } else { key(&covered) };
            self.lose(None, Some(&table.definition.name), format!("rows from {from} to the end are lost"));
        }
    }

    fn copy_leaf(
        &mut self,
        table: &RawTable,
        leaf: &Leaf,
        into: &Database,
        target: Option<&Table>,
        done: &mut SalvagedTable,
    ) -> Result<()> {
        // It verified before, but reading it again can fail.
        let page = match self.sound(leaf.page).and_then(|page| node::check(&page, leaf.page).map(|()| page)) {
            Ok(page) => page,
            Err(error) => {
                self.lose(Some(leaf.page), Some(&done.name), error.into_reason());
                return Ok(());
            }
        };
        let found = Node::new(&page);
        let (mut key, mut txn) = (Vec::new(), into.begin()?);
        for slot in 0..found.count() {
            found.key_into(slot, &mut key);
            if leaf.is_newer_elsewhere(&key) {
                continue;
            }
            let copied = match self.row(table, &key, found.value(slot)) {
                Ok(None) => continue,
                Ok(Some((row, is_older))) => insert(&mut txn, table, target, &row)?.map(|()| is_older),
                Err(error) => Err(error.to_string()),
            };
            match copied {
                Ok(is_older) => {
                    done.rows += 1;
                    done.older_versions += u64::from(is_older);
                }
                Err(reason) => {
                    done.rows_lost += 1;
                    let text = format!("row {} is lost: {reason}", show_key(&table.trees[0].key, &key));
                    self.lose(Some(leaf.page), Some(&done.name), text);
                }
            }
            if (slot + 1).is_multiple_of(BATCH_ROWS) {
                txn.commit()?;
                txn = into.begin()?;
            }
        }
        txn.commit()
    }

    /// The row to copy, and whether it is an older version.
    fn row(&self, table: &RawTable, key: &[u8], value: &[u8]) -> Result<Option<(Vec<u8>, bool)>> {
        let version = self.version(table, key, value)?;
        if let Some((row, _)) = &version {
            table.layouts.row(row).verify()?;
        }
        Ok(version)
    }

    /// The newest version that is not known to be unfinished, and whether it is not the newest of all; `None` if the
    /// row is deleted in it, or there is none.
    fn version(&self, table: &RawTable, key: &[u8], value: &[u8]) -> Result<Option<(Vec<u8>, bool)>> {
        let mut header = RowHeader::decode(value)?;
        let mut payload = value[ROW_HEADER_BYTES..].to_vec();
        let mut is_older = false;
        while self.unfinished.contains(&header.trx_id.0) {
            is_older = true;
            if !self.step_back(key, &mut header, &mut payload)? {
                return Ok(None);
            }
        }
        if header.is_delete_marked() {
            return Ok(None);
        }
        if header.is_overflow() {
            let read = |chain, out: &mut Vec<u8>| self.read_chain(chain).map(|bytes| *out = bytes);
            payload = table.layouts.whole_row(&payload, read)?;
        }
        Ok(Some((payload, is_older)))
    }

    fn step_back(&self, key: &[u8], header: &mut RowHeader, payload: &mut Vec<u8>) -> Result<bool> {
        if header.roll_ptr == RollPtr::NONE {
            return Ok(false);
        }
        let place = place_of(header.roll_ptr);
        let page = self.sound(place.page)?;
        let missing = || Error::corrupt_page(place.page, "the undo record of the row is not there");
        if header::page_type(&page)? != PageType::Undo || !(RECORDS_AT..page.len()).contains(&place.offset) {
            return Err(missing());
        }
        let record = record_at(&page, place.page, place.offset)?.ok_or_else(missing)?;
        if record.row()?.1 != key {
            return Err(missing());
        }
        if record.kind == UndoKind::Insert {
            return Ok(false);
        }
        let change = record.change()?;
        if record.kind == UndoKind::Update {
            change.apply(payload)?;
        }
        *header = change.old;
        Ok(true)
    }

    fn read_chain(&self, reference: OverflowRef) -> Result<Vec<u8>> {
        let total = reference.total_bytes as usize;
        if total > MAX_ROW_BYTES {
            return Err(Error::Corrupt(format!("an overflow chain of {total} bytes")));
        }
        let (mut bytes, mut next, mut position) = (Vec::new(), reference.first, 0);
        while bytes.len() < total {
            let page = self.sound(next)?;
            let before = bytes.len();
            next = overflow::append_link(&page, next, reference.stamp, position, &mut bytes)?;
            if bytes.len() == before || bytes.len() > total {
                return Err(Error::corrupt_page(next, "an overflow chain of another length than its reference says"));
            }
            position += 1;
        }
        Ok(bytes)
    }

    fn sound(&self, page_no: PageNo) -> Result<Vec<u8>> {
        let page = self.file.page(page_no)?;
        header::verify(&page, page_no)?;
        Ok(page)
    }
}

/// Inserts a row into its new table; the inner error is why it is refused.
fn insert(
    txn: &mut WriteTxn,
    table: &RawTable,
    target: Option<&Table>,
    row: &[u8],
) -> Result<std::result::Result<(), String>> {
    let Some(target) = target else { return Ok(Err("its table is lost".to_string())) };
    let values: Vec<ValueRef<'_>> = table.layouts.row(row).values().collect();
    match txn.insert(target, &values) {
        Err(error) if is_refusal(&error) => Ok(Err(format!("the new database refuses it: {error}"))),
        inserted => Ok(Ok(inserted.map(drop)?)),
    }
}

/// Whether a database refuses this row, table or index, and takes others.
fn is_refusal(error: &Error) -> bool {
    use Error::{
        BadValue, Collation, DuplicateKey, EntryTooLong, KeyTooLong, LogTooSmall, RowTooLarge, Schema, TableExists,
    };
    matches!(
        error,
        BadValue { .. }
            | DuplicateKey { .. }
            | KeyTooLong { .. }
            | LogTooSmall { .. }
            | RowTooLarge { .. }
            | Schema(_)
            | EntryTooLong { .. }
            | Collation { .. }
            | TableExists { .. }
    )
}

/// The table without its indexes.
fn schema_of(definition: &TableDefinition) -> Schema {
    let mut without = definition.clone();
    without.indexes.clear();
    Schema::of(&without)
}

#[cfg(test)]
#[path = "salvage_test.rs"]
mod tests;
