//! Every order in which threads that open views, a transaction that leaves, and purge, which looks for the oldest view,
//! can take their steps (loom).

mod atomic {
    pub(crate) use crate::sync::checked::loom_primitives::{Mutex, MutexGuard};
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
}
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../active.rs"]
mod active;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../read/view.rs"]
mod view;
#[allow(dead_code, reason = "the model needs no more of it")]
#[path = "../read/views.rs"]
mod views;

use crate::types::TxnId;
use active::ActiveSet;
use loom::sync::Arc;
use view::ReadView;
use views::Views;

/// Purge removes versions that no view needs: a view that is opened concurrently, in any list, sees every transaction
/// that purge's view sees.
#[test]
fn no_view_is_older_than_the_view_of_purge() {
    for list in 0..2 {
        crate::sync::checked::model(3, move || {
            let set = ActiveSet::new(1, 1);
            set.raise_limit(100);
            let id = set.enter(0).unwrap();
            let all = Arc::new((set, Views::new(2)));
            // A closed view of a moment ago is what the list still has.
            drop(all.1.open(&all.0, list, || 0));
            let (reader, writer) = (all.clone(), all.clone());
            let reader = loom::thread::spawn(move || reader.1.open(&reader.0, list, || 0));
            let writer = loom::thread::spawn(move || writer.0.leave(0, id));
            let mut purge = ReadView::default();
            all.1.copy_oldest(&all.0, &mut purge);
            let opened = reader.join().unwrap();
            writer.join().unwrap();
            let (by_purge, by_reader) = (purge.sees(TxnId(id)), opened.view.sees(TxnId(id)));
            assert!(by_reader || !by_purge, "purge takes away what a reader needs: {purge:?} {opened:?}");
        });
    }
}
