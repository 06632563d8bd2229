//! Damage of an open database under load, and its consequences.
//!
//! How a life goes
//! 1. A copy of [`Whole`] is opened. Writers change both of its tables ([`load`]).
//! 2. Meanwhile one page of a kind of [`super::declared`] is damaged on the device ([`Harm`]).
//! 3. The load continues; then comes one of [`Act`] ([`acts`]).
//! 4. The resulting database is opened, and everything is read.
//!
//! Rules
//! 1. A life that does not end within [`MAX`] hangs: a failure, and so is a panic.
//! 2. A call returns the right answer or an error that names the damage. Only after a lost write in place may rows of
//!    the page's own table be old. Out of place no older version is at the page's position, and an image that was not
//!    written does not verify.
//! 3. A table of which no page is damaged has every acknowledged commit, whatever the act was.
//! 4. The declared table says whether the database opens. After a crash it may also fail to open if recovery had to
//!    change the damaged page; the error names the page.
//! 5. With an unreadable block all pages are lost of which it has a byte: out of place two images may share a block.

mod acts;
mod load;

use super::declared::{DECLARED, Declared, Loss, PageKind, kind_of, stream_has_ended};
use super::whole::{INDEXES, TABLES, Whole, data, pages_of, place_in};
use acts::{Act, Ended};
use highwater::inspect::RawFile;
use highwater::{Database, PageNo};
use highwater_bench::Result;
use highwater_storage::{MemoryDevice, StorageSet, TestDevice};
use load::{Known, WRITERS};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A life that takes longer hangs.
const MAX: Duration = Duration::from_secs(120);
/// Time of the load before the damage, and after it.
const LOAD: Duration = Duration::from_millis(150);

/// Smallest unit that a device reads.
const BLOCK_BYTES: u64 = 4096;

/// The damage of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// A byte is flipped.
    Flip,
    /// It cannot be read until it is written again.
    FailedReads,
    /// It has its initial contents: the device has lost all later writes.
    LostWrite,
}

/// The outcomes of lives.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// Number of lives.
    pub lives: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Calls that failed because of damage.
    pub refused: u64,
    /// Lives in which the damage was met: a call was refused, a read failed, or the database did not open.
    pub met: u64,
    /// Databases that did not open, as declared.
    pub unopened: u64,
    /// Violations, with the seed of the life.
    pub failures: Vec<String>,
}

/// Lives with the seeds of a range, of copies of these databases in turn, by this many threads; `on_progress` gets the
/// number of lives that have ended. Ends at the first life that hangs.
///
/// # Errors
/// An error that prevents the start of a life.
pub fn lives(wholes: &[Arc<Whole>], seeds: Range<u64>, mut on_progress: impl FnMut(u64)) -> Result<Lives> {
    let mut all = Lives::default();
    for seed in seeds {
        let whole = Arc::clone(&wholes[(seed % wholes.len() as u64) as usize]);
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(one(&whole, seed)));
        let Ok(ended) = receiver.recv_timeout(MAX) else {
            all.failures.push(format!("life {seed}, {}: it hangs", Plan::new(seed)));
            return Ok(all);
        };
        let ended = ended?;
        all.lives += 1;
        all.commits += ended.commits;
        all.refused += ended.refused;
        all.unopened += ended.unopened;
        all.met += u64::from(ended.refused + ended.unopened + ended.met > 0);
        all.failures.extend(ended.failures);
        on_progress(all.lives);
    }
    Ok(all)
}

/// The choices of a seed.
struct Plan {
    row: &'static Declared,
    harm: Harm,
    act: Act,
    random: fastrand::Rng,
}

impl Plan {
    fn new(seed: u64) -> Plan {
        let mut random = fastrand::Rng::with_seed(seed);
        let harm = [Harm::Flip, Harm::Flip, Harm::FailedReads, Harm::LostWrite][random.usize(..4)];
        // Of other pages nothing is promised about a lost write that no page leads to.
        let is_meant = |row: &&Declared| {
            let of_table = matches!(row.kind, PageKind::ClusteredLeaf | PageKind::Overflow | PageKind::Index);
            harm != Harm::LostWrite || of_table
        };
        let rows: Vec<&Declared> = DECLARED.iter().filter(is_meant).collect();
        let row = rows[random.usize(..rows.len())];
        let act = Act::ALL[random.usize(..Act::ALL.len())];
        Plan { row, harm, act, random }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {:?}, {:?}", self.harm, self.row.kind, self.act)
    }
}

