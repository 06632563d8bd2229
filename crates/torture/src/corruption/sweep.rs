//! Trials with every byte flipped, one after another, on several threads.

use super::cases::Case;
use super::damage::Damage;
use super::database::{File, Small};
use super::groups::judge_group;
use super::judge::Verdict;
use super::places::{BLOCK, ByteRole, Places};
use highwater_bench::Result;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A trial that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);
/// First bytes of a page that are always flipped: its header, the node's header, the first slots.
const PAGE_HEAD_BYTES: u64 = 48;
/// The same of a block of the log (its mark, the frame of a group), and of a log header or a directory (its fields).
const BLOCK_HEAD_BYTES: u64 = 24;
const HEADER_BYTES: u64 = 64;
/// Of blank blocks at most every Nth byte is flipped.
const BLANK_EVERY: u64 = 499;

/// A violation of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the case.
    pub what: String,
    /// The damage.
    pub damages: Vec<Damage>,
    /// The violation as text.
    pub text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, damaged at", self.what)?;
        for Damage { file, offset, bytes } in &self.damages {
            write!(f, " byte {offset} of {} ({} bytes)", file.name(), bytes.len())?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Counts of outcomes, by case and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Counts by (case, outcome).
    pub counts: BTreeMap<(String, &'static str), u64>,
    /// A violation of the rules.
    pub failures: Vec<Failure>,
}

impl Tally {
    /// Damages tried.
    pub fn all(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds another tally.
    pub fn extend(&mut self, other: Tally) {
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
        self.failures.extend(other.failures);
    }

    /// Count of an outcome.
    pub fn count(&self, outcome: &str) -> u64 {
        self.counts.iter().filter(|((_, found), _)| *found == outcome).map(|(_, count)| count).sum()
    }

    /// The counts, a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.counts.iter().map(|((what, outcome), count)| format!("{count:>9}  {outcome:<24} {what}"))
    }

    fn add(&mut self, what: String, outcome: &'static str) {
        *self.counts.entry((what, outcome)).or_default() += 1;
    }
}

/// One flip for each byte that is chosen: all of them with `every` 1; else the first bytes of each block, and the bytes
/// whose offset leaves the remainder `first` when divided by `every`. Of blocks that were never written, or were
/// discarded, fewer bytes are enough, since they are all alike.
///
/// # Errors
/// The engine's, of the files as they are.
pub fn flips(small: &Small, every: u64, first: u64) -> Result<Vec<Case>> {
    let places = Places::of(small)?;
    let mut cases = Vec::new();
    for file in File::ALL {
        let bytes = &small.files[file as usize];
        for (n, block) in bytes.chunks(BLOCK as usize).enumerate() {
            let is_blank = is_blank(block);
            for at in 0..block.len() as u64 {
                let offset = n as u64 * BLOCK + at;
                let is_chosen = match is_blank {
                    true => offset % (if every == 1 { BLANK_EVERY } else { every * 8 }) == first,
                    false => at < head_bytes(file, n, block) || offset % every == first,
                };
                if is_chosen {
                    let place = places.place(file, offset);
                    let what = format!("{}: {}", file.name(), place.name());
                    cases.push(Case::of_byte(&what, vec![Damage::flip(&small.files, file, offset)], place));
                }
            }
        }
    }
    Ok(cases)
}

/// Whether a block was never written, or was discarded: then all its bytes are the same.
pub(super) fn is_blank(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == block[0])
}

fn head_bytes(file: File, number: usize, block: &[u8]) -> u64 {
    match file {
        File::Data => PAGE_HEAD_BYTES,
        File::Redo if number < 2 => HEADER_BYTES,
        File::Doublewrite if block[8..16] == highwater_storage::mark::DOUBLEWRITE => HEADER_BYTES,
        File::Redo | File::Doublewrite => BLOCK_HEAD_BYTES,
    }
}

/// Tries each case alone, on this many threads; `tell` gets the number of finished cases. The tally has the violations.
pub fn run(small: Arc<Small>, cases: Vec<Case>, threads: usize, tell: impl FnMut(usize)) -> Tally {
    run_groups(small, cases.into_iter().map(|case| vec![case]).collect(), threads, tell)
}

