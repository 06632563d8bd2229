//! The lock system against a plain model of it, step by step.

use super::*;
use proptest::prelude::*;

const TRANSACTIONS: usize = 6;
const ROWS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Lock {
        who: usize,
        at: usize,
        exclusive: bool,
    },
    /// `who` requests a row on which `holder` has an implicit lock.
    Explicit {
        who: usize,
        at: usize,
        holder: usize,
        exclusive: bool,
    },
    Range {
        who: usize,
        at: usize,
    },
    Insert {
        who: usize,
        at: usize,
    },
    TimeOut {
        who: usize,
    },
    End {
        who: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..TRANSACTIONS;
    let at = || 0..ROWS;
    prop_oneof![
        8 => (who(), at(), any::<bool>()).prop_map(|(who, at, exclusive)| Step::Lock { who, at, exclusive }),
        3 => (who(), at(), who(), any::<bool>())
            .prop_map(|(who, at, holder, exclusive)| Step::Explicit { who, at, holder, exclusive }),
        1 => (who(), at()).prop_map(|(who, at)| Step::Range { who, at }),
        2 => (who(), at()).prop_map(|(who, at)| Step::Insert { who, at }),
        1 => who().prop_map(|who| Step::TimeOut { who }),
        2 => who().prop_map(|who| Step::End { who }),
    ]
}

/// What a transaction waits for, in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wait {
    No,
    Row(usize),
    Insert(BTreeSet<usize>),
}

#[derive(Default)]
struct PlainRow {
    granted: BTreeMap<usize, LockMode>,
    waiting: Vec<(usize, LockMode)>,
    passes: u32,
}

impl PlainRow {
    /// No transaction holds it, and the first waiter, which requests it exclusively, has not run yet.
    fn may_be_passed(&self) -> bool {
        self.granted.is_empty() && self.passes < MAX_PASSES
    }

    fn conflicts(&self, who: usize, mode: LockMode) -> bool {
        self.granted.iter().any(|(owner, held)| *owner != who && held.conflicts(mode))
    }

    fn queue(&mut self, who: usize, mode: LockMode) {
        let at = if self.granted.contains_key(&who) { 0 } else { self.waiting.len() };
        self.waiting.insert(at, (who, mode));
    }

    fn grant(&mut self, who: usize, mode: LockMode) {
        self.passes += u32::from(self.granted.is_empty() && !self.waiting.is_empty());
        let held = self.granted.entry(who).or_insert(mode);
        if !held.covers(mode) {
            *held = mode;
        }
    }
}

/// Lists that are walked through, and a graph of every edge.
struct Plain {
    rows: Vec<PlainRow>,
    ranges: Vec<BTreeSet<usize>>,
    waits: Vec<Wait>,
}

impl Plain {
    fn new() -> Plain {
        Plain {
            rows: (0..ROWS).map(|_| PlainRow::default()).collect(),
            ranges: vec![BTreeSet::new(); ROWS],
            waits: vec![Wait::No; TRANSACTIONS],
        }
    }

    /// Whether it has to wait.
    fn lock(&mut self, who: usize, at: usize, mode: LockMode) -> bool {
        let row = &mut self.rows[at];
        let holds = row.granted.contains_key(&who);
        let ahead = row.waiting.iter().any(|(_, waits_for)| waits_for.conflicts(mode));
        let waits = row.conflicts(who, mode) || (!holds && ahead && !row.may_be_passed());
        if waits {
            row.queue(who, mode);
            self.waits[who] = Wait::Row(at);
        } else {
            row.grant(who, mode);
        }
        waits
    }

    fn make_explicit(&mut self, holder: usize, at: usize) {
        let row = &mut self.rows[at];
        let new = !row.granted.contains_key(&holder);
        row.grant(holder, LockMode::Exclusive);
        if new && let Some(place) = row.waiting.iter().position(|(waiter, _)| *waiter == holder) {
            let (_, mode) = row.waiting.remove(place);
            row.queue(holder, mode);
            self.promote(at);
        }
    }

