//! Snapshots that connections share, so that a reader reads one on several threads.
//!
//! Rules
//! 1. An offer is a separate transaction that reads the same snapshot. It is taken once, by its random number.
//! 2. A connection has at most one offer that was not taken; it ends with the next one, and with the connection.

use crate::db::read_txn::ReadTxn;
use crate::sync::Mutex;
use crate::types::random_id;
use std::collections::HashMap;
use std::sync::Arc;

/// The offers of all connections.
#[derive(Default)]
pub(super) struct Offers(Mutex<HashMap<u64, ReadTxn>>);

impl Offers {
    /// Takes an offer.
    pub(super) fn take(&self, number: u64) -> Option<ReadTxn> {
        self.0.lock().remove(&number)
    }
}

/// The offer of one connection.
pub(super) struct OwnOffer {
    offers: Arc<Offers>,
    number: Option<u64>,
}

impl OwnOffer {
    pub(super) fn new(offers: Arc<Offers>) -> OwnOffer {
        OwnOffer { offers, number: None }
    }

    pub(super) fn all(&self) -> &Offers {
        &self.offers
    }

    /// Offers a snapshot; says by which number.
    pub(super) fn put(&mut self, read: ReadTxn) -> u64 {
        self.withdraw();
        let number = random_id();
        let another = self.offers.0.lock().insert(number, read);
        debug_assert!(another.is_none(), "rule 1: two offers have the number {number}");
        self.number = Some(number);
        number
    }

    fn withdraw(&mut self) {
        // The transaction ends outside of the mutex.
        drop(self.number.take().and_then(|number| self.offers.take(number)));
    }
}

impl Drop for OwnOffer {
    fn drop(&mut self) {
        self.withdraw();
    }
}