/// As [`run`], with the cases of each group tried together if they can be ([`grouped`](super::grouped)).
pub fn run_groups(small: Arc<Small>, groups: Vec<Vec<Case>>, threads: usize, mut tell: impl FnMut(usize)) -> Tally {
    let (groups, next, stop) = (Arc::new(groups), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (send, receive) = mpsc::channel();
    for _ in 0..threads {
        let (small, groups, next) = (Arc::clone(&small), Arc::clone(&groups), Arc::clone(&next));
        let (send, stop) = (send.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(group) = groups.get(number) else { return };
                if send.send((number, judge_group(&small, group))).is_err() {
                    return;
                }
            }
        });
    }
    drop(send);
    let mut tally = Tally::default();
    let mut open: Vec<bool> = vec![true; groups.len()];
    let mut redo = RedoSeen::default();
    let mut done = 0;
    for _ in 0..groups.len() {
        match receive.recv_timeout(TIMEOUT) {
            Ok((number, verdicts)) => {
                open[number] = false;
                done += verdicts.len();
                let judged = groups[number].iter().zip(verdicts);
                judged.for_each(|(case, verdict)| count(&mut tally, case, verdict, &mut redo));
            }
            Err(_) => {
                stop.store(true, Ordering::Relaxed);
                let begun = next.load(Ordering::Relaxed).min(groups.len());
                for case in (0..begun).filter(|number| open[*number]).flat_map(|number| &groups[number]) {
                    fail(&mut tally, case, "a hang".to_string());
                }
                return tally;
            }
        }
        tell(done);
    }
    redo.judge(&mut tally);
    tally
}

/// The reported damage of the redo.
#[derive(Default)]
struct RedoSeen {
    /// The last LSN whose damage was reported.
    last_reported: u64,
    /// The first LSN whose damage was not reported, and its case.
    first_missed: Option<(u64, Case)>,
}

impl RedoSeen {
    /// All damage before a mark must be reported, so unreported damage must be after all reported damage.
    fn judge(self, tally: &mut Tally) {
        if let Some((lsn, case)) = self.first_missed
            && lsn < self.last_reported
        {
            let text = format!("the redo at LSN {lsn} is missed, that at LSN {} is not", self.last_reported);
            fail(tally, &case, text);
        }
    }
}

fn fail(tally: &mut Tally, case: &Case, text: String) {
    tally.add(case.what.clone(), "FAILED");
    tally.failures.push(Failure { what: case.what.clone(), damages: case.damages.clone(), text });
}

fn count(tally: &mut Tally, case: &Case, verdict: Verdict, redo: &mut RedoSeen) {
    match (verdict, case.place) {
        (Verdict::Wrong(text), _) => fail(tally, case, text),
        (Verdict::CheckOnly(_), _) if case.may_be_seen_by_check_only => {
            tally.add(case.what.clone(), "found by the check only");
        }
        (Verdict::CheckOnly(said), _) => fail(tally, case, format!("wrong rows; only the check says so: {said:?}")),
        (Verdict::Silent, Some(place)) if place.is_live() => {
            fail(tally, case, format!("nothing was reported of {place:?}"))
        }
        (Verdict::Silent, _) => tally.add(case.what.clone(), "harmless"),
        (Verdict::Earlier(_), Some(ByteRole::Redo(lsn))) => {
            if redo.first_missed.as_ref().is_none_or(|(first, _)| lsn < *first) {
                redo.first_missed = Some((lsn, case.clone()));
            }
            tally.add(case.what.clone(), "taken for a torn write");
        }
        // The last commit's block is not where it belongs.
        (Verdict::Earlier(1), None) if is_part_of_redo(case) => tally.add(case.what.clone(), "taken for a torn write"),
        (Verdict::Earlier(commits), _) => fail(tally, case, format!("{commits} commits are missing")),
        (Verdict::Reported(said), Some(place)) => match unnamed(place, case, &said) {
            Some(text) => fail(tally, case, text),
            None => {
                if let ByteRole::Redo(lsn) = place {
                    redo.last_reported = redo.last_reported.max(lsn);
                }
                tally.add(case.what.clone(), "reported");
            }
        },
        (Verdict::Reported(_), None) => tally.add(case.what.clone(), "reported"),
    }
}

fn is_part_of_redo(case: &Case) -> bool {
    case.damages.iter().all(|damage| damage.file == File::Redo && damage.bytes.len() as u64 == BLOCK)
}

/// The problem with a report that does not name the page or file.
pub(super) fn unnamed(place: ByteRole, case: &Case, said: &[String]) -> Option<String> {
    let file = case.damages.first().map_or("", |damage| damage.file.name());
    let names =
        |what: &str| said.iter().any(|text| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == what));
    let named = match place {
        ByteRole::Page(0) | ByteRole::Fixed => names("data") || said.iter().any(|text| text.contains("page 0")),
        ByteRole::Page(page) | ByteRole::Compressed(page) | ByteRole::NeededCopy(page) => said
            .iter()
            .any(|text| [":", " ", ","].iter().any(|end| format!("{text} ").contains(&format!("page {page}{end}")))),
        _ => names(file) || said.iter().any(|text| text.contains("page ")),
    };
    (!named).then(|| format!("the report does not name the page or file: {said:?}"))
}
