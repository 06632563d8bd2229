//! The player: it chooses and plays letters.

use super::World;
use super::actor::{Actor, Session, Snapshot, random_options};
use super::choices::Choices;
use super::consumer::Consumer;
use super::copies::Backups;
use super::expiring::{self, Held};
use super::oracle::{Change, Changes, Oracle};
use super::played::{Played, call};
use super::prepared::PreparedHere;
use super::statements::session;
use highwater::internals::{BackgroundStep, DeterministicDb};
use highwater::{Database, Error as Engine, WriteTxn};
use highwater_bench::{Error, Result};

/// Maximum number of open transactions, and of open snapshots.
const ACTORS: usize = 5;
const SNAPSHOTS: usize = 3;
/// Maximum number of prepared transactions.
const PREPARED: usize = 3;

/// A letter, or a group of them.
#[derive(Clone, Copy, Debug)]
enum Letter {
    Begin,
    Act,
    End,
    Prepare,
    EndPrepared,
    Transact,
    TakeSnapshot,
    LookAtSnapshot,
    DropSnapshot,
    ChangeSchema,
    Consume,
    Expiring,
    Whole,
    Background,
}

/// The frequency of each letter, in thousandths.
const LETTERS: [(Letter, u32); 14] = [
    (Letter::Begin, 80),
    (Letter::Act, 518),
    (Letter::End, 73),
    (Letter::Prepare, 18),
    (Letter::EndPrepared, 14),
    (Letter::Transact, 8),
    (Letter::TakeSnapshot, 20),
    (Letter::LookAtSnapshot, 30),
    (Letter::DropSnapshot, 12),
    (Letter::ChangeSchema, 30),
    (Letter::Consume, 12),
    (Letter::Expiring, 25),
    (Letter::Whole, 10),
    (Letter::Background, 150),
];

impl Letter {
    fn random(rng: &mut Choices) -> Letter {
        let mut number = rng.u32(..LETTERS.iter().map(|(_, weight)| weight).sum::<u32>());
        for (letter, weight) in LETTERS {
            match number.checked_sub(weight) {
                Some(rest) => number = rest,
                None => return letter,
            }
        }
        Letter::Background
    }
}

/// The open database of a player.
pub(crate) struct Stage<'a> {
    pub db: &'a Database,
    /// The steps of its threads, if it has none.
    pub stepped: Option<&'a DeterministicDb>,
    /// Whether statements insert many long rows.
    pub fills: bool,
    /// Whether only open transactions can hold locks: the database has no threads, and no rollback can have failed.
    pub is_sound: bool,
}

/// The open transactions, snapshots and backups of an open database.
#[derive(Default)]
pub(crate) struct Scene {
    actors: Vec<Actor>,
    prepared: PreparedHere,
    snapshots: Vec<Snapshot>,
    expiring: Vec<Held>,
    /// The chain of backups; `None` if no backups are taken.
    pub backups: Option<Backups>,
}

impl Scene {
    /// A scene without open transactions, which continues these backups.
    pub(crate) fn with_backups(backups: Option<Backups>) -> Scene {
        Scene { backups, ..Scene::default() }
    }

    /// Rolls the transactions back, which needs no disk space.
    ///
    /// # Errors
    /// As [`Actor::roll_back`].
    pub(crate) fn roll_back(&mut self, played: &Played) -> Result<()> {
        // The actors that acted last have met the full disk: the others keep their space until then.
        self.actors.drain(..).rev().try_for_each(|actor| actor.roll_back(played))
    }
}

/// Plays on a database, with the oracle of its contents.
#[derive(Clone, Default)]
pub(crate) struct Player {
    pub oracle: Oracle,
    /// The played calls.
    pub played: Played,
    /// Commits and schema changes that were acknowledged.
    pub acknowledged: u64,
    pub(super) tables_made: u32,
    xids_made: u32,
    consumer: Consumer,
}