    /// The front of a row takes it when it runs; one that may not be passed is handed the row.
    fn promote(&mut self, at: usize) {
        let row = &self.rows[at];
        if !(row.may_be_passed() && row.waiting.first().is_some_and(|(_, mode)| *mode == LockMode::Exclusive)) {
            self.grant_front(at);
        }
    }

    fn grant_front(&mut self, at: usize) {
        while let Some(&(who, mode)) = self.rows[at].waiting.first() {
            if self.rows[at].conflicts(who, mode) {
                return;
            }
            let is_new = !self.rows[at].granted.contains_key(&who);
            self.rows[at].waiting.remove(0);
            self.rows[at].grant(who, mode);
            if is_new {
                self.rows[at].passes = 0;
            }
            self.waits[who] = Wait::No;
        }
    }

    /// `who` runs.
    fn take_turn(&mut self, who: usize) {
        if let Wait::Row(at) = self.waits[who]
            && self.rows[at].waiting[0].0 == who
        {
            self.grant_front(at);
        }
    }

    fn insert(&mut self, who: usize, at: usize) -> bool {
        let blockers: BTreeSet<usize> = self.ranges[at].iter().copied().filter(|owner| *owner != who).collect();
        let waits = !blockers.is_empty();
        if waits {
            self.waits[who] = Wait::Insert(blockers);
        }
        waits
    }

    fn leave(&mut self, who: usize) {
        if let Wait::Row(at) = std::mem::replace(&mut self.waits[who], Wait::No) {
            self.rows[at].waiting.retain(|(waiter, _)| *waiter != who);
            self.promote(at);
        }
    }

    fn release(&mut self, who: usize) {
        for at in 0..ROWS {
            if self.rows[at].granted.remove(&who).is_some() {
                self.promote(at);
            }
            self.ranges[at].remove(&who);
        }
        for waits in &mut self.waits {
            if let Wait::Insert(blockers) = waits
                && blockers.remove(&who)
                && blockers.is_empty()
            {
                *waits = Wait::No;
            }
        }
    }

    fn waits_for(&self, who: usize) -> BTreeSet<usize> {
        match &self.waits[who] {
            Wait::No => BTreeSet::new(),
            Wait::Insert(blockers) => blockers.clone(),
            Wait::Row(at) => {
                let row = &self.rows[*at];
                let (place, mode) = row
                    .waiting
                    .iter()
                    .enumerate()
                    .find(|(_, (waiter, _))| *waiter == who)
                    .map(|(i, (_, m))| (i, *m))
                    .unwrap();
                let ahead = row.waiting[..place].iter().map(|(waiter, _)| *waiter);
                let holders = row.granted.iter().filter(|(owner, held)| **owner != who && held.conflicts(mode));
                ahead.chain(holders.map(|(owner, _)| *owner)).collect()
            }
        }
    }

    /// Whether a way leads from one to the other.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(who) = todo.pop() {
            for next in self.waits_for(who) {
                if next == to {
                    return true;
                }
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        false
    }
}

/// The lock system and the model, concurrently.
struct Pair {
    system: Arc<LockSystem>,
    holders: Vec<Arc<Holder>>,
    /// The request of each transaction that it has not yet polled: the row, or an insert.
    asked: Vec<Option<Option<usize>>>,
    plain: Plain,
}

fn key(at: usize) -> [u8; 1] {
    [at as u8]
}

fn mode(exclusive: bool) -> LockMode {
    if exclusive { LockMode::Exclusive } else { LockMode::Shared }
}

impl Pair {
    fn who(&self, owner: OwnerId) -> usize {
        self.holders.iter().position(|holder| holder.owner == owner).unwrap()
    }

    /// What the thread of `who` does when it runs on. False: it waits.
    fn look(&mut self, who: usize) -> bool {
        let Some(asked) = self.asked[who] else { return true };
        self.plain.take_turn(who);
        let ended = match outcome(&self.system, &self.holders[who]).unwrap() {
            WaitOutcome::Pending => return false,
            WaitOutcome::Granted => true,
            WaitOutcome::Deadlock => false,
        };
        self.end_wait(who, asked);
        if !ended {
            self.end(who);
        }
        true
    }

