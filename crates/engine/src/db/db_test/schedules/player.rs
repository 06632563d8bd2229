//! Plays a schedule: a thread for each session. The rules are at the head of `mod.rs`.

use super::script::{Action, Schedule, Wrong};
use super::statement::{Running, Statement, values_of};
use crate::db::{InterruptHandle, WriteTxn};
use crate::error::Error;
use crate::lock::{LockMode, LockWaitEvent, OwnerId};
use crate::table::{Table, Type};
use crate::testing::small_options;
use crate::txn::{Isolation, TxnOptions};
use crate::values;
use crate::{Options, db::testing::TestDb, db::testing::by_id};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time for a step to come to its end or to a lock.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What is wrong with a step after that time: no other schedule is played.
pub(super) const HANGS: &str = "it does not end";

const INTERRUPTED: &str = "interrupted";
const DEADLOCK: &str = "deadlock";
const TIMED_OUT: &str = "lock wait timeout";

/// What a session's thread tells.
enum Event {
    /// A statement is done. Its answer; whether no transaction is open now.
    Done(String, bool),
    /// It waits for a lock.
    Waits,
    /// Its wait has ended.
    WaitEnds,
}

/// What a session's thread is to do.
struct Task {
    begin: Option<WriteTxn>,
    statement: Arc<Statement>,
    /// The statement is a transaction of its own.
    autocommits: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Idle,
    /// In the statement of this line.
    Runs(usize),
    /// In the statement of this line, for a lock.
    Waits(usize),
}

struct Session {
    tasks: Sender<Task>,
    thread: JoinHandle<()>,
    state: State,
    /// Its transaction: begun and not yet with the thread.
    begun: Option<WriteTxn>,
    open: Option<Open>,
}

/// An open transaction.
struct Open {
    /// The line of its begin.
    line: usize,
    owner: OwnerId,
    interrupt: InterruptHandle,
    /// Its waits have a short timeout.
    times_out: bool,
    /// The wait of its statement ends by itself, as it has a short timeout.
    wait_times_out: bool,
    /// Its wait, or the next one, ends: it was interrupted.
    is_interrupted: bool,
}

/// A database on which schedules are played.
pub(super) struct Player {
    db: TestDb,
    tables: usize,
    /// How many statements were deadlocks' victims and how many have timed out, as the counters have to say.
    failed: [u64; 2],
    tell: Sender<(String, Event)>,
    told: Receiver<(String, Event)>,
}

/// A schedule that is being played.
struct Play<'p> {
    player: &'p Player,
    table: Table,
    level: Isolation,
    sessions: BTreeMap<String, Session>,
    /// What happened to sessions in the present step: an answer, or that a new wait began.
    news: BTreeMap<String, Option<String>>,
    failed: [u64; 2],
}