impl Player {
    /// Plays a letter.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(crate) fn play(&mut self, stage: &Stage<'_>, scene: &mut Scene, rng: &mut Choices) -> Result<()> {
        self.consumer.note_bound(stage.db);
        match Letter::random(rng) {
            letter @ (Letter::Begin | Letter::Act | Letter::End | Letter::Prepare | Letter::EndPrepared) => {
                self.play_actor(letter, stage, scene, rng)
            }
            Letter::Transact if rng.bool() => {
                self.with_world(stage, &scene.actors, |oracle, world| session(oracle, world, rng))
            }
            Letter::Transact => self.with_world(stage, &scene.actors, |oracle, world| transact(oracle, world, rng)),
            letter @ (Letter::TakeSnapshot | Letter::LookAtSnapshot | Letter::DropSnapshot) => {
                self.play_snapshot(letter, stage, &mut scene.snapshots, rng)
            }
            Letter::ChangeSchema => self.change_schema(stage.db, rng),
            Letter::Consume => self.consumer.consume(stage.db, &self.played, rng),
            Letter::Expiring if self.oracle.expiring.is_none() => {
                let created = expiring::create(stage.db, &self.played);
                self.changed(Change::CreateExpiring, created)
            }
            Letter::Expiring => {
                let Scene { actors, expiring, .. } = scene;
                self.with_world(stage, actors, |oracle, world| expiring::play(oracle, world, expiring, rng))
            }
            Letter::Whole => self.call_whole(stage.db, scene.backups.as_mut(), rng),
            Letter::Background => self.step(stage, rng),
        }
    }

    /// Plays a letter with open or prepared transactions.
    fn play_actor(&mut self, letter: Letter, stage: &Stage<'_>, scene: &mut Scene, rng: &mut Choices) -> Result<()> {
        let Scene { actors, prepared, .. } = scene;
        match letter {
            Letter::Begin if actors.len() < ACTORS => {
                actors.push(self.with_world(stage, &[], |_, world| Actor::begin(world, rng))?);
            }
            Letter::Act if !actors.is_empty() => {
                let mut actor = actors.swap_remove(rng.usize(..actors.len()));
                let done = self.with_world(stage, actors, |oracle, world| actor.act(oracle, world, rng));
                actors.push(actor);
                done?;
            }
            Letter::End if !actors.is_empty() => {
                let actor = actors.swap_remove(rng.usize(..actors.len()));
                self.with_world(stage, actors, |oracle, world| actor.end(oracle, world, rng))?;
                self.acknowledged += 1;
            }
            Letter::Prepare if !actors.is_empty() && self.oracle.prepared.len() < PREPARED => {
                let actor = actors.swap_remove(rng.usize(..actors.len()));
                self.xids_made += 1;
                let number = self.xids_made;
                self.with_world(stage, actors, |oracle, world| prepared.prepare(actor, number, oracle, world, rng))?;
                self.acknowledged += 1;
            }
            Letter::EndPrepared if !self.oracle.prepared.is_empty() => {
                self.with_world(stage, actors, |oracle, world| prepared.end_one(oracle, world, rng))?;
                self.acknowledged += 1;
            }
            _ => self.step(stage, rng)?,
        }
        Ok(())
    }

    /// Plays a letter with open snapshots.
    fn play_snapshot(
        &mut self,
        letter: Letter,
        stage: &Stage<'_>,
        snapshots: &mut Vec<Snapshot>,
        rng: &mut Choices,
    ) -> Result<()> {
        match letter {
            Letter::TakeSnapshot if snapshots.len() < SNAPSHOTS => {
                let world = |oracle: &mut Oracle, world: &World<'_>| Snapshot::take(oracle, world);
                snapshots.extend(self.with_world(stage, &[], world)?);
            }
            Letter::LookAtSnapshot if !snapshots.is_empty() => {
                let at = rng.usize(..snapshots.len());
                self.with_world(stage, &[], |oracle, world| match rng.u32(..16) {
                    0 => snapshots[at].look_during_a_scan(oracle, world),
                    1 if snapshots.len() < SNAPSHOTS => {
                        let same = snapshots[at].same(world.played)?;
                        snapshots.push(same);
                        Ok(())
                    }
                    _ => snapshots[at].look(oracle, world, rng),
                })?;
            }
            Letter::DropSnapshot if !snapshots.is_empty() => drop(snapshots.swap_remove(0)),
            _ => self.step(stage, rng)?,
        }
        Ok(())
    }

    /// Runs a step that a thread of the database performs otherwise.
    fn step(&mut self, stage: &Stage<'_>, rng: &mut Choices) -> Result<()> {
        let Some(stepped) = stage.stepped else { return Ok(()) };
        let step = BackgroundStep::ALL[rng.usize(..BackgroundStep::ALL.len())];
        stepped.step(step)?;
        if step == BackgroundStep::Log && (!self.oracle.has_unasked_commit || stepped.is_log_durable()) {
            self.oracle.is_durable();
        }
        Ok(())
    }

    fn with_world<R>(
        &mut self,
        stage: &Stage<'_>,
        others: &[Actor],
        play: impl FnOnce(&mut Oracle, &World<'_>) -> Result<R>,
    ) -> Result<R> {
        let prepared = self.oracle.prepared.values();
        let changes: Changes = others.iter().map(Actor::own).chain(prepared).flat_map(Clone::clone).collect();
        let world = World {
            db: stage.db,
            played: &self.played,
            others: &changes,
            is_sound: stage.is_sound,
            fills: stage.fills,
            is_alone: others.is_empty() && self.oracle.prepared.is_empty() && stage.is_sound,
            flush_log: stage.db.options().flush_log_at_trx_commit,
        };
        play(&mut self.oracle, &world)
    }
}

