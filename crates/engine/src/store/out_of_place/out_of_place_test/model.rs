//! Every short history of a small store, and every power cut of each.
//!
//! A history is a sequence of [`Step`]s after one of a few beginnings. Before each sync of its last step, and at its
//! end, the power is cut in every way that matters ([`every_fate`]): of the changes that are not durable any may be
//! kept, lost or torn. Cuts at other moments need not be tried: what they leave is also left by one at the next sync.
//! Then the store is opened. It must hold of every page the version that was acknowledged, or the one that was being
//! written; its accounts must be right. It writes another batch, which calls durable what the cut left, and is opened
//! again.
//!
//! Histories continue after a cut too: [`Step::Lose`], [`Step::Keep`]. A step that changes nothing ends its history.

use super::*;
use crate::store::hooks::{Hook, Hooks};
use std::collections::BTreeMap;

const PAGE: usize = 16384;
const SEGMENT: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Writes page 2.
    One,
    /// Writes three pages, among them the last; they fit one segment, but seldom the rest of one.
    Several,
    Clean,
    /// Forgets page 3.
    Forget,
    /// Reserves one page more, and syncs.
    Grow,
    /// A power cut that loses every change that is not durable.
    Lose,
    /// A power cut that keeps them all.
    Keep,
}
use Step::{Clean, Forget, Grow, Keep, Lose, One, Several};

const STEPS: [Step; 7] = [One, Several, Clean, Forget, Grow, Lose, Keep];

/// What the pages may be.
#[derive(Clone)]
struct Model {
    pages: u32,
    /// Acknowledged versions; other pages read as zeros.
    lsns: BTreeMap<u32, u64>,
    /// The batch that is being written has the newest LSN.
    writing: Vec<u32>,
    newest: u64,
    /// Page 3 was forgotten: it may be of any version, or zeros.
    forgotten: bool,
}

/// What histories have after them.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    pages: u32,
    lifetime_streams: usize,
    steps: &'static [Step],
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    histories: u64,
    syncs: u64,
    cuts: u64,
    /// Histories whose last step cleaned a segment.
    cleaned: u64,
}

/// A store in the middle of a history.
struct Life {
    memory: MemoryDevice,
    store: OutOfPlace,
    hooks: Arc<Hooks>,
    model: Arc<Mutex<Model>>,
}

fn geometry() -> StoreGeometry {
    StoreGeometry { page_bytes: PAGE, segment_bytes: SEGMENT, database_id: 77 }
}

fn version(page: u32, lsn: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    PageOp::Format { page_type: PageType::Overflow, level: 0, owner: 9 }.apply(&mut bytes).unwrap();
    bytes[page::HEADER_BYTES..].fill(lsn as u8);
    page::header::set_lsn(&mut bytes, Lsn(lsn));
    page::header::stamp(&mut bytes, PageNo(page));
    bytes
}

fn write_pages(store: &OutOfPlace, pages: &[u32], lsn: u64) {
    let mut batch = PageBatch::new(pages.len(), PAGE);
    pages.iter().for_each(|page| batch.push(&version(*page, lsn), PageNo(*page)));
    store.write(&mut batch, FlushLane::FlushList).unwrap();
}

fn open_model(device: Arc<dyn Device>) -> OutOfPlace {
    let scanned = scan(&*device, geometry(), 1).unwrap();
    scanned.check_complete("data", Lsn(0)..Lsn(u64::MAX)).unwrap();
    let stats = Arc::new(Stats::default());
    OutOfPlace::open(device, geometry(), scanned, &settings(PageCompression::Off), stats).unwrap()
}

impl Model {
    /// Whether an opened store is as it must be; says of which version each page is.
    fn check(&self, store: &OutOfPlace) -> BTreeMap<u32, u64> {
        assert_eq!(store.problems(), Vec::<String>::new());
        let pages = store.pages().unwrap() as u32;
        assert!(pages == self.pages || pages == self.pages + 1, "{pages} pages, {} were reserved", self.pages);
        let mut bytes = AlignedBuf::zeroed(PAGE);
        let written = self.lsns.keys().chain(&self.writing).chain(&[3]).copied();
        let mut found = BTreeMap::new();
        for page in written {
            store.read(PageNo(page), &mut bytes).unwrap();
            let is_zeros = bytes.iter().all(|byte| *byte == 0);
            let lsn = if is_zeros { 0 } else { page::header::lsn(&bytes).0 };
            assert!(is_zeros || bytes[..] == version(page, lsn), "page {page} is not what was written");
            let least = self.lsns.get(&page).copied().unwrap_or(0);
            let is_free = page == 3 && self.forgotten && lsn <= self.newest;
            let is_written = self.writing.contains(&page) && lsn == self.newest;
            assert!(is_free || is_written || lsn == least, "page {page} is of version {lsn}, not {least}");
            found.extend((lsn > 0).then_some((page, lsn)));
        }
        found
    }
}

