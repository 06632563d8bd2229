//! Power cuts at any write or sync, also after one another: what was acknowledged is there.

use super::*;

/// What a run had acknowledged when its power was cut.
#[derive(Default)]
struct Acknowledged {
    lsns: HashMap<u32, u64>,
    /// The last batch, whose fate is open.
    last: Vec<u32>,
    last_lsn: u64,
    pages: u32,
}

impl Acknowledged {
    /// The last batch was acknowledged.
    fn note(&mut self) {
        let lsn = self.last_lsn;
        self.lsns.extend(std::mem::take(&mut self.last).into_iter().map(|page| (page, lsn)));
    }
}

/// A fixed run: creation, batches, growth, cleaning; ends when a call fails. Returns how far it came.
fn run(storage: &StorageSet, seed: u64, steps: u64) -> Acknowledged {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acknowledged = Acknowledged { pages: NEW_PAGES, ..Acknowledged::default() };
    let Ok(store) = open_after(storage, 0, PageCompression::ALL[seed as usize % 3]) else { return acknowledged };
    for lsn in 1..=steps {
        let done = match random.u32(..30) {
            0 => {
                let pages = acknowledged.pages;
                let grown = store.reserve(pages..pages + 64).map_err(Error::from).and_then(|()| store.sync());
                acknowledged.pages += if grown.is_ok() { 64 } else { 0 };
                grown
            }
            1..5 => store.clean_step().map(drop),
            chance => {
                let max = if chance < 9 { 1 } else { 60 };
                let lane = if max == 1 { FlushLane::SinglePage } else { FlushLane::LruList };
                acknowledged.last = some_pages(&mut random, acknowledged.pages, max);
                acknowledged.last_lsn = lsn;
                let written = write(&*store, &acknowledged.last, lsn, lane);
                if written.is_ok() {
                    acknowledged.note();
                }
                written
            }
        };
        if done.is_err() {
            break;
        }
    }
    acknowledged
}

/// Opens what a cut left and compares. Opens it again: that changes nothing.
fn assert_nothing_lost(cut: &StorageSet, acknowledged: &Acknowledged, when: &str) {
    for opening in 0..2 {
        let store = open_after(cut, 0, PageCompression::Off).unwrap_or_else(|e| panic!("{when}: {e}"));
        assert_sound(&*store, when);
        assert!(store.pages().unwrap() >= u64::from(acknowledged.pages), "{when}: pages that were reserved");
        for page in 2..acknowledged.pages {
            let least = acknowledged.lsns.get(&page).copied().unwrap_or(0);
            let found = page::header::lsn(&read(&*store, page)).0;
            let may_be_last = acknowledged.last.contains(&page) && found == acknowledged.last_lsn;
            assert!(found == least || may_be_last, "{when}: page {page} is of LSN {found}, not {least}");
            assert_holds(&*store, page, found, &format!("{when}, opening {opening}"));
        }
    }
}

#[test]
fn a_power_cut_at_any_write_or_sync_loses_nothing() {
    for seed in 0..3 {
        let faults = Faults::new();
        let storage = new_store();
        run(&storage.map(|device| faults.wrap(device)), seed, 260);
        let all = faults.changes();
        assert!(all > 500, "{all} writes and syncs");
        for at in (0..all).step_by(7).filter(|at| is_tried(at / 7)) {
            let (storage, faults) = (new_store(), Faults::new());
            faults.power_off_after(at + seed);
            let acknowledged = run(&storage.map(|device| faults.wrap(device)), seed, 260);
            let cut = storage.cut(seed << 32 | at);
            assert_nothing_lost(&cut, &acknowledged, &format!("seed {seed}, cut after {at}"));
        }
    }
}

/// The store opens after a cut, and what it writes then is cut again.
#[test]
fn a_second_power_cut_loses_nothing_either() {
    for case in (0..150).filter(|case| is_tried(*case)) {
        let mut random = fastrand::Rng::with_seed(case);
        let mut storage = new_store();
        let mut all = Acknowledged::default();
        for (life, seed) in (case..case + 4).enumerate() {
            let faults = Faults::new();
            // Every other life is short: what a cut tore before it has not been written again when it ends.
            faults.power_off_after(random.u64(..if life % 2 == 0 { 400 } else { 24 }));
            let mut found = run_on(&storage.map(|device| faults.wrap(device)), seed, &mut all);
            storage = storage.cut(seed);
            found.pages = found.pages.max(NEW_PAGES);
            assert_nothing_lost(&storage, &found, &format!("case {case}, life {life}"));
            all = settled(&storage, &found);
        }
    }
}

/// Continues with a store whose pages are as `all` says.
fn run_on(storage: &StorageSet, seed: u64, all: &mut Acknowledged) -> Acknowledged {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut next = Acknowledged { lsns: all.lsns.clone(), pages: all.pages.max(NEW_PAGES), ..Acknowledged::default() };
    let first = all.lsns.values().max().copied().unwrap_or(0) + 1;
    let Ok(store) = open_after(storage, 0, PageCompression::Zstd) else { return next };
    for lsn in first..first + 200 {
        next.last = some_pages(&mut random, next.pages, 30);
        next.last_lsn = lsn;
        if write(&*store, &next.last, lsn, FlushLane::FlushList).is_err() {
            break;
        }
        next.note();
    }
    next
}

/// What the pages are after a cut: of the last batch some may be there.
fn settled(storage: &StorageSet, found: &Acknowledged) -> Acknowledged {
    let store = open(storage);
    let lsn = |page: u32| page::header::lsn(&read(&*store, page)).0;
    let lsns = (2..found.pages).map(|page| (page, lsn(page))).filter(|(_, lsn)| *lsn > 0).collect();
    Acknowledged { lsns, pages: found.pages, ..Acknowledged::default() }
}
