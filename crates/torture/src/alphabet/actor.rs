//! Concurrent transactions, interleaved on one thread, and snapshots.
//!
//! Rules
//! 1. Every answer of a statement is compared with the answer that the transaction's isolation level requires. A
//!    statement may be refused because of another transaction; then it has no effect.
//! 2. A statement that may open a transaction's view is followed by a read that certainly opens it, so that oracle and
//!    engine agree on the view: an empty or refused scan may or may not have opened it.

use super::World;
use super::choices::Choices;
use super::content::{Content, ONE_C, PRIMARY, Rows, content, id_key};
use super::oracle::{Change, Changes, Model, Oracle};
use super::played::{Played, call};
use super::random_writes::random_content;
use super::reads::{Query, Reader};
use super::scan::{IDS, Wait};
use super::statements;
use super::writes::{Changed, Judge, Statement};
use highwater::config::FlushLog;
use highwater::{
    Database, Error as Engine, InterruptHandle, Isolation, ReadTxn, Savepoint, Table, TxnOptions, WriteTxn,
};
use highwater_bench::{Error, Result};

/// Long rows that one statement inserts.
const FILLED: u64 = 24;

/// An open transaction.
pub(crate) struct Actor {
    pub(super) txn: WriteTxn,
    pub(super) session: Session,
}

/// The oracle's state of a transaction.
pub(crate) struct Session {
    pub(super) options: TxnOptions,
    /// Number of commits that its snapshot sees.
    sees: Option<u64>,
    pub(super) own: Changes,
    savepoints: Vec<(Savepoint, Changes)>,
}

/// The table of a statement, and its contents after this many commits.
#[derive(Clone, Copy)]
struct Target<'a> {
    table: &'a Table,
    model: &'a Model,
    commits: u64,
}

/// Whether an error leaves the transaction usable: the statement was undone.
pub(crate) fn is_refusal(error: &Engine) -> bool {
    error.is_retryable() && !matches!(error, Engine::Deadlock) || matches!(error, Engine::DuplicateKey { .. })
}

/// Options of a transaction.
pub(crate) fn random_options(rng: &mut Choices) -> TxnOptions {
    let isolation = Isolation::ALL[rng.usize(..Isolation::ALL.len())];
    let flush_log_at_trx_commit = (rng.u32(..8) == 0).then(|| FlushLog::ALL[rng.usize(..FlushLog::ALL.len())]);
    TxnOptions { isolation, first_committer_wins: rng.bool(), flush_log_at_trx_commit, ..TxnOptions::default() }
}

impl Actor {
    /// Begins a transaction.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn begin(world: &World<'_>, rng: &mut Choices) -> Result<Actor> {
        if rng.u32(..8) == 0 {
            let session = Session::new(TxnOptions::default());
            return Ok(Actor { txn: call!(world.played, Database::begin(world.db))?, session });
        }
        let options = random_options(rng);
        let handle = call!(world.played, Database::interrupt_handle(world.db));
        let db = call!(world.played, Database::with_interrupt(world.db, &handle));
        let txn = call!(world.played, Database::begin_with(&db, options.clone()))?;
        Ok(Actor { txn, session: Session::new(options) })
    }

    /// Its uncommitted changes.
    pub(crate) fn own(&self) -> &Changes {
        &self.session.own
    }

    /// A random statement: a write, a read, a savepoint.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(crate) fn act(&mut self, oracle: &Oracle, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        self.session.act(&mut self.txn, oracle, world, rng)
    }

    /// Rolls it back.
    ///
    /// # Errors
    /// [`Error::Data`] if the disk is too full for that; the engine's.
    pub(crate) fn roll_back(self, played: &Played) -> Result<()> {
        match call!(played, WriteTxn::rollback(self.txn)) {
            Err(error @ Engine::DiskFull { .. }) => Err(Error::Data(format!("a rollback: {error}"))),
            done => Ok(done?),
        }
    }

    /// Usually commits it, else rolls it back.
    ///
    /// # Errors
    /// The engine's: then the commit is in doubt.
    pub(crate) fn end(self, oracle: &mut Oracle, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        if rng.u32(..4) == 0 {
            return self.roll_back(world.played);
        }
        let Actor { txn, session } = self;
        let has_written = !session.own.is_empty();
        if has_written && call!(world.played, WriteTxn::id(&txn)).is_none() {
            return Err(Error::Data("a transaction that has written has no number".into()));
        }
        oracle.in_doubt = Some(session.change());
        if rng.bool() {
            call!(world.played, WriteTxn::commit(txn))?;
        } else {
            let lsn = call!(world.played, WriteTxn::commit_lsn(txn))?;
            if lsn > call!(world.played, Database::lsn(world.db)) {
                return Err(Error::Data(format!("a commit lies at LSN {lsn}, beyond the end of the log")));
            }
        }
        session.acknowledge(oracle, world);
        Ok(())
    }
}

