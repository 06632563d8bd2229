//! Prepared transactions, and their ends.
//!
//! Rules
//! 1. A prepare is durable when it returns; the end of a prepared transaction is as durable as that of any transaction.
//!    An ordered commit without a wait is durable after the next sync of the log, which the log's thread performs only
//!    if a commit requires it.
//! 2. A prepared transaction is in the oracle from one life to the next. In the life in which it was prepared it may
//!    have an owner; then only the owner can end it.

use super::World;
use super::actor::Actor;
use super::choices::Choices;
use super::found;
use super::oracle::{Change, Oracle};
use super::played::call;
use highwater::config::FlushLog;
use highwater::{Database, Error as Engine, PreparedTxn, WriteTxn, Xid};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;

/// The transactions that were prepared in this life: the owner, if there is one, and the durability of the end.
#[derive(Default)]
pub(super) struct PreparedHere(BTreeMap<String, (Option<PreparedTxn>, Option<FlushLog>)>);

fn xid(name: &str) -> Result<Xid> {
    Ok(Xid::new(name.len() as i32, name.as_bytes(), &name.as_bytes()[1..])?)
}

impl PreparedHere {
    /// Prepares a transaction under a new name with this number, or sometimes under a name that is in use.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(super) fn prepare(
        &mut self,
        Actor { txn, session }: Actor,
        number: u32,
        oracle: &mut Oracle,
        world: &World<'_>,
        rng: &mut Choices,
    ) -> Result<()> {
        let taken = rng.choice(oracle.prepared.keys()).cloned();
        if let Some(taken) = taken.filter(|_| rng.u32(..8) == 0) {
            return match call!(world.played, WriteTxn::prepare(txn, xid(&taken)?)) {
                Err(Engine::DuplicateXid { .. }) => Ok(()),
                Err(error) => Err(error.into()),
                Ok(_) => Err(Error::Data(format!("two transactions are prepared as {taken}"))),
            };
        }
        let name = format!("x{number}");
        oracle.in_doubt = Some(Change::Prepare(name.clone(), session.own.clone()));
        let Some(prepared) = call!(world.played, WriteTxn::prepare(txn, xid(&name)?))? else {
            if !session.own.is_empty() {
                return Err(Error::Data(format!("{name} was not prepared, and has changed rows")));
            }
            session.acknowledge(oracle, world);
            return Ok(());
        };
        oracle.in_doubt = None;
        oracle.acknowledged(Change::Prepare(name.clone(), session.own));
        oracle.is_durable();
        if call!(world.played, PreparedTxn::xid(&prepared)) != &xid(&name)? {
            return Err(Error::Data(format!("{name} was prepared under another name")));
        }
        let owner = if rng.bool() { Some(prepared) } else { None };
        if owner.is_none() {
            world.played.note("PreparedTxn::detach");
        }
        let flush_log = session.options.flush_log_at_trx_commit;
        self.0.insert(name, (owner, flush_log));
        expect_list(oracle, world)
    }

    /// Ends one of the prepared transactions.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(super) fn end_one(&mut self, oracle: &mut Oracle, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        let Some(name) = rng.choice(oracle.prepared.keys()).cloned() else { return Ok(()) };
        let (commit, db) = (rng.u32(..3) > 0, world.db);
        let (owner, flush_log) = self.0.remove(&name).unwrap_or((None, None));
        let flush_log = flush_log.unwrap_or(world.flush_log);
        let change = Change::EndPrepared { name: name.clone(), commit };
        let owner = match owner {
            Some(owner) if rng.u32(..4) == 0 => {
                match db.finish_prepared(&xid(&name)?, commit) {
                    Err(Engine::Usage(_)) => {}
                    Err(error) => return Err(error.into()),
                    Ok(()) => return Err(Error::Data(format!("{name} was not ended by its owner"))),
                }
                call!(world.played, PreparedTxn::detach(owner));
                None
            }
            None if rng.bool() => Some(call!(world.played, Database::take_prepared(db, &xid(&name)?))?),
            owner => owner,
        };
        oracle.in_doubt = Some(change.clone());
        let (mut waits, mut is_unasked) = (flush_log == FlushLog::Sync, false);
        match owner {
            None => call!(world.played, Database::finish_prepared(db, &xid(&name)?, commit)),
            Some(owner) if !commit => call!(world.played, PreparedTxn::rollback(owner)),
            Some(owner) if rng.bool() => call!(world.played, PreparedTxn::commit(owner)),
            Some(owner) => call!(world.played, PreparedTxn::commit_ordered(owner)).and_then(|lsn| {
                waits = rng.bool();
                is_unasked = !waits;
                if waits { call!(world.played, Database::wait_durable(db, lsn)) } else { Ok(()) }
            }),
        }
        .map_err(|error| match error {
            Engine::DiskFull { .. } => Error::Data(format!("the end of {name}: {error}")),
            error => error.into(),
        })?;
        oracle.in_doubt = None;
        oracle.acknowledged(change);
        oracle.has_unasked_commit |= is_unasked;
        if waits {
            oracle.is_durable();
        }
        match call!(world.played, Database::finish_prepared(db, &xid(&name)?, commit)) {
            Err(Engine::NoSuchXid { .. }) => expect_list(oracle, world),
            Err(error) => Err(error.into()),
            Ok(()) => Err(Error::Data(format!("{name} ended twice"))),
        }
    }
}

fn expect_list(oracle: &Oracle, world: &World<'_>) -> Result<()> {
    world.played.note("Database::prepared");
    let found = found::prepared(world.db);
    match found.iter().eq(oracle.prepared.keys()) {
        true => Ok(()),
        false => Err(Error::Data(format!("{found:?} are prepared, {:?} are right", oracle.prepared.keys()))),
    }
}