/// What a power cut may leave of changes that are not durable.
fn every_fate(unsynced: &[Range<u64>]) -> Vec<Vec<Vec<Range<u64>>>> {
    let count = unsynced.len();
    assert!(count < 12, "{count} changes at once");
    let some = |is_kept: &dyn Fn(usize) -> bool| -> Vec<Vec<Range<u64>>> {
        unsynced.iter().enumerate().map(|(n, range)| if is_kept(n) { vec![range.clone()] } else { vec![] }).collect()
    };
    let mut fates: Vec<_> = (0..1_u32 << count).map(|kept| some(&|n| kept >> n & 1 == 1)).collect();
    let block = BLOCK_BYTES as u64;
    for (n, Range { start, end }) in unsynced.iter().cloned().enumerate() {
        // The header and a part of an image, or of a summary; all but the header; all but the end, or the footer.
        let part = if end - start > block { block } else { 512 };
        for torn in [start..start + part, start + 512..end, start..end - part] {
            for mut others in [some(&|_| true), some(&|other| other < n), some(&|_| false)] {
                others[n] = vec![torn.clone()];
                fates.push(others);
            }
        }
    }
    fates
}

/// Cuts the power now in every way, and looks at what each leaves.
fn cut_everywhere(memory: &MemoryDevice, model: &Model) -> u64 {
    let fates = every_fate(&memory.unsynced());
    for fate in &fates {
        let cut: Arc<dyn Device> = Arc::new(memory.cut_to(fate));
        let store = open_model(cut.clone());
        let found = model.check(&store);
        let pages = store.pages().unwrap() as u32;
        let next = Model { pages, lsns: found, writing: vec![], newest: model.newest + 1, ..model.clone() };
        write_pages(&store, &[2], next.newest);
        drop(store);
        let mut lsns = next.lsns.clone();
        lsns.insert(2, next.newest);
        Model { lsns, ..next }.check(&open_model(cut));
    }
    fates.len() as u64
}

impl Life {
    /// A new store that was opened once, on a device that keeps this many lifetimes apart.
    fn begin(pages: u32, lifetime_streams: usize) -> Life {
        let memory = MemoryDevice::new().with_lifetime_streams(lifetime_streams);
        memory.set_len_bytes(u64::from(pages) * PAGE as u64).unwrap();
        memory.sync().unwrap();
        let model = Model { pages, lsns: BTreeMap::new(), writing: vec![], newest: 0, forgotten: false };
        Life::open(memory, Arc::new(Mutex::new(model)), |_, _, _| {})
    }

    /// Opens what is there; `prepare` may watch that.
    fn open(
        memory: MemoryDevice,
        model: Arc<Mutex<Model>>,
        prepare: impl FnOnce(&Hooks, &MemoryDevice, &Arc<Mutex<Model>>),
    ) -> Life {
        let hooks = Arc::new(Hooks::default());
        prepare(&hooks, &memory, &model);
        let store = open_model(hooks.over(Arc::new(memory.clone())));
        model.lock().check(&store);
        Life { memory, store, hooks, model }
    }