/// Runs a transaction by `transact`.
fn transact(oracle: &mut Oracle, world: &World<'_>, rng: &mut Choices) -> Result<()> {
    let options = random_options(rng);
    let (mut session, mut wrong, mut commits) = (Session::new(options.clone()), None, false);
    let (count, gives_up) = (rng.u32(1..6), rng.u32(..4) == 0);
    let mut attempts = 0;
    let mut work = |txn: &mut WriteTxn| {
        (session, commits, attempts) = (Session::new(options.clone()), false, attempts + 1);
        if call!(world.played, WriteTxn::attempt(txn)) != attempts {
            return Err(Error::Data(format!("run {attempts} of a transaction has another number")));
        }
        for _ in 0..count {
            session.act(txn, oracle, world, rng)?;
        }
        commits = !gives_up;
        if gives_up { Err(gives_up_error().into()) } else { Ok(()) }
    };
    let mut of_engine = |done: Result<()>| {
        done.map_err(|error| match error {
            Error::Engine(error) => error,
            error => {
                wrong = Some(error);
                gives_up_error()
            }
        })
    };
    let is_default = options == highwater::TxnOptions::default();
    let done = match (count % 2 == 0, is_default) {
        (true, true) => call!(world.played, Database::try_transact(world.db, &mut work)),
        (true, false) => call!(world.played, Database::try_transact_with(world.db, &options, &mut work)),
        (false, true) => {
            call!(world.played, Database::transact(world.db, |txn| of_engine(work(txn)))).map_err(Error::from)
        }
        (false, false) => {
            let done = call!(world.played, Database::transact_with(world.db, &options, |txn| of_engine(work(txn))));
            done.map_err(Error::from)
        }
    };
    match (wrong, done) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => {
            session.acknowledge(oracle, world);
            Ok(())
        }
        (None, Err(Error::Engine(Engine::BadOption { option, .. }))) if option == GIVES_UP => Ok(()),
        (None, Err(error)) => {
            oracle.in_doubt = commits.then(|| session.change());
            Err(error)
        }
    }
}

/// Message of the error by which the closure of `transact` requests a rollback.
const GIVES_UP: &str = "gives up";

fn gives_up_error() -> Engine {
    Engine::BadOption { option: GIVES_UP.into(), reason: String::new() }
}
