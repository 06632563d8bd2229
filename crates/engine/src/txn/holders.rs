//! The holders of active transactions, found by id.
//!
//! Rules
//! 1. A transaction is entered before it writes its first row, and removed after it has left the active set and before
//!    its explicit locks are released. So if the id of a row is not here, the row has no implicit lock, and the
//!    transaction with that id has its commit tick.
//! 2. Shards by id; a shard's mutex is taken under page latches, and no other lock is taken under it.

use crate::lock::Holder;
use crate::sync::Mutex;
use crate::sync::sharded::CachePadded;
use crate::types::TxnId;
use smallvec::SmallVec;
use std::sync::Arc;

/// Consecutive ids are in different shards.
const SHARDS: u64 = 64;

/// Seldom more than two; these are stored inline, next to the mutex.
type Members = SmallVec<[(TxnId, Arc<Holder>); 2]>;

type Shard = CachePadded<Mutex<Members>>;

#[derive(Debug)]
pub(crate) struct Holders(Box<[Shard]>);

impl Default for Holders {
    fn default() -> Holders {
        Holders((0..SHARDS).map(|_| Shard::default()).collect())
    }
}

impl Holders {
    fn shard(&self, id: TxnId) -> &Mutex<Members> {
        &self.0[(id.0 % SHARDS) as usize]
    }

    pub(crate) fn enter(&self, id: TxnId, holder: Arc<Holder>) {
        let mut shard = self.shard(id).lock();
        debug_assert!(shard.iter().all(|(there, _)| *there != id), "rule 1: the transaction {id} is entered twice");
        shard.push((id, holder));
    }

    pub(crate) fn leave(&self, id: TxnId) {
        let mut shard = self.shard(id).lock();
        let found = shard.iter().position(|(there, _)| *there == id);
        debug_assert!(found.is_some(), "rule 1: the transaction {id} leaves that was not entered");
        if let Some(at) = found {
            shard.swap_remove(at);
        }
    }

    pub(crate) fn get(&self, id: TxnId) -> Option<Arc<Holder>> {
        let shard = self.shard(id).lock();
        shard.iter().find(|(there, _)| *there == id).map(|(_, holder)| Arc::clone(holder))
    }
}
