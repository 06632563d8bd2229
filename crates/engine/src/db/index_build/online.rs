//! Building or rebuilding an index online, concurrent with writers.
//!
//! ```text
//! begin     catalog: the index is being built | no writer is in the table: view, the table's version with a log
//! fill      the tree is filled from the view's rows          | writers change rows, and note entries in the log
//! catch up  noted changes are applied, piece after piece     | the same
//! end       the last ones are applied, catalog: in use       | those that change entries wait
//!           the table's version without the log              | writers change entries in the tree
//! ```
//! Rules
//! 1. At the begin the build waits, in short turns, until every transaction that has written the table has ended: from
//!    then on every writer uses the log, and the view sees all earlier changes. A transaction that has only read takes
//!    the table's newest version before it writes (`db/locked_tables.rs`).
//! 2. So the view has each row without its logged changes, and the log has the later changes of its entries: after the
//!    last change is applied, the tree has the entries of the rows (rule 1 of `txn/entry_log.rs`).
//! 3. At the end the catalog's record durably says that the index is in use, before a writer changes the tree. A crash
//!    before leaves an index that the next opening removes, a crash after leaves a complete index.
//! 4. Unique: writers do not search for duplicates while the index is being built; their statements succeed, and the
//!    build fails if two rows are equal when it begins, or at its end. For this check it waits in short turns until no
//!    writer is in the table, so that no rollback can restore a row. (InnoDB also fails when it meets duplicates in its
//!    row log that a transaction would have rolled back; this build does not.)
//! 5. The view is open until the index is in use, so purge keeps the undo of all changes meanwhile.
//! 6. When a build fails or is stopped, logging ends, the table gets its version without the index, and the tree is
//!    dropped. No writer has used the tree.
//! 7. During a rebuild the index has two trees: the old one in its position, which all transactions use, and the new
//!    one as the last index of the table, with the same name. The end waits in short turns until no transaction uses
//!    the table. One mini-transaction of the catalog replaces the old tree by the new one, and no transaction enters
//!    before the table's version has the new tree: so no change goes to only one of them, and no thread uses the old
//!    one when it is freed.