    fn end_wait(&mut self, who: usize, asked: Option<usize>) {
        self.asked[who] = None;
        match asked {
            Some(at) => self.system.end_row_wait(&self.holders[who], row(&key(at))),
            None => self.system.end_insert_wait(&self.holders[who]),
        }
    }

    fn end(&mut self, who: usize) {
        if let Some(asked) = self.asked[who] {
            self.end_wait(who, asked);
            self.plain.leave(who);
        }
        self.system.release_all(&self.holders[who]);
        self.plain.release(who);
        self.holders[who].trx_id.store(who as u64 + 1, SeqCst);
    }

    /// Searches through `who`; each victim must be on a cycle through it, and break it.
    fn resolve(&mut self, who: usize) {
        while let Some(victim) = self.system.waits().resolve_one(self.holders[who].owner) {
            let victim = self.who(victim);
            let weight = |i: usize| self.holders[i].weight.load(Relaxed);
            assert!(self.plain.reaches(who, who), "there is no cycle through {who}");
            assert!(victim == who || (self.plain.reaches(who, victim) && self.plain.reaches(victim, who)));
            assert!(weight(victim) <= weight(who));
            self.plain.leave(victim);
        }
    }

    fn run(&mut self, step: &Step) {
        let (Step::Lock { who, .. }
        | Step::Explicit { who, .. }
        | Step::Range { who, .. }
        | Step::Insert { who, .. }
        | Step::TimeOut { who }
        | Step::End { who }) = *step;
        let runs = self.look(who);
        match *step {
            Step::TimeOut { .. } if !runs => {
                self.end_wait(who, self.asked[who].unwrap());
                self.plain.leave(who);
            }
            Step::End { .. } => self.end(who),
            _ if !runs => {}
            Step::TimeOut { .. } => {}
            Step::Lock { at, exclusive, .. } => self.lock(who, at, mode(exclusive), None),
            Step::Explicit { at, holder, exclusive, .. } if holder != who => {
                self.lock(who, at, mode(exclusive), Some(holder));
            }
            Step::Explicit { .. } => {}
            Step::Range { at, .. } => {
                self.system.lock_point(&self.holders[who], INDEX, &key(at));
                self.plain.ranges[at].insert(who);
            }
            Step::Insert { at, .. } => {
                let waits = self.system.begin_insert_wait(&self.holders[who], INDEX, &key(at));
                assert_eq!(waits, self.plain.insert(who, at));
                if waits {
                    self.asked[who] = Some(None);
                    self.resolve(who);
                }
            }
        }
    }

    fn lock(&mut self, who: usize, at: usize, mode: LockMode, implicit: Option<usize>) {
        let holder = implicit.map(|holder| (TxnId(holder as u64 + 1), &self.holders[holder]));
        let waits = self.system.begin_row_wait(&self.holders[who], row(&key(at)), mode, holder);
        if let Some(holder) = implicit {
            self.plain.make_explicit(holder, at);
        }
        assert_eq!(waits, self.plain.lock(who, at, mode));
        if waits {
            self.asked[who] = Some(Some(at));
            self.resolve(who);
            implicit.into_iter().for_each(|holder| self.resolve(holder));
        }
    }

    fn check(&self) {
        for (who, holder) in self.holders.iter().enumerate() {
            let pending = self.system.is_waiting(holder);
            assert_eq!(pending, self.plain.waits[who] != Wait::No, "transaction {who}");
            assert!(!self.plain.reaches(who, who), "a cycle through {who} was not found");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Locks are granted as in the model, and after each step no cycle is left in the model's graph.
    #[test]
    fn every_deadlock_is_found_and_nothing_else(
        weights in proptest::collection::vec(0u64..3, TRANSACTIONS),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let holders: Vec<_> = (1..=TRANSACTIONS as u64).map(active).collect();
        holders.iter().zip(&weights).for_each(|(holder, weight)| holder.weight.store(*weight, Relaxed));
        let mut pair = Pair { system: system(), holders, asked: vec![None; TRANSACTIONS], plain: Plain::new() };
        for step in &steps {
            pair.run(step);
            pair.check();
        }
        (0..TRANSACTIONS).for_each(|who| pair.end(who));
        prop_assert!(pair.system.is_empty());
    }
}