    /// One step; returns whether it changed anything, and whether a segment was cleaned.
    fn step(self, step: Step, counts: Option<&Arc<Mutex<Counts>>>) -> (Life, bool) {
        let watch = |hooks: &Hooks, memory: &MemoryDevice, model: &Arc<Mutex<Model>>| {
            let (memory, model) = (memory.clone(), model.clone());
            *hooks.before_sync.lock() = counts.cloned().map(|counts| -> Hook {
                Box::new(move || {
                    let cuts = cut_everywhere(&memory, &model.lock());
                    let mut counts = counts.lock();
                    (counts.syncs, counts.cuts) = (counts.syncs + 1, counts.cuts + cuts);
                })
            });
        };
        watch(&self.hooks, &self.memory, &self.model);
        let before = (self.memory.unsynced().len(), self.store.segments.map.all(), self.store.segments.usage());
        let mut is_other = true;
        let life = match step {
            One => self.write(&[2]),
            Several => {
                let last = self.model.lock().pages - 1;
                self.write(&[2, 3, last])
            }
            Clean => {
                is_other = self.store.clean_step().unwrap();
                self
            }
            Forget => {
                self.model.lock().forgotten = true;
                self.model.lock().lsns.remove(&3);
                self.store.discard(3..4);
                is_other = before.1 != self.store.segments.map.all();
                self
            }
            Grow => {
                let pages = self.model.lock().pages;
                self.store.reserve(pages..pages + 1).unwrap();
                self.store.sync().unwrap();
                self.model.lock().pages += 1;
                self
            }
            Lose | Keep => {
                let unsynced = self.memory.unsynced();
                is_other = step == Keep || !unsynced.is_empty();
                let fate = |range| if step == Keep { vec![range] } else { vec![] };
                let cut = self.memory.cut_to(&unsynced.into_iter().map(fate).collect::<Vec<_>>());
                let Life { model, store, .. } = self;
                drop(store);
                Life::open(cut, model, watch)
            }
        };
        if let Some(counts) = counts.filter(|_| is_other) {
            let cuts = cut_everywhere(&life.memory, &life.model.lock());
            counts.lock().cuts += cuts;
        }
        *life.hooks.before_sync.lock() = None;
        (life, is_other)
    }

    fn write(self, pages: &[u32]) -> Life {
        let lsn = {
            let mut model = self.model.lock();
            model.newest += 1;
            model.writing = pages.to_vec();
            model.newest
        };
        write_pages(&self.store, pages, lsn);
        let mut model = self.model.lock();
        model.writing.clear();
        model.lsns.extend(pages.iter().map(|page| (*page, lsn)));
        model.forgotten &= !pages.contains(&3);
        drop(model);
        self
    }
}

/// Tries the history, and all that continue from it for `more` steps.
fn explore(beginning: &Beginning, history: &mut Vec<Step>, more: u32, counts: &Arc<Mutex<Counts>>) {
    let (last, before) = history.split_last().expect("a history has a step");
    let mut life = Life::begin(beginning.pages, beginning.lifetime_streams);
    for step in beginning.steps.iter().chain(before) {
        life = life.step(*step, None).0;
    }
    let (_, is_other) = life.step(*last, Some(counts));
    if !is_other {
        return;
    }
    counts.lock().histories += 1;
    counts.lock().cleaned += u64::from(*last == Clean);
    for step in STEPS.iter().filter(|_| more > 0) {
        history.push(*step);
        explore(beginning, history, more - 1, counts);
        history.pop();
    }
}

/// All histories of this many steps, by several threads.
fn explore_all(beginning: Beginning, steps: u32) -> Counts {
    let counts = Arc::new(Mutex::new(Counts::default()));
    std::thread::scope(|scope| {
        for step in STEPS {
            let counts = &counts;
            scope.spawn(move || explore(&beginning, &mut vec![step], steps - 1, counts));
        }
    });
    let counts = *counts.lock();
    println!("{steps} steps behind {beginning:?}: {counts:?}");
    counts
}

/// So few pages that every third batch uses a segment again.
#[test]
fn every_short_history_of_a_small_store_survives_every_power_cut() {
    let small = Beginning { pages: 5, lifetime_streams: 1, steps: &[] };
    let counts = explore_all(small, 3);
    assert!(counts.histories > 100 && counts.cuts > 2_000, "{counts:?}");
    let counts = explore_all(Beginning { steps: &[Several, One, Several, Clean, One], ..small }, 4);
    assert!(counts.histories > 1_300 && counts.cuts > 25_000 && counts.cleaned > 100, "{counts:?}");
}

/// This many segments that there are two groups, each with an open one.
#[test]
fn every_short_history_of_a_store_with_two_groups_survives_every_power_cut() {
    let beginning = Beginning { pages: 204, lifetime_streams: 2, steps: &[Several, One, One, Several] };
    assert_eq!(Life::begin(beginning.pages, beginning.lifetime_streams).store.groups(), 2);
    let counts = explore_all(beginning, 2);
    assert!(counts.histories > 40 && counts.cuts > 1_000, "{counts:?}");
}
