//! Plays a schedule: a thread for each session, so that a step can wait for a lock while others continue.
//!
//! Rules
//! 1. A step begins when every session with an unfinished step waits for a lock ([`Subject::waiting`] counts them). So
//!    the schedule is the script's under any load of the machine, and no timeout affects it.
//! 2. After an error a session's transaction is rolled back, as an application would.

use super::script::{Operation, Script, Step};
use crate::isolation::Setting;
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum time until a schedule continues.
const TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);

/// Rows: id and value, by id.
pub(super) type Rows = Vec<(i64, i64)>;

/// A session of a subject. It is in a transaction from the beginning.
pub trait Client: Send + 'static {
    /// Performs one step; returns the rows of a read.
    ///
    /// # Errors
    /// A deadlock, a lock wait timeout, a write conflict; anything else ends the play.
    fn step(&mut self, operation: Operation) -> Result<Rows>;
    /// Rolls the transaction back.
    fn roll_back(&mut self);
}

/// The database on which schedules are played.
pub trait Subject {
    /// Its sessions.
    type Client: Client;
    /// Time for which [`Subject::waiting`] must be constant to be used.
    const STEADY: Duration;

    /// Makes the table, with its two rows.
    ///
    /// # Errors
    /// The subject's.
    fn prepare(&mut self, indexed: bool) -> Result<()>;
    /// Begins a transaction on the table.
    ///
    /// # Errors
    /// The subject's.
    fn begin(&self, setting: Setting) -> Result<Self::Client>;
    /// Number of sessions that wait for a lock.
    ///
    /// # Errors
    /// The subject's.
    fn waiting(&self) -> Result<u64>;
}

/// The failure of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It was a deadlock's victim.
    Deadlock,
    /// It wrote a row that another one had changed.
    WriteConflict,
    /// It waited for too long, which no schedule should cause.
    LockWaitTimeout,
}

/// The observations of a play.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    steps: &'static [Step],
    /// The result of each completed step.
    answers: Vec<Option<Rows>>,
    /// The steps that waited.
    pub waited: Vec<usize>,
    /// The failed sessions.
    pub failed: BTreeMap<usize, Failed>,
    /// The rows in the end.
    pub left: Rows,
}

impl Seen {
    /// The rows that a step returned.
    pub fn rows(&self, step: usize) -> &[(i64, i64)] {
        self.answers[step].as_deref().unwrap_or_default()
    }

    /// The values that a session's reads of an id returned, in order.
    pub fn reads_of(&self, session: usize, id: i64) -> Vec<i64> {
        let own = self.steps.iter().zip(&self.answers).filter(|(step, _)| **step == (session, Operation::Read(id)));
        own.filter_map(|(_, answer)| Some(answer.as_ref()?.first()?.1)).collect()
    }

    /// Whether all these sessions have committed.
    pub fn committed(&self, sessions: &[usize]) -> bool {
        sessions.iter().all(|session| {
            let at = self.steps.iter().position(|step| *step == (*session, Operation::Commit));
            at.is_some_and(|at| self.answers[at].is_some())
        })
    }

    /// The value of an id in the end.
    pub fn left_of(&self, id: i64) -> Option<i64> {
        self.left.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
    }
}

/// A completed step: its number and its result.
type Done = (usize, Result<Rows>);

struct Session {
    steps: Option<Sender<(usize, Operation)>>,
    done: Receiver<Done>,
    /// Steps that were begun and are not done.
    open: Vec<usize>,
    thread: JoinHandle<()>,
}

impl Session {
    fn start(mut client: impl Client) -> Session {
        let (steps, to_do) = channel::<(usize, Operation)>();
        let (tell, done) = channel();
        let thread = std::thread::spawn(move || {
            let mut failed = false;
            for (number, operation) in to_do {
                let answer = if failed { Err(Error::Interrupted) } else { client.step(operation) };
                if answer.is_err() && !failed {
                    failed = true;
                    client.roll_back();
                }
                if tell.send((number, answer)).is_err() {
                    return;
                }
            }
        });
        Session { steps: Some(steps), done, open: Vec::new(), thread }
    }

    fn begin(&mut self, number: usize, operation: Operation) {
        self.open.push(number);
        // A session that has gone answers nothing, which is noticed.
        let _ = self.steps.as_ref().map(|steps| steps.send((number, operation)));
    }
}

/// The state of a play.
struct Play<'s, S> {
    subject: &'s S,
    sessions: BTreeMap<usize, Session>,
    seen: Seen,
}

impl<S: Subject> Play<'_, S> {
    /// Receives the steps that sessions have completed.
    fn collect(&mut self) -> Result<()> {
        for (number, session) in &mut self.sessions {
            while let Ok((step, answer)) = session.done.try_recv() {
                session.open.retain(|open| *open != step);
                match answer {
                    Ok(rows) => self.seen.answers[step] = Some(rows),
                    // Left out: the session had failed before.
                    Err(Error::Interrupted) => {}
                    Err(error) => drop(self.seen.failed.insert(*number, failed(error)?)),
                }
            }
        }
        Ok(())
    }

    fn busy(&self) -> u64 {
        self.sessions.values().filter(|session| !session.open.is_empty()).count() as u64
    }

    /// Waits until every session that is not done waits for a lock; or, at the `end`, until all are done.
    fn collect_steps(&mut self, end: bool) -> Result<()> {
        let begun = Instant::now();
        let mut steady = Instant::now();
        loop {
            self.collect()?;
            let busy = self.busy();
            if busy == 0 {
                return Ok(());
            }
            if end || self.subject.waiting()? != busy {
                steady = Instant::now();
            } else if steady.elapsed() >= S::STEADY {
                let first = |session: &Session| session.open.first().copied();
                self.seen.waited.extend(self.sessions.values().filter_map(first));
                return Ok(());
            }
            if begun.elapsed() > TIMEOUT {
                return Err(Error::Data(format!("a schedule does not continue: {:?}", self.seen)));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn failed(error: Error) -> Result<Failed> {
    use highwater::Error as Engine;
    match error {
        Error::Engine(Engine::Deadlock) => Ok(Failed::Deadlock),
        Error::Engine(Engine::WriteConflict) => Ok(Failed::WriteConflict),
        Error::Engine(Engine::LockWaitTimeout) => Ok(Failed::LockWaitTimeout),
        other => Err(other),
    }
}

/// Plays a script.
///
/// # Errors
/// The subject's; a schedule that does not continue.
pub fn play<S: Subject>(subject: &mut S, script: &'static Script, setting: Setting) -> Result<Seen> {
    subject.prepare(script.indexed)?;
    let (subject, mut sessions) = (&*subject, BTreeMap::new());
    for (session, _) in script.steps {
        if !sessions.contains_key(session) {
            sessions.insert(*session, Session::start(subject.begin(setting)?));
        }
    }
    let seen = Seen { steps: script.steps, answers: vec![None; script.steps.len()], ..Seen::default() };
    let mut play = Play { subject, sessions, seen };
    for (number, (session, operation)) in script.steps.iter().enumerate() {
        if let Some(session) = play.sessions.get_mut(session) {
            session.begin(number, *operation);
        }
        play.collect_steps(false)?;
    }
    play.collect_steps(true)?;
    for session in std::mem::take(&mut play.sessions).into_values() {
        drop(session.steps);
        session.thread.join().map_err(|_| Error::Data("a session panicked".into()))?;
    }
    let mut last = subject.begin(Setting::ReadCommitted)?;
    play.seen.left = last.step(Operation::ReadWhere(super::script::Which::All))?;
    last.roll_back();
    Ok(play.seen)
}