use super::catch_up::{CatchUp, LAST_CHANGES};
use super::change_queue::ChangeQueue;
use super::{IndexFill, batch_bytes};
use crate::btree::BTree;
use crate::db::database::{Database, OpenGuard};
use crate::db::index_build::runs::Runs;
use crate::db::schema_change::with_new_tree;
use crate::db::table_ref::TableRef;
use crate::db::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::table::catalog_entry::Leftover;
use crate::table::handle::TableShared;
use crate::table::lock::Change;
use crate::table::record::{IndexRecord, ObjectState};
use crate::table::version::TableVersion;
use crate::table::{Index, Row, Table, TableDefinition};
use crate::txn::{Access, EntryLog, ReadView, TxnOptions, Wanted, telling};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The progress of an index build; see [`Database::create_index_with_progress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildProgress {
    /// Rows that were read.
    pub rows: u64,
    /// Entries that were written.
    pub entries: u64,
    /// Changes by writers that are left to be applied, by the last count.
    pub changes_left: u64,
}

/// Attempts to end the build while writers are blocked that find too many changes left, before it applies them
/// nevertheless.
const MAX_ENDS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum Built {
    /// An index that there was not.
    New,
    /// The index at this position (rule 7).
    Again(usize),
}

impl Database {
    /// Adds an index to a table and fills it from the rows there are, while transactions read and write the table.
    /// Writers wait at the begin of the build, and at its end if the index is unique, until those that have written
    /// before have ended: less than half a second at a stretch. A crash before it is complete leaves no trace of it.
    ///
    /// While a unique index is being built no statement searches it for duplicates: statements succeed, and the build
    /// fails if two rows are equal at its begin or at its end.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("mail", Type::Text(200)).primary_key(&["id"]);
    /// let users = db.create_table("users", schema)?;
    /// db.create_index(&users, "by_mail", &["mail"], true)?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::Schema`] for a wrong name or column, [`Error::DuplicateKey`] if a unique index
    /// finds equal rows, [`Error::LockWaitTimeout`] if a transaction that has written the table stays open for longer
    /// than that, [`Error::KeyTooLong`], an I/O error.
    pub fn create_index<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        name: &str,
        columns: &[&str],
        unique: bool,
    ) -> Result<()> {
        self.create_index_with_progress(table, name, columns, unique, &mut |_| Ok(()))
    }

    /// As [`create_index`](Self::create_index), for an index that is more than ascending columns.
    ///
    /// ```
    /// # use highwater::{Database, Index, Options, Schema, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("body", Type::Text(9000)).primary_key(&["id"]);
    /// db.create_table("pages", schema)?;
    /// db.create_index_with("pages", "by_body", Index::new(&["body"]).prefix("body", 40))?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`create_index`](Self::create_index); [`Error::EntryTooLong`] if what it covers of a row does not fit,
    /// [`Error::Collation`].
    pub fn create_index_with<'t>(&self, table: impl Into<TableRef<'t>>, name: &str, index: Index) -> Result<()> {
        self.make_index(table.into(), name, &index, &mut |_| Ok(()), &mut None)
    }

    /// As [`create_index`](Self::create_index), with progress. An error that `on_progress` returns stops the build, and
    /// is what this returns.
    ///
    /// ```
    /// # use highwater::{Database, Error, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("x", Type::U64).primary_key(&["id"]);
    /// # let table = db.create_table("t", schema)?;
    /// # db.transact(|txn| (0..1000u64).try_for_each(|id| txn.insert(&table, &values![id, id]).map(drop)))?;
    /// let mut calls = 0;
    /// let stopped = db.create_index_with_progress("t", "by_x", &["x"], false, &mut |progress| {
    ///     calls += 1;
    ///     if progress.rows >= 512 { Err(Error::Usage("enough".into())) } else { Ok(()) }
    /// });
    /// assert!(calls > 0 && matches!(stopped, Err(Error::Usage(_))));
    /// assert!(table.definition().indexes.is_empty());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`create_index`](Self::create_index), and those of `on_progress`.
    pub fn create_index_with_progress<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        name: &str,
        columns: &[&str],
        unique: bool,
        on_progress: &mut (dyn FnMut(BuildProgress) -> Result<()> + '_),
    ) -> Result<()> {
        self.make_index(table.into(), name, &Index::new(columns).unique_if(unique), on_progress, &mut None)
    }

    /// After `DuplicateKey` one of the rows that are equal is in `duplicate`.
    pub(in crate::db) fn make_index(
        &self,
        table: TableRef<'_>,
        name: &str,
        index: &Index,
        on_progress: &mut (dyn FnMut(BuildProgress) -> Result<()> + '_),
        duplicate: &mut Option<Row>,
    ) -> Result<()> {
        let _gate = self.enter_schema_change()?;
        let shared = self.inner.table_of(table)?;
        let change = self.change(&shared)?;
        let definition = with_index(&shared.current.read().definition, name, index)?;
        self.build_index(&shared, &change, Arc::new(definition), Built::New, on_progress, duplicate)
    }

    /// Builds the last index of `definition`, concurrently with writers, and puts it in use.
    pub(in crate::db) fn build_index(
        &self,
        table: &Arc<TableShared>,
        change: &Change<'_>,
        definition: Arc<TableDefinition>,
        built: Built,
        on_progress: &mut (dyn FnMut(BuildProgress) -> Result<()> + '_),
        duplicate: &mut Option<Row>,
    ) -> Result<()> {
        let mut build = OnlineBuild::begin(self, table, change, definition, built)?;
        // A panic of the callback must not leave writers noting changes for ever.
        let run = || build.run(&mut |progress| telling(|| on_progress(progress)));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => {
                build.publish();
                Ok(())
            }
            Ok(Err(error)) => {
                let definition = build.definition();
                *duplicate = build.duplicate.take();
                build.give_up();
                Err(error.of_key(|| definition.key_in_words(definition.indexes.len().checked_sub(1))))
            }
            Err(panic) => {
                build.give_up();
                resume_unwind(panic)
            }
        }
    }
}

/// An index that is being built concurrently with writers.
pub(super) struct OnlineBuild<'d> {
    db: &'d Database,
    table: &'d Arc<TableShared>,
    change: &'d Change<'d>,
    before: Arc<TableVersion>,
    record: IndexRecord,
    /// The position of the index that is rebuilt, and its record.
    replaced: Option<(usize, IndexRecord)>,
    tree: Arc<BTree>,
    pub(super) log: Arc<EntryLog>,
    /// The table as writers use it meanwhile.
    version: TableVersion,
    /// Keeps the view open.
    txn: WriteTxn,
    birth: ReadView,
    /// After `DuplicateKey`: one of the rows that are equal.
    duplicate: Option<Row>,
}