/// A damaged page.
#[derive(Clone, Copy, Debug)]
struct HurtPage {
    page: PageNo,
    row: &'static Declared,
    /// The table whose rows or indexes it holds.
    table: Option<usize>,
}

impl HurtPage {
    /// Whether a read of a table by an index may be an error.
    fn may_refuse(&self, table: usize, index: &str) -> bool {
        let is_own = self.table.is_none_or(|own| own == table);
        let is_index = index != INDEXES[0];
        match self.row.loss {
            // While it is open reads meet the page, whatever another opening makes of it.
            Loss::Nothing | Loss::Opening | Loss::Undo => false,
            Loss::Indexes => is_own && is_index,
            Loss::Rows => is_own,
        }
    }

    /// Whether an opening may need the page: it is declared so, or it was the end of an undo stream without active
    /// transactions, which may have one by now.
    fn may_be_needed_to_open(&self) -> bool {
        self.row.loss == Loss::Opening || self.row.kind == PageKind::EndedUndoEnd
    }

    /// Whether it is the last page of an undo stream of which the files do not record that all transactions have ended.
    fn is_end_in_use(&self, memory: &StorageSet) -> bool {
        let in_use = || -> Result<bool> {
            let device = MemoryDevice::holding(data(memory)?.image());
            Ok(!stream_has_ended(&RawFile::open(&device)?, self.page)?)
        };
        self.row.kind == PageKind::EndedUndoEnd && in_use().unwrap_or(false)
    }

    /// Whether an error names it.
    fn is_named_in(&self, error: &str) -> bool {
        error.contains(&format!("page {} ", self.page)) || error.contains(&format!("page {}:", self.page))
    }
}

/// The damaged pages (rule 5).
#[derive(Clone, Debug)]
struct Hurt {
    /// The chosen page, and the pages that share its blocks.
    pages: Vec<HurtPage>,
    harm: Harm,
    is_out_of_place: bool,
}

impl Hurt {
    /// The table of the chosen page; the first table if the page belongs to none.
    fn table(&self) -> usize {
        self.pages[0].table.unwrap_or(0)
    }

    /// Whether a page of a table is damaged.
    fn is_of(&self, table: usize) -> bool {
        self.pages.iter().any(|page| page.table == Some(table))
    }

    /// Whether a read of a table by an index may be an error.
    fn may_refuse(&self, table: usize, index: &str) -> bool {
        self.pages.iter().any(|page| page.may_refuse(table, index))
    }

    /// Whether an opening may need one of the pages.
    fn may_be_needed_to_open(&self) -> bool {
        self.pages.iter().any(HurtPage::may_be_needed_to_open)
    }

    /// Whether a table may be without the newest changes.
    fn may_be_old(&self, table: usize) -> bool {
        let is_own = |page: &HurtPage| page.table.is_none_or(|own| own == table);
        self.harm == Harm::LostWrite && !self.is_out_of_place && self.pages.iter().any(is_own)
    }
}

fn one(whole: &Whole, seed: u64) -> Result<Lives> {
    let plan = Plan::new(seed);
    let name = format!("life {seed}, {plan}");
    let lived = catch_unwind(AssertUnwindSafe(|| live(whole, plan)));
    let mut lives = match lived {
        Ok(lives) => lives?,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Lives { failures: vec![format!("a panic: {}", text.unwrap_or_default())], ..Lives::default() }
        }
    };
    lives.failures.iter_mut().for_each(|failure| *failure = format!("{name}: {failure}"));
    Ok(lives)
}

