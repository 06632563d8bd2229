//! Statements of several calls, sessions, numbers of an auto-increment column.

use super::World;
use super::actor::{Session as Known, random_options};
use super::choices::Choices;
use super::oracle::Oracle;
use super::played::{Played, call};
use highwater::{Database, LockWait, NumberRange, Session, Table, WriteTxn};
use highwater_bench::{Error, Result};

/// Runs statements as one statement of several calls; returns whether their changes stay.
///
/// # Errors
/// Those of `act`; the engine's.
pub(super) fn statement(
    txn: &mut WriteTxn,
    act: impl FnOnce(&mut WriteTxn) -> Result<()>,
    (played, rng): (&Played, &mut Choices),
) -> Result<bool> {
    if rng.bool() {
        let done: Result<()> = call!(played, WriteTxn::statement(txn, act));
        return done.map(|()| true);
    }
    call!(played, WriteTxn::begin_statement(txn))?;
    act(txn)?;
    let stays = rng.bool();
    if stays {
        call!(played, WriteTxn::end_statement(txn))?;
    } else {
        call!(played, WriteTxn::undo_statement(txn))?;
    }
    Ok(stays)
}

/// Reserves auto-increment numbers that no row has.
///
/// # Errors
/// [`Error::Data`] for a number that a row has or that is assigned again; the engine's.
pub(super) fn reserve(
    txn: &mut WriteTxn,
    (table, greatest): (&Table, u64),
    (played, rng): (&Played, &mut Choices),
) -> Result<()> {
    let range = NumberRange { count: rng.u64(1..4), every: rng.u64(1..4), offset: rng.u64(..4) };
    let first = if rng.bool() {
        call!(played, WriteTxn::begin_statement(txn))?;
        let locked = call!(played, WriteTxn::lock_numbers(txn, table));
        let first = locked.and_then(|()| call!(played, WriteTxn::reserve_numbers(txn, table, range)));
        call!(played, WriteTxn::end_statement(txn))?;
        first?
    } else {
        call!(played, WriteTxn::reserve_numbers(txn, table, range))?
    };
    let last = first + (range.count - 1) * range.every;
    let next = call!(played, Table::next_number(table));
    if first <= greatest || first % range.every != range.offset % range.every || next != Some(last + 1) {
        return Err(Error::Data(format!("{range:?} is {first}, then comes {next:?}; a row has {greatest}")));
    }
    if rng.bool() {
        call!(played, WriteTxn::set_next_number(txn, table, last + 3))?;
    }
    Ok(())
}

/// Runs two transactions of a session, one after another.
///
/// # Errors
/// The engine's; [`Error::Data`] for a wrong answer.
pub(super) fn session(oracle: &mut Oracle, world: &World<'_>, rng: &mut Choices) -> Result<()> {
    let played = world.played;
    let mut session = call!(played, Database::session(world.db));
    let handle = call!(played, Session::interrupt_handle(&session));
    for _ in 0..2 {
        let options = random_options(rng);
        call!(played, Session::set_options(&mut session, options.clone()));
        call!(played, Session::set_lock_wait(&mut session, LockWait::NoWait));
        let mut state = Known::new(options);
        for _ in 0..rng.u32(1..4) {
            state.act(call!(played, Session::txn(&mut session))?, oracle, world, rng)?;
        }
        if !call!(played, Session::is_open(&session)) || handle.is_pending() {
            return Err(Error::Data("a session has lost its transaction".into()));
        }
        if rng.u32(..4) == 0 {
            call!(played, Session::rollback(&mut session))?;
            continue;
        }
        oracle.in_doubt = Some(state.change());
        call!(played, Session::commit(&mut session))?;
        state.acknowledge(oracle, world);
    }
    Ok(())
}