impl Session {
    /// The state of a new transaction with these options.
    pub(crate) fn new(options: TxnOptions) -> Session {
        Session { options, sees: None, own: Changes::new(), savepoints: Vec::new() }
    }

    /// The change that its commit makes.
    pub(crate) fn change(&self) -> Change {
        Change::Transaction(self.own.clone())
    }

    /// Notes that its commit was acknowledged.
    pub(crate) fn acknowledge(self, oracle: &mut Oracle, world: &World<'_>) {
        let flush_log = self.options.flush_log_at_trx_commit.unwrap_or(world.flush_log);
        // One that only read has no redo to wait for.
        let is_durable = flush_log == FlushLog::Sync && !self.own.is_empty();
        oracle.in_doubt = None;
        oracle.acknowledged(Change::Transaction(self.own));
        if is_durable {
            oracle.is_durable();
        }
    }

    /// As [`Actor::act`].
    ///
    /// # Errors
    /// As [`Actor::act`].
    pub(crate) fn act(
        &mut self,
        txn: &mut WriteTxn,
        oracle: &Oracle,
        world: &World<'_>,
        rng: &mut Choices,
    ) -> Result<()> {
        let Some(name) = rng.choice(oracle.tables.keys()).cloned() else { return Ok(()) };
        let (table, model) = (call!(world.played, Database::table(world.db, &name))?, &oracle.tables[&name]);
        let target = Target { table: &table, model, commits: oracle.commits };
        let saw = self.sees;
        match rng.u32(..10) {
            0 if world.fills => self.fill(txn, target, world, rng)?,
            0..=5 => {
                let rows = self.newest(target);
                let statement = Statement::random(&rows, rng);
                self.write(txn, target, world, (&rows, &statement))?;
            }
            6..=8 => self.read(txn, target, world, rng)?,
            9 if rng.u32(..6) == 0 => self.interrupt(txn, target, world)?,
            9 if rng.u32(..6) == 0 => {
                let greatest = model.number_from(IDS).into_iter().chain(self.newest(target).into_keys()).max();
                let others = world.others.keys().filter(|(name, _)| name == table.name()).map(|(_, id)| *id).max();
                let reserved =
                    statements::reserve(txn, (&table, greatest.max(others).unwrap_or(0)), (world.played, rng));
                self.unless_younger(reserved)?;
            }
            9 if rng.u32(..4) == 0 => self.in_a_statement(txn, target, world, rng)?,
            _ => self.use_savepoint(txn, world.played, rng)?,
        }
        if saw.is_none() && self.sees.is_some() {
            // Rule 2.
            match txn.get(&table, &id_key(0)) {
                // The table was truncated after the transaction began: no view was opened for it.
                Err(Engine::Usage(_)) => self.sees = None,
                read => drop(read?),
            }
        }
        Ok(())
    }

    /// A table that was truncated after the transaction began is not changed by its snapshot.
    fn unless_younger(&self, done: Result<()>) -> Result<()> {
        match done {
            Err(Error::Engine(Engine::Usage(_))) if self.writes_by_snapshot() => Ok(()),
            done => done,
        }
    }

    /// Whether a write opens its snapshot too.
    fn writes_by_snapshot(&self) -> bool {
        self.options.first_committer_wins && self.options.isolation == Isolation::RepeatableRead
    }

    /// These rows with its own changes.
    fn with_own(&self, table: &Table, rows: Rows, dirty: &Changes) -> Rows {
        let mut rows = rows;
        for ((name, id), content) in dirty.iter().chain(&self.own) {
            match content {
                Some(content) if name == table.name() => drop(rows.insert(*id, *content)),
                None if name == table.name() => drop(rows.remove(id)),
                _ => {}
            }
        }
        rows
    }

    /// The newest committed rows with its own changes.
    fn newest(&self, Target { table, model, commits }: Target<'_>) -> Rows {
        self.with_own(table, model.at(commits), &Changes::new())
    }

