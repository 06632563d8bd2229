//! For unit tests: databases in memory.

use crate::btree::check::promised_bytes;
use crate::btree::{BTree, Seek};
use crate::config::{Doublewrite, FlushNeighbors, Options, PageSize, VictimPolicy};
use crate::context::Context;
use crate::db::open_parts::OpenParts;
pub(crate) use crate::internals::test_part::is_tried;
use crate::page::Node;
use crate::space::Space;
use crate::types::PageNo;
use highwater_storage::{Device, Request, StorageSet, TestDevice};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Options of a small database: 4 KiB pages, 1 MiB pool, 4 MiB log.
pub(crate) fn small_options() -> Options {
    Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 1 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        ..Options::default()
    }
}

/// `small_options` with a victim policy, a neighbor option and a protection from torn pages that the seed chooses;
/// eighteen seeds in a row give every combination.
pub(crate) fn seeded_options(seed: u64) -> Options {
    let victim_policy = [VictimPolicy::LruClean, VictimPolicy::Raw, VictimPolicy::War][seed as usize % 3];
    let neighbors = [FlushNeighbors::Off, FlushNeighbors::Contiguous, FlushNeighbors::Extent];
    let doublewrite = [Doublewrite::On, Doublewrite::Journal][seed as usize % 2];
    let journal_size = 8 << 20;
    let flush_neighbors = neighbors[seed as usize / 3 % 3];
    Options { victim_policy, flush_neighbors, doublewrite, journal_size, ..small_options() }
}

/// A small database in memory without background threads: call the steps yourself.
pub(crate) fn small_parts() -> OpenParts {
    open(StorageSet::memory(), small_options())
}

/// Opens a set in any state.
pub(crate) fn open(storage: StorageSet, options: Options) -> OpenParts {
    OpenParts::open(storage, options).expect("a database in memory opens")
}

/// Every record of a tree, delete-marked ones too.
pub(crate) fn records(parts: &OpenParts, tree: &BTree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    let (mut key, mut from) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let leaf = tree.leaf(&parts.ctx, from.as_deref().map_or(Seek::First, Seek::Covers)).unwrap();
        for slot in 0..leaf.len() {
            leaf.key_into(slot, &mut key);
            all.insert(key.clone(), leaf.value(slot).to_vec());
        }
        match leaf.upper() {
            None => return all,
            Some(upper) => from = Some(upper.to_vec()),
        }
    }
}

/// The read that a [`ReadGate`] delays, and whether a thread waits for it.
#[derive(Default)]
struct HeldBack {
    offset: Option<u64>,
    readers: usize,
}

/// Holds reads of one page back until they are released.
#[derive(Clone, Default)]
pub(crate) struct ReadGate {
    held: Arc<(Mutex<HeldBack>, Condvar)>,
}

/// Maximum wait of a test for another thread; after it the thread counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

impl ReadGate {
    /// A core over memory whose data device has this gate.
    pub(crate) fn open(&self, options: Options) -> OpenParts {
        let memory = StorageSet::memory();
        open(memory.map(|inner| self.before(inner)), options)
    }

    fn before(&self, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        let gate = self.clone();
        Arc::new(TestDevice::over(inner).before(move |request| {
            if let Request::Read { offset, .. } = request {
                gate.pass(offset);
            }
            Ok(())
        }))
    }

    /// From now on a thread that reads this page waits.
    pub(crate) fn hold(&self, page: PageNo, page_bytes: usize) {
        self.held.0.lock().offset = Some(u64::from(page.0) * page_bytes as u64);
    }

    /// Waits until a thread does.
    pub(crate) fn await_reader(&self) {
        let mut held = self.held.0.lock();
        while held.readers == 0 {
            assert!(!self.held.1.wait_for(&mut held, STUCK).timed_out(), "no thread reads the page");
        }
    }

    /// Lets all reads continue.
    pub(crate) fn release(&self) {
        self.held.0.lock().offset = None;
        self.held.1.notify_all();
    }

    fn pass(&self, offset: u64) {
        let mut held = self.held.0.lock();
        held.readers += usize::from(held.offset == Some(offset));
        self.held.1.notify_all();
        while held.offset == Some(offset) {
            // A test that has failed meanwhile lets no thread continue.
            assert!(!self.held.1.wait_for(&mut held, STUCK).timed_out(), "the test does not let the read continue");
        }
    }
}

/// A device that prefers discards.
pub(crate) fn preferring_discards(inner: Arc<dyn Device>) -> Arc<dyn Device> {
    Arc::new(TestDevice::over(inner).preferring_discards())
}

/// Asserts that no leaf of the tree has less free space than its free class. No thread changes the tree meanwhile.
pub(crate) fn assert_free_classes(ctx: &Context, space: &Space, tree: &BTree) {
    let mut from = None::<Vec<u8>>;
    loop {
        let leaf = tree.leaf(ctx, from.as_deref().map_or(Seek::First, Seek::Covers)).unwrap();
        let (page, is_root) = (leaf.page_no(), leaf.lower().is_none() && leaf.upper().is_none());
        let next = leaf.upper().map(<[u8]>::to_vec);
        drop(leaf);
        // The class first: a change that frees space may raise it afterwards.
        let min_bytes = promised_bytes(space, ctx, page).unwrap();
        let free_bytes = Node::new(&ctx.pool.fix_s(page).unwrap()).free_bytes();
        assert!(is_root || free_bytes >= min_bytes, "leaf {page} has {free_bytes} bytes free, {min_bytes} noted");
        match next {
            None => return,
            upper => from = upper,
        }
    }
}