fn live(whole: &Whole, mut plan: Plan) -> Result<Lives> {
    let memory = whole.storage.cut(0);
    let bad = Arc::new(Mutex::new(0..0));
    let storage = memory.map_data(|data| Arc::new(TestDevice::over(data).with_bad_blocks(Arc::clone(&bad))));
    let db = Database::open_storage(storage.clone(), whole.options.clone())?;
    let (before, mut lives) = (plan.act.before(&db)?, Lives::default());
    let (stop, mut known) = (AtomicBool::new(false), Known::default());
    let first = Known { models: whole.models.clone(), ..Known::default() };
    let (parts, hurt, acted) = std::thread::scope(|scope| {
        let loses_writes = plan.harm == Harm::LostWrite && !whole.is_out_of_place();
        let seed = plan.random.u64(..);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, stop, part) = (&db, &stop, first.part(writer));
                scope.spawn(move || load::write(db, writer, (seed, loses_writes), stop, part))
            })
            .collect();
        std::thread::sleep(LOAD);
        let hurt = harm(whole, &memory, &bad, &mut plan);
        std::thread::sleep(LOAD);
        let acted = hurt.as_ref().ok().and_then(Option::as_ref).map(|hurt| plan.act.run(&db, hurt));
        stop.store(true, Relaxed);
        let parts: Vec<_> = writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        (parts, hurt, acted)
    });
    for part in parts {
        match part {
            Ok(part) => known.extend(part),
            Err(failure) => lives.failures.push(failure),
        }
    }
    (lives.lives, lives.commits, lives.refused) = (1, known.commits, known.refused);
    // What a writer that failed has committed is not known.
    let is_known = lives.failures.is_empty();
    let Some(hurt) = hurt?.filter(|_| is_known) else { return Ok(lives) };
    lives.failures.extend(acted.flatten());
    let ended = Ended { whole, storage: &storage, memory: &memory, hurt, known: &known, before };
    plan.act.finish(db, ended, &mut plan.random, &mut lives);
    Ok(lives)
}

/// Damages a page on the device; returns the page, or `None` if the file has no such page now. No thread writes to the
/// device meanwhile: pages of undo and of the change buffer come and go, and out of place a page moves with each write.
fn harm(whole: &Whole, memory: &StorageSet, bad: &Mutex<Range<u64>>, plan: &mut Plan) -> Result<Option<Hurt>> {
    let (mut bad, mut hurt) = (bad.lock(), Ok(None));
    data(memory)?.damage(|bytes| hurt = harm_image(whole, bytes, &mut bad, plan));
    hurt
}

/// As [`harm`], of the device's bytes.
fn harm_image(whole: &Whole, bytes: &mut [u8], bad: &mut Range<u64>, plan: &mut Plan) -> Result<Option<Hurt>> {
    let device = MemoryDevice::holding(bytes.to_vec());
    let file = RawFile::open(&device)?;
    let pages = pages_of(&file)?;
    let Some(of_kind) = pages.get(&plan.row.kind) else { return Ok(None) };
    let chosen = of_kind[plan.random.usize(..of_kind.len())];
    let Some(place) = place_in(&file, chosen)? else { return Ok(None) };
    let mut hurt = vec![HurtPage { page: chosen, row: plan.row, table: table_of(&file, chosen)? }];
    match plan.harm {
        Harm::Flip => bytes[plan.random.usize(place)] ^= 4,
        Harm::FailedReads => {
            *bad = blocks_of(place);
            hurt.extend(pages_in(&file, &pages, bad)?.into_iter().filter(|page| page.page != chosen));
        }
        Harm::LostWrite => {
            let old = data(&whole.storage)?.image();
            let Some(old) = old.get(place.clone()) else { return Ok(None) };
            bytes[place].copy_from_slice(old);
        }
    }
    Ok(Some(Hurt { pages: hurt, harm: plan.harm, is_out_of_place: whole.is_out_of_place() }))
}

/// The range of whole blocks that contain these bytes.
fn blocks_of(place: Range<usize>) -> Range<u64> {
    place.start as u64 / BLOCK_BYTES * BLOCK_BYTES..(place.end as u64).next_multiple_of(BLOCK_BYTES)
}

/// The pages that have some of these bytes.
fn pages_in(file: &RawFile<'_>, pages: &BTreeMap<PageKind, Vec<PageNo>>, bytes: &Range<u64>) -> Result<Vec<HurtPage>> {
    let mut found = Vec::new();
    for row in &DECLARED {
        for page in pages.get(&row.kind).into_iter().flatten().copied() {
            let place = place_in(file, page)?;
            if place.is_some_and(|place| (place.start as u64) < bytes.end && bytes.start < place.end as u64) {
                found.push(HurtPage { page, row, table: table_of(file, page)? });
            }
        }
    }
    Ok(found)
}

/// The table whose rows or index entries a page has.
fn table_of(file: &RawFile<'_>, page: PageNo) -> Result<Option<usize>> {
    let kind = kind_of(file, page)?;
    let table = match kind {
        Some(PageKind::Overflow) => file.tables().iter().find(|table| Some(table.overflow_segment) == file.owner(page)),
        _ => file.tree(file.look_at(page)?.owner).map(|(table, _)| table),
    };
    Ok(table.and_then(|table| TABLES.iter().position(|name| *name == table.definition.name)))
}