    fn write(
        &mut self,
        txn: &mut WriteTxn,
        target: Target<'_>,
        world: &World<'_>,
        (rows, statement): (&Rows, &Statement),
    ) -> Result<()> {
        let Target { table, model, commits } = target;
        if self.writes_by_snapshot() {
            self.sees.get_or_insert(commits);
        }
        let name = |id: u64| (table.name().to_string(), id);
        let others = world.others.iter().filter(|((of, _), _)| of == table.name());
        let others = others.map(|((_, id), content)| (*id, *content)).collect();
        let judge = Judge { statement, rows, others: &others, is_unique: model.indexes.contains(ONE_C) };
        let wrong = |what: String| {
            Err::<Changed, Error>(Error::Data(format!("{statement:?} in table {}: {what}", table.name())))
        };
        match statement.run(txn, table, world.played) {
            Ok(answer) => {
                let changes = judge.changes(&answer).or_else(wrong)?;
                if let Some(id) = changes.keys().find(|id| self.is_changed_since_snapshot(target, &name(**id))) {
                    return wrong(format!("row {id} is newer than the snapshot, and first committers win")).map(drop);
                }
                self.own.extend(changes.into_iter().map(|(id, content)| (name(id), content)));
                Ok(())
            }
            Err(Engine::DuplicateKey { .. }) if judge.is_duplicate() => Ok(()),
            // The table was truncated after the transaction began.
            Err(Engine::Usage(_)) if self.writes_by_snapshot() => Ok(()),
            Err(error @ Engine::DuplicateKey { .. }) if !self.writes_by_snapshot() => {
                wrong(format!("there is no such key: {error}")).map(drop)
            }
            Err(error) if is_refusal(&error) => match world.is_alone && !self.writes_by_snapshot() {
                true => wrong(format!("refused though no other transaction is open: {error}")).map(drop),
                false => Ok(()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Inserts many long rows, so that the file grows.
    fn fill(&mut self, txn: &mut WriteTxn, target: Target<'_>, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        let first = rng.u64(..IDS);
        for id in first..IDS.min(first + FILLED) {
            let Content { body_bytes, letter, .. } = Content::with_body(rng.u32(8000..9000), rng);
            let rows = self.newest(target);
            let statement = Statement::put(&rows, id, Content { body_bytes, letter, ..random_content(rng) });
            self.write(txn, target, world, (&rows, &statement))?;
        }
        Ok(())
    }

    /// Whether a row has certainly changed since its snapshot, so that the transaction must not change it.
    fn is_changed_since_snapshot(&self, Target { model, commits, .. }: Target<'_>, name: &(String, u64)) -> bool {
        let seen = self.sees.filter(|_| self.writes_by_snapshot() && !self.own.contains_key(name));
        seen.is_some_and(|sees| model.newest(sees, name.1) != model.newest(commits, name.1))
    }

    /// The rows that a plain or locking read must return.
    fn seen(&mut self, Target { table, model, commits }: Target<'_>, others: &Changes, locks: bool) -> Rows {
        let none = Changes::new();
        let (at, dirty) = match self.options.isolation {
            _ if locks && !self.writes_by_snapshot() => (commits, &none),
            Isolation::RepeatableRead => (*self.sees.get_or_insert(commits), &none),
            Isolation::ReadUncommitted => (commits, others),
            Isolation::ReadCommitted | Isolation::Serializable => (commits, &none),
        };
        self.with_own(table, model.at(at), dirty)
    }

    fn read(&mut self, txn: &mut WriteTxn, target: Target<'_>, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        let Target { table, model, commits } = target;
        let query = Query::random(model, &model.at(commits), true, rng);
        // It opens no view.
        let saw = self.sees;
        let mut rows = self.seen(target, world.others, query.locks());
        if query.skips() {
            rows.retain(|id, _| !world.others.contains_key(&(table.name().to_string(), *id)));
        }
        let may_miss = query.skips() && !world.is_alone;
        if matches!(query, Query::Prefetch(_)) {
            self.sees = saw;
        }
        let is_dirty = self.options.isolation == Isolation::ReadUncommitted && !query.locks();
        match query.compare(&mut Reader::Txn(txn), table, (&rows, may_miss), world.played) {
            Err(Error::Data(_)) if is_dirty && !world.is_sound => Ok(()),
            // The index is younger than the transaction, or a row or a range is locked.
            Err(Error::Engine(Engine::Usage(_))) => Ok(()),
            Err(Error::Engine(error)) if is_refusal(&error) => Ok(()),
            Err(Error::Data(text)) => {
                let level = self.options.isolation.name();
                Err(Error::Data(format!("table {} under {level}: {text}", table.name())))
            }
            done => done,
        }
    }

    fn in_a_statement(
        &mut self,
        txn: &mut WriteTxn,
        target: Target<'_>,
        world: &World<'_>,
        rng: &mut Choices,
    ) -> Result<()> {
        let (before, rows) = (self.own.clone(), self.newest(target));
        let statement = Statement::random(&rows, rng);
        let act = |txn: &mut WriteTxn| self.write(txn, target, world, (&rows, &statement));
        if !statements::statement(txn, act, (world.played, rng))? {
            self.own = before;
        }
        Ok(())
    }

    /// Runs a scan that is interrupted before it begins.
    fn interrupt(&mut self, txn: &mut WriteTxn, target: Target<'_>, world: &World<'_>) -> Result<()> {
        let played = world.played;
        let handle = call!(played, WriteTxn::interrupt_handle(txn));
        call!(played, InterruptHandle::interrupt(&handle));
        // It opens the view that it does not use.
        self.seen(target, world.others, false);
        let counted = txn.scan(target.table).count();
        let is_pending = call!(played, InterruptHandle::is_pending(&handle));
        call!(played, InterruptHandle::clear(&handle));
        match counted {
            Err(Engine::Interrupted) if !is_pending => Ok(()),
            Err(error) if is_refusal(&error) || matches!(error, Engine::Usage(_)) => Ok(()),
            counted => Err(Error::Data(format!("interrupted: {counted:?}, still pending: {is_pending}"))),
        }
    }

    fn use_savepoint(&mut self, txn: &mut WriteTxn, played: &Played, rng: &mut Choices) -> Result<()> {
        if rng.u32(..8) == 0 {
            call!(played, WriteTxn::set_lock_wait(txn, Wait::random(rng).policy()));
            return Ok(());
        }
        if self.savepoints.is_empty() || rng.bool() {
            self.savepoints.push((call!(played, WriteTxn::savepoint(txn)), self.own.clone()));
            return Ok(());
        }
        let at = rng.usize(..self.savepoints.len());
        let (savepoint, own) = self.savepoints.swap_remove(at);
        self.savepoints.truncate(at);
        call!(played, WriteTxn::rollback_to(txn, savepoint))?;
        self.own = own;
        Ok(())
    }
}

/// An open snapshot.
pub(crate) struct Snapshot {
    read: ReadTxn,
    sees: u64,
}

impl Snapshot {
    /// Opens a snapshot, if there is a table. Its first read creates the view.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn take(oracle: &Oracle, world: &World<'_>) -> Result<Option<Snapshot>> {
        let Some(name) = oracle.tables.keys().next() else { return Ok(None) };
        let mut read = call!(world.played, Database::snapshot(world.db))?;
        read.get(&world.db.table(name)?, &id_key(0))?;
        Ok(Some(Snapshot { read, sees: oracle.commits }))
    }

    /// Another snapshot with the same view.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn same(&mut self, played: &Played) -> Result<Snapshot> {
        Ok(Snapshot { read: call!(played, ReadTxn::same_snapshot(&mut self.read))?, sees: self.sees })
    }

    /// Reads a table, unless it is younger than the snapshot.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(crate) fn look(&mut self, oracle: &Oracle, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        let Some((name, model)) = rng.choice(oracle.tables.iter()) else { return Ok(()) };
        let (table, rows) = (world.db.table(name)?, model.at(self.sees));
        if rng.u32(..16) == 0 {
            let handle = call!(world.played, ReadTxn::interrupt_handle(&mut self.read));
            handle.interrupt();
            let counted = self.read.scan(&table).count();
            // A refused scan leaves it to the next call.
            handle.clear();
            // A table that was truncated since is not read at all.
            let is_right = matches!(counted, Err(Engine::Interrupted | Engine::Usage(_)));
            return if is_right { Ok(()) } else { Err(Error::Data(format!("interrupted: {counted:?}"))) };
        }
        let query = Query::random(model, &rows, false, rng);
        match query.compare(&mut Reader::Snapshot(&mut self.read), &table, (&rows, false), world.played) {
            // The table or the index is younger.
            Err(Error::Engine(Engine::Usage(_))) => Ok(()),
            Err(Error::Data(text)) => Err(Error::Data(format!("a snapshot of table {name}: {text}"))),
            done => done,
        }
    }

    /// Reads a row and its neighbors in another transaction while a scan runs.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(crate) fn look_during_a_scan(&mut self, oracle: &Oracle, world: &World<'_>) -> Result<()> {
        let mut other = self.same(world.played)?;
        for (name, model) in &oracle.tables {
            let (table, rows) = (world.db.table(name)?, model.at(self.sees));
            let scan = match self.read.scan(&table).index(PRIMARY).iter() {
                // It was truncated since.
                Err(Engine::Usage(_)) => continue,
                scan => scan?,
            };
            for row in scan.take(5) {
                let (id, _) = content(&row?)?;
                let reader = &mut Reader::Snapshot(&mut other.read);
                Query::Get(id).compare(reader, &table, (&rows, false), world.played)?;
            }
        }
        Ok(())
    }
}
