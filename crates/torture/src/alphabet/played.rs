//! A record of the engine's calls that were played.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The played calls with their counts; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Played(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Played {
    /// Notes a call of this name. [`call!`] also makes the call.
    pub fn note(&self, name: &'static str) {
        *self.0.lock().entry(name).or_default() += 1;
    }

    /// The names of the calls so far, as `Type::method`.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.lock().keys().copied().collect()
    }
}

/// Calls a method of the engine and notes its name: `call!(played, WriteTxn::get(&mut txn, &table, &key))`.
macro_rules! call {
    ($played:expr, $type:ident::$method:ident($($argument:expr),* $(,)?)) => {{
        $played.note(concat!(stringify!($type), "::", stringify!($method)));
        $type::$method($($argument),*)
    }};
}
pub(crate) use call;