impl<'d> OnlineBuild<'d> {
    /// Rule 1. On an error nothing is left but what the next opening removes.
    pub(super) fn begin(
        db: &'d Database,
        table: &'d Arc<TableShared>,
        change: &'d Change<'d>,
        definition: Arc<TableDefinition>,
        built: Built,
    ) -> Result<OnlineBuild<'d>> {
        let inner = &db.inner;
        let before = table.current.read().clone();
        let added = &definition.indexes[definition.indexes.len() - 1];
        let (record, replaced) = {
            let _schema = inner.schema.lock();
            let entry = table.entry.lock();
            let replaced = match built {
                Built::New => None,
                Built::Again(at) => Some((at, entry.indexes[at].clone())),
            };
            (inner.catalog.create_index(&entry, &definition, added)?, replaced)
        };
        debug_assert_eq!(record.state, ObjectState::Building, "the index is in use before it is built");
        debug_assert_eq!(
            definition.indexes.len(),
            before.indexes.len() + 1,
            "the definition of a build has one index more"
        );
        let tree = inner.catalog.open_index_tree(&record);
        let log = Arc::new(EntryLog::default());
        let begun = change.no_write_briefly(db.patience()).and_then(|()| {
            let txn = WriteTxn::begin(&OpenGuard::new(inner), &TxnOptions::default(), Access::ReadOnly)?;
            let mut txn = db.interruptible(txn);
            let birth = txn.open_view();
            let since = (u64::MAX, birth.clone());
            let (collations, noted) = (inner.catalog.collations(), Some(log.clone()));
            let version =
                with_new_tree(collations, &before, &before.indexes, definition.clone(), tree.clone(), since, noted);
            inner.registry.replace(table, version.clone());
            Ok((txn, birth, version))
        });
        change.open();
        match begun {
            Ok((txn, birth, version)) => Ok(OnlineBuild {
                db,
                table,
                change,
                before,
                record,
                replaced,
                tree,
                log,
                version,
                txn,
                birth,
                duplicate: None,
            }),
            Err(error) => {
                db.discard_index(before.id, &record);
                Err(error)
            }
        }
    }

    /// The table's, of which the index is the last one.
    fn definition(&self) -> Arc<TableDefinition> {
        self.version.definition.clone()
    }

    /// Fills the tree and applies what writers change meanwhile, to the last change.
    pub(super) fn run(&mut self, on_progress: &mut dyn FnMut(BuildProgress) -> Result<()>) -> Result<()> {
        let inner = &self.db.inner;
        let queue = ChangeQueue::new(&inner.storage, &inner.ctx.stats);
        let mut catch_up = CatchUp::new(inner.txn_system(), &self.version, &self.log, queue);
        let mut progress = BuildProgress::default();
        let mut between = |now: BuildProgress| {
            progress = now;
            catch_up.keep_back()?;
            on_progress(now)
        };
        let runs = Runs::new(&inner.storage, &inner.ctx.stats);
        let (ctx, version, batch_bytes) = (&inner.ctx, &self.version, batch_bytes(&inner.ctx));
        let handle = Table { shared: self.table.clone() };
        let mut filling = IndexFill { ctx, version, batch_bytes, runs, between: &mut between, duplicate: Vec::new() };
        if let Err(error) = filling.fill(&mut self.txn, &handle) {
            if matches!(error, Error::DuplicateKey { .. }) {
                self.duplicate = seen_row(&mut self.txn, &handle, &filling.duplicate)?;
            }
            return Err(error);
        }
        // The view stays, and the table is this build's: an end that waits for its users does not wait for it.
        self.txn.scratch.iter_mut().for_each(|scratch| scratch.tables.release_read());
        let db = self.db;
        let mut all_applied = |catch_up: &mut CatchUp<'_>| loop {
            db.patience().check()?;
            let applied = catch_up.round()?;
            on_progress(BuildProgress { changes_left: applied as u64, ..progress })?;
            if applied <= LAST_CHANGES {
                return Ok(());
            }
        };
        let is_unique = self.version.definition.indexes.last().is_some_and(|index| index.unique);
        let old = self.replaced.as_mut().map(|(_, record)| record);
        let kept_out = match (&old, is_unique) {
            (Some(_), _) => KeptOut::All,
            (None, true) => KeptOut::Writers,
            (None, false) => KeptOut::None,
        };
        let end = End { db: self.db, change: self.change, table: self.before.id, record: &mut self.record, old };
        let ended = match kept_out {
            KeptOut::None => end.while_writers_run(&mut catch_up, &mut all_applied),
            _ => end.without(kept_out, &mut catch_up, &mut all_applied),
        };
        debug_assert!(
            ended.is_err() || !self.log.is_open(),
            "rule 2: a build ends, and writers note their changes still"
        );
        self.duplicate = catch_up.duplicate.take();
        ended
    }

    /// The index is in use from now on.
    pub(super) fn publish(self) {
        let OnlineBuild { db, table, record, replaced, tree, version, birth, before, log, .. } = self;
        debug_assert_eq!(record.state, ObjectState::Ready, "rule 3: writers change a tree that is not in use");
        debug_assert!(!log.is_open(), "rule 2: a change of a writer is left in the log");
        let (mut definition, mut others) = ((*version.definition).clone(), before.indexes.clone());
        let _schema = db.inner.schema.lock();
        let mut entry = table.entry.lock();
        if let Some((at, old)) = &replaced {
            debug_assert_eq!(
                old.definition.name, record.definition.name,
                "rule 7: it takes the place of another index"
            );
            definition.indexes.remove(*at);
            others.remove(*at);
            entry.indexes.remove(*at);
        }
        entry.definition = definition.clone();
        entry.indexes.push(record);
        entry.check();
        drop(entry);
        db.make_current(table, &others, Arc::new(definition), tree, birth);
        // Purge and rollback do not use it any more either.
        if let Some((_, old)) = replaced {
            debug_assert_eq!(
                old.state,
                ObjectState::Dropping,
                "rule 7: the old tree is in use together with the new one"
            );
            db.inner.dropping.add(Leftover::Index(before.id, old));
        }
    }

    /// Rule 6.
    pub(super) fn give_up(self) {
        let OnlineBuild { db, table, record, log, before, .. } = self;
        // A failure to make this durable has stopped the database.
        let is_stopped = db.inner.ctx.poison.is_set();
        debug_assert!(is_stopped || record.state == ObjectState::Building, "rule 6: an index in use is given up");
        log.give_up();
        db.inner.registry.replace(table, TableVersion::clone(&before));
        db.discard_index(before.id, &record);
    }
}