impl Player {
    pub(super) fn new() -> Player {
        let db = TestDb::new(Options { lock_wait_timeout_ms: 600_000, ..small_options() });
        let (tell, told) = channel();
        let of_waits = tell.clone();
        let observe = move |event: LockWaitEvent<'_>| {
            let session = std::thread::current().name().unwrap_or_default().to_string();
            let begins = matches!(event, LockWaitEvent::Begins { .. });
            let _ = of_waits.send((session, if begins { Event::Waits } else { Event::WaitEnds }));
        };
        db.observe_lock_waits(observe).unwrap();
        Player { db, tables: 0, failed: [0; 2], tell, told }
    }

    /// Plays a schedule at a level: the answers of its steps, as many as were played, and what is wrong.
    pub(super) fn play(&mut self, schedule: &Schedule, level: Isolation) -> (Vec<String>, Result<(), Wrong>) {
        self.tables += 1;
        let schema = by_id().nullable("k", Type::U64).nullable("u", Type::U64).column("v", Type::U64);
        let schema = schema.index("k", &["k"]).unique_index("u", &["u"]);
        let table = self.db.create_table(&format!("t{}", self.tables), schema).unwrap();
        self.db.transact(|txn| txn.insert_many(&table, schedule.rows.iter().map(values_of)).map(drop)).unwrap();
        let (sessions, news) = (BTreeMap::new(), BTreeMap::new());
        let mut play = Play { player: self, table, level, sessions, news, failed: [0; 2] };
        let mut answers = Vec::new();
        for step in &schedule.steps {
            match play.step(&step.action, step.line) {
                Ok(answer) => answers.push(answer),
                Err(wrong) => return (answers, Err((step.line, wrong))),
            }
        }
        let ended = play.check_ended();
        let failed = play.failed;
        drop(play);
        self.failed = [0, 1].map(|i| self.failed[i] + failed[i]);
        let left = || (schedule.line, "locks are left when every transaction has ended".to_string());
        (answers, ended.and_then(|()| self.db.inner.txns.locks.is_empty().then_some(()).ok_or_else(left)))
    }

    fn await_purge(&self) {
        let since = Instant::now();
        while self.db.stats().history_list_length > 0 {
            assert!(since.elapsed() < TIMEOUT, "{} transactions are not purged", self.db.stats().history_list_length);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nothing is left to purge, and the database passes its check.
    pub(super) fn check(&self) {
        self.await_purge();
        let stats = self.db.stats();
        assert_eq!([stats.deadlocks, stats.row_lock_timeouts], self.failed, "deadlocks and timeouts that are counted");
        let report = self.db.check().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

impl Play<'_> {
    /// Plays a step until every session is idle or waits; returns what happened.
    fn step(&mut self, action: &Action, line: usize) -> Result<String, String> {
        self.news.clear();
        let own = match action {
            Action::Begin(names, level, options) => {
                let options = TxnOptions { isolation: level.unwrap_or(self.level), ..options.clone() };
                for name in names {
                    self.begin(name, &options, line)?;
                }
                return Ok(String::new());
            }
            Action::Locks => return Ok(self.locks()),
            Action::Purge => {
                self.player.await_purge();
                return Ok("ok".to_string());
            }
            Action::Interrupt(name) => {
                let open = self.sessions.get_mut(name).and_then(|session| session.open.as_mut());
                let open = open.ok_or_else(|| format!("{name} has no transaction"))?;
                open.is_interrupted = true;
                open.interrupt.interrupt();
                None
            }
            Action::Run(name, statement) => {
                self.run(name, statement, line)?;
                Some(name)
            }
        };
        self.await_quiet()?;
        Ok(self.describe(own))
    }

    fn session(&mut self, name: &str) -> &mut Session {
        let player = self.player;
        let start = || Session::start(name, &self.table, &player.tell);
        self.sessions.entry(name.to_string()).or_insert_with(start)
    }

    /// The session, which does not wait.
    fn idle(&mut self, name: &str) -> Result<&mut Session, String> {
        match self.session(name) {
            Session { state: State::Idle, .. } => Ok(self.session(name)),
            Session { state: State::Runs(line) | State::Waits(line), .. } => {
                Err(format!("{name} still waits in line {line}"))
            }
        }
    }

    fn begin(&mut self, name: &str, options: &TxnOptions, line: usize) -> Result<(), String> {
        let mut txn = self.player.db.begin_with(options.clone()).map_err(|error| error.to_string())?;
        let session = self.idle(name)?;
        if let Some(open) = &session.open {
            return Err(format!("{name} has begun in line {}", open.line));
        }
        let (owner, interrupt) = (OwnerId(txn.watch().owner()), txn.interrupt_handle());
        let times_out = options.lock_wait_timeout_ms.is_some();
        session.open = Some(Open { line, owner, interrupt, times_out, wait_times_out: false, is_interrupted: false });
        session.begun = Some(txn);
        Ok(())
    }

    fn run(&mut self, name: &str, statement: &Arc<Statement>, line: usize) -> Result<(), String> {
        let autocommits = self.idle(name)?.open.is_none();
        if autocommits {
            if statement.needs_transaction() {
                return Err(format!("{name} has no transaction"));
            }
            self.begin(name, &TxnOptions { isolation: self.level, ..TxnOptions::default() }, line)?;
        }
        let session = self.session(name);
        session.state = State::Runs(line);
        session.open.iter_mut().for_each(|open| open.wait_times_out = open.times_out || statement.times_out());
        let task = Task { begin: session.begun.take(), statement: Arc::clone(statement), autocommits };
        session.tasks.send(task).map_err(|_| format!("the thread of {name} has gone"))
    }

    // ---- what happens

    /// Waits until no thread of a session has anything to do: rule 2.
    fn await_quiet(&mut self) -> Result<(), String> {
        loop {
            while let Ok(told) = self.player.told.try_recv() {
                self.note(told);
            }
            let told = match self.is_quiet() {
                true => match self.player.told.try_recv() {
                    Err(_) => return Ok(()),
                    Ok(told) => told,
                },
                false => match self.player.told.recv_timeout(TIMEOUT) {
                    Ok(told) => told,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                        return Err(HANGS.to_string());
                    }
                },
            };
            self.note(told);
        }
    }

    fn note(&mut self, (name, event): (String, Event)) {
        let Some(session) = self.sessions.get_mut(&name) else { return };
        let (State::Runs(line) | State::Waits(line)) = session.state else { return };
        match event {
            Event::Waits => {
                session.state = State::Waits(line);
                self.news.insert(name, None);
            }
            Event::WaitEnds => session.state = State::Runs(line),
            Event::Done(answer, has_ended) => {
                session.state = State::Idle;
                session.open.take_if(|_| has_ended);
                self.failed[0] += u64::from(answer == DEADLOCK);
                self.failed[1] += u64::from(answer == TIMED_OUT);
                session.open.iter_mut().filter(|_| answer == INTERRUPTED).for_each(|open| open.is_interrupted = false);
                self.news.insert(name, Some(answer));
            }
        }
    }

    /// Whether every thread is idle or parked: what it waits for is not granted, and no row that is waited for is free.
    fn is_quiet(&self) -> bool {
        let mut owners = Vec::new();
        for session in self.sessions.values() {
            match (session.state, &session.open) {
                (State::Idle, _) => {}
                (State::Waits(_), Some(open)) if !open.wait_times_out && !open.is_interrupted => {
                    owners.push(open.owner.0)
                }
                _ => return false,
            }
        }
        if owners.is_empty() {
            return true;
        }
        let locks = self.player.db.row_locks(usize::MAX);
        let (waiting, held): (Vec<_>, Vec<_>) = locks.iter().partition(|lock| lock.is_waiting);
        let held: BTreeSet<_> = held.iter().map(|lock| (&lock.table, &lock.key)).collect();
        let pending = self.player.db.lock_waiters();
        waiting.iter().all(|lock| held.contains(&(&lock.table, &lock.key)))
            && owners.iter().all(|owner| pending.contains(owner))
    }

    /// What has happened: to the session of the step, then to others.
    fn describe(&self, own: Option<&String>) -> String {
        let news = |(name, news): (&String, &Option<String>)| match (news, self.sessions.get(name)?) {
            (Some(answer), _) => Some(answer.clone()),
            (None, Session { state: State::Waits(_), open: Some(open), .. }) => {
                Some(format!("waits for {}", self.waits_for(open.owner)))
            }
            _ => None,
        };
        let of_own = own.and_then(|own| self.news.get_key_value(own)).and_then(news);
        let others = self.news.iter().filter(|(name, _)| own != Some(*name));
        let others = others.filter_map(|told| news(told).map(|news| format!("{}: {news}", told.0)));
        let all: Vec<String> = of_own.into_iter().chain(others).collect();
        if all.is_empty() { "nothing".to_string() } else { all.join("; ") }
    }

    fn name_of(&self, owner: u64) -> &str {
        let is_of =
            |(_, session): &(&String, &Session)| session.open.as_ref().is_some_and(|open| open.owner.0 == owner);
        self.sessions.iter().find(is_of).map_or("another", |(name, _)| name)
    }

    fn waits_for(&self, owner: OwnerId) -> String {
        let owners = self.player.db.inner.txns.locks.waits().waits_for(owner);
        let names: BTreeSet<&str> = owners.into_iter().map(|owner| self.name_of(owner)).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Explicit row locks and requests, by key.
    fn locks(&self) -> String {
        let mut rows: BTreeMap<u64, Vec<(bool, String)>> = BTreeMap::new();
        for lock in self.player.db.row_locks(usize::MAX) {
            let mode = if lock.mode == LockMode::Exclusive { "X" } else { "S" };
            let waits = if lock.is_waiting { " waits" } else { "" };
            let id = lock.key.iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
            let text = format!("{} {mode}{waits}", self.name_of(lock.owner));
            rows.entry(id).or_default().push((lock.is_waiting, text));
        }
        let of_row = |(id, mut locks): (u64, Vec<(bool, String)>)| {
            locks.sort();
            let locks: Vec<String> = locks.into_iter().map(|(_, text)| text).collect();
            format!("{id}: {}", locks.join(", "))
        };
        let all: Vec<String> = rows.into_iter().map(of_row).collect();
        if all.is_empty() { "none".to_string() } else { all.join("; ") }
    }

    /// Every statement is done and every transaction has ended.
    fn check_ended(&self) -> Result<(), Wrong> {
        for (name, session) in &self.sessions {
            match (session.state, &session.open) {
                (State::Idle, None) => {}
                (State::Idle, Some(open)) => {
                    return Err((open.line, format!("the transaction of {name} is left open")));
                }
                (State::Runs(line) | State::Waits(line), _) => {
                    return Err((line, format!("{name} waits until the end of the schedule")));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Play<'_> {
    /// Ends what a schedule has left.
    fn drop(&mut self) {
        let sessions = std::mem::take(&mut self.sessions);
        let is_waiting = |session: &&Session| matches!(session.state, State::Waits(_));
        let open = sessions.values().filter(is_waiting).filter_map(|session| session.open.as_ref());
        open.for_each(|open| open.interrupt.interrupt());
        for (name, Session { tasks, thread, state, begun, open }) in sessions {
            drop((tasks, begun));
            // One that hangs is not waited for.
            let hangs = matches!(state, State::Runs(_)) || open.is_some_and(|open| open.is_interrupted);
            if !hangs && thread.join().is_err() {
                eprintln!("session {name} panicked");
            }
        }
        while self.player.told.try_recv().is_ok() {}
    }
}

impl Session {
    fn start(name: &str, table: &Table, tell: &Sender<(String, Event)>) -> Session {
        let (tasks, to_do) = channel::<Task>();
        let (table, tell, name) = (table.clone(), tell.clone(), name.to_string());
        let thread = Builder::new().name(name.clone()).spawn(move || {
            let (mut txn, mut savepoints) = (None, HashMap::new());
            for Task { begin, statement, autocommits } in to_do {
                txn = begin.or(txn.take());
                let mut running = Running { table: &table, txn: &mut txn, savepoints: &mut savepoints };
                let done = running.run(&statement);
                if autocommits && let (Ok(_), Some(own)) = (&done, txn.take()) {
                    own.commit().unwrap();
                }
                if matches!(done, Err(Error::Deadlock)) {
                    let mut rolled_back = txn.take();
                    let next = rolled_back.as_mut().map(|txn| txn.get(&table, &values![1]));
                    assert!(
                        matches!(next, Some(Err(Error::Usage(_)))),
                        "the transaction of a victim has ended: {next:?}"
                    );
                }
                if tell.send((name.clone(), Event::Done(answer(table.name(), done), txn.is_none()))).is_err() {
                    return;
                }
            }
        });
        Session { tasks, thread: thread.unwrap(), state: State::Idle, begun: None, open: None }
    }
}

/// The answer of a statement on a table.
fn answer(name: &str, done: Result<String, Error>) -> String {
    match done {
        Ok(answer) => answer,
        Err(Error::Deadlock) => DEADLOCK.to_string(),
        Err(Error::LockWaitTimeout) => TIMED_OUT.to_string(),
        Err(Error::LockNotAvailable { table, index: Some(index) }) if table == name => format!("locked in {index}"),
        Err(Error::DuplicateKey { table, index }) if table == name => format!("duplicate in {index}"),
        Err(Error::WriteConflict) => "write conflict".to_string(),
        Err(Error::Interrupted) => INTERRUPTED.to_string(),
        Err(other) => format!("error: {other}"),
    }
}
