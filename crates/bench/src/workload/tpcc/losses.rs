//! The acknowledged commits that a crash may lose if `flush_log_at_trx_commit` is not 1, for the crash test.
//!
//! Rules
//! 1. The surviving commits are a prefix: if a commit returned before another one was called, and the other one
//!    survived, the first one survived too. Each record has both moments ([`Record`]).
//! 2. A call that makes everything durable (a flush of the log, a schema change) preserves all commits that returned
//!    before it was called. Such calls are recorded with the commits ([`DurableCalls`]).
//! 3. Lost commits are removed from the record before the database is used again, because their numbers are reused.

use super::acknowledge::{
    Acknowledged, Record, RecordFile, contradiction, cut_to, file_path, records, stored_sequence, tick,
};
use crate::error::Result;
use crate::store::Store;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

/// The client under which the calls of rule 2 are recorded.
const DURABLE_CALLS: u64 = u64::MAX;

fn durable_calls_path(folder: &Path) -> PathBuf {
    file_path(folder, DURABLE_CALLS)
}

/// The record of calls that make everything durable.
#[derive(Debug)]
pub struct DurableCalls(Mutex<RecordFile>);

impl DurableCalls {
    /// Opens the record under `folder`, or creates it.
    ///
    /// # Errors
    /// The file cannot be read or created.
    pub fn open(folder: &Path) -> Result<DurableCalls> {
        Ok(DurableCalls(Mutex::new(RecordFile::append_to(durable_calls_path(folder))?)))
    }

    /// Makes such a call, and records that it returned.
    ///
    /// # Errors
    /// The call's; the record cannot be written.
    pub fn call<R>(&self, call: impl FnOnce() -> highwater::Result<R>) -> Result<R> {
        let began = tick();
        let done = call()?;
        let ended = tick();
        self.0.lock().append(Record { client: DURABLE_CALLS, number: 0, began, ended })?;
        Ok(done)
    }
}

/// An event: if it survives, each commit that returned before it survives too.
struct Witness {
    what: String,
    began: u64,
}

/// Compares the record under `folder` with the database, which may have lost its last commits.
///
/// # Errors
/// The store's, or an unreadable record.
pub fn verify_prefix<S: Store>(store: &S, folder: &Path, clients: u64) -> Result<Acknowledged> {
    let mut result = Acknowledged::default();
    let mut witnesses = Vec::new();
    let mut first_lost: Option<Record> = None;
    for client in 0..clients {
        let (records, stored) = (records(&file_path(folder, client))?, stored_sequence(store, client)?);
        let recorded = records.last().map_or(0, |record| record.number);
        result.problems.extend(contradiction(client, recorded.min(stored), stored));
        let (kept, lost): (Vec<Record>, Vec<Record>) = records.iter().partition(|record| record.number <= stored);
        (result.commits, result.lost) = (result.commits + recorded, result.lost + lost.len() as u64);
        first_lost = first_lost.into_iter().chain(lost.first().copied()).min_by_key(|record| record.ended);
        // A commit that was not recorded was called after the previous one.
        let unrecorded = (stored > recorded).then(|| kept.last().map_or(0, |record| record.ended));
        let began = unrecorded.or(kept.last().map(|record| record.began));
        witnesses.extend(began.map(|began| Witness { what: format!("commit {stored} of client {client}"), began }));
    }
    let calls = records(&durable_calls_path(folder))?;
    let call = calls.iter().map(|call| call.began).max();
    witnesses.extend(call.map(|began| Witness { what: "a call that makes everything durable".to_string(), began }));
    if let Some(Record { client, number, ended, .. }) = first_lost
        && let Some(witness) = witnesses.iter().find(|witness| witness.began > ended)
    {
        let what = &witness.what;
        let text =
            format!("client {client}: commit {number} was acknowledged and is lost, {what} came later and is not");
        result.problems.push(text);
    }
    Ok(result)
}

/// Removes the lost commits from the record.
///
/// # Errors
/// The store's, or a file that cannot be cut.
pub fn accept_losses<S: Store>(store: &S, folder: &Path, clients: u64) -> Result<()> {
    for client in 0..clients {
        let (path, stored) = (file_path(folder, client), stored_sequence(store, client)?);
        let records = records(&path)?;
        let kept = records.iter().take_while(|record| record.number <= stored).count();
        if kept < records.len() {
            cut_to(&path, (kept * Record::BYTES) as u64)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::acknowledge::{Acknowledger, prepare, verify};
    use super::*;
    use crate::store::model::Model;
    use crate::store::{Read, Session};

    fn commit(store: &Model, ack: &mut Acknowledger<usize>, is_lost: bool) {
        let mut session = store.session().unwrap();
        let mut txn = session.begin().unwrap();
        if !is_lost {
            ack.mark(&mut txn).unwrap();
        }
        txn.finish().unwrap();
        ack.acknowledged().unwrap();
    }

    fn problems(store: &Model, folder: &Path) -> Vec<String> {
        verify_prefix(store, folder, 2).unwrap().problems
    }

    #[test]
    fn the_last_commits_may_be_lost_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (store, path) = (Model::default(), folder.path());
        prepare(&store, 2).unwrap();
        let calls = DurableCalls::open(path).unwrap();
        let [mut a, mut b] = [0, 1].map(|client| Acknowledger::open(&store, path, client).unwrap());
        commit(&store, &mut a, false);
        calls.call(|| Ok(())).unwrap();
        commit(&store, &mut b, false);
        commit(&store, &mut a, true);
        commit(&store, &mut a, true);
        let found = verify_prefix(&store, path, 2).unwrap();
        assert_eq!((found.commits, found.lost, found.problems.len()), (4, 2, 0), "{found:?}");
        assert_eq!(verify(&store, path, 2).unwrap().problems.len(), 1, "where none may be lost");

        commit(&store, &mut b, false);
        let found = problems(&store, path);
        assert!(found[0].contains("commit 2 was acknowledged and is lost, commit 2 of client 1"), "{found:?}");
        accept_losses(&store, path, 2).unwrap();
        assert_eq!(verify(&store, path, 2).unwrap(), Acknowledged { commits: 3, ..Acknowledged::default() });

        commit(&store, &mut Acknowledger::open(&store, path, 0).unwrap(), true);
        assert!(problems(&store, path).is_empty());
        calls.call(|| Ok(())).unwrap();
        assert!(problems(&store, path)[0].contains("a call that makes everything durable"));
    }

    #[test]
    fn a_commit_that_was_never_made_is_a_problem_in_every_mode() {
        let folder = tempfile::tempdir().unwrap();
        let store = Model::default();
        prepare(&store, 2).unwrap();
        let mut ack = Acknowledger::open(&store, folder.path(), 0).unwrap();
        for _ in 0..2 {
            let mut session = store.session().unwrap();
            let mut txn = session.begin().unwrap();
            ack.mark(&mut txn).unwrap();
            txn.finish().unwrap();
            ack.acknowledged().unwrap();
        }
        std::fs::remove_file(file_path(folder.path(), 0)).unwrap();
        assert_eq!(problems(&store, folder.path()).len(), 1);
    }
}