/// The row of a primary key that the build's view sees.
fn seen_row(txn: &mut WriteTxn, table: &Table, key: &[u8]) -> Result<Option<Row>> {
    let found = txn.read_by(table, |call| call.take_key(key), LockMode::None, Wanted::ALL)?;
    found.map(|(version, row)| version.layouts.to_row(row)).transpose()
}

/// Whom the end of a build keeps out.
#[derive(Clone, Copy)]
enum KeptOut {
    None,
    /// Rule 4.
    Writers,
    /// Rule 7.
    All,
}

/// The end of a build: the last changes, and the catalog.
struct End<'e> {
    db: &'e Database,
    change: &'e Change<'e>,
    table: crate::types::TableId,
    record: &'e mut IndexRecord,
    /// The index whose place it takes.
    old: Option<&'e mut IndexRecord>,
}

type ApplyAll<'a> = dyn FnMut(&mut CatchUp<'_>) -> Result<()> + 'a;

impl End<'_> {
    fn while_writers_run(mut self, catch_up: &mut CatchUp<'_>, all_applied: &mut ApplyAll<'_>) -> Result<()> {
        loop {
            all_applied(catch_up)?;
            if self.try_end(catch_up, LAST_CHANGES)? {
                return Ok(());
            }
        }
    }

    /// Those that are kept out wait until the change is over: when the table's version has the index.
    fn without(mut self, who: KeptOut, catch_up: &mut CatchUp<'_>, all_applied: &mut ApplyAll<'_>) -> Result<()> {
        for end in 1..=MAX_ENDS {
            all_applied(catch_up)?;
            match who {
                KeptOut::All => self.change.exclusive_briefly(self.db.patience())?,
                _ => self.change.no_write_briefly(self.db.patience())?,
            }
            let max = if end == MAX_ENDS { usize::MAX } else { 100 * LAST_CHANGES };
            if self.try_end(catch_up, max)? {
                break;
            }
            self.change.open();
        }
        Ok(())
    }

    /// Applies the last changes, if they are at most `max`, and writes that the index is in use.
    fn try_end(&mut self, catch_up: &mut CatchUp<'_>, max: usize) -> Result<bool> {
        let log = catch_up.log;
        debug_assert_eq!(self.record.state, ObjectState::Building, "rule 3: an index that is in use is ended again");
        log.finish(max, |last| {
            catch_up.apply(last)?;
            catch_up.check_unique()?;
            let inner = &self.db.inner;
            let _schema = inner.schema.lock();
            match &mut self.old {
                Some(old) => inner.catalog.swap_index(self.table, old, self.record),
                None => inner.catalog.set_index_state(self.table, self.record, ObjectState::Ready),
            }
        })
    }
}

/// The table with one more index, checked.
fn with_index(table: &TableDefinition, name: &str, index: &Index) -> Result<TableDefinition> {
    let wrong = |reason: String| Error::Schema(format!("table {}: index {name}: {reason}", table.name));
    let mut definition = table.clone();
    definition.indexes.push(index.define(name, table).map_err(wrong)?);
    definition.validate().map_err(|reason| Error::Schema(format!("table {}: {reason}", table.name)))?;
    Ok(definition)
}
