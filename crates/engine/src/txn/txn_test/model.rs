//! Random transactions, interleaved on one thread, against a model with versions.

use super::*;

const KEYS: u64 = 40;
const SESSIONS: usize = 4;

/// Committed versions of one key, oldest first: (number of commits before, row).
type Versions = Vec<(u64, Option<Row>)>;

#[derive(Default)]
struct Model {
    keys: BTreeMap<String, Versions>,
    commits: u64,
}

struct Actor {
    session: Session,
    level: Isolation,
    /// Commits the snapshot sees.
    snapshot: Option<u64>,
    own: BTreeMap<String, Option<Row>>,
    savepoints: Vec<(Savepoint, BTreeMap<String, Option<Row>>)>,
}

impl Model {
    fn at(&self, key: &str, commits: u64) -> Option<&Row> {
        let versions = self.keys.get(key)?;
        versions.iter().rev().find(|(from, _)| *from <= commits)?.1.as_ref()
    }

    fn newest<'a>(&'a self, actor: &'a Actor, key: &str) -> Option<&'a Row> {
        match actor.own.get(key) {
            Some(row) => row.as_ref(),
            None => self.at(key, self.commits),
        }
    }

    fn seen(&self, actor: &Actor) -> BTreeMap<String, Row> {
        let commits = actor.snapshot.filter(|_| actor.level == Isolation::RepeatableRead).unwrap_or(self.commits);
        let all = self.keys.keys().filter_map(|key| Some((key.clone(), self.at(key, commits)?.clone())));
        let mut rows: BTreeMap<String, Row> = all.collect();
        for (key, row) in &actor.own {
            match row {
                Some(row) => drop(rows.insert(key.clone(), row.clone())),
                None => drop(rows.remove(key)),
            }
        }
        rows
    }

    /// Whether another row, as the actor's writes see it, has the unique column.
    fn has_duplicate(&self, actor: &Actor, key: &str, row: &Row) -> bool {
        let keys = self.keys.keys().chain(actor.own.keys());
        !row.b.is_empty() && keys.filter(|k| *k != key).any(|k| self.newest(actor, k).is_some_and(|r| r.b == row.b))
    }

    fn commit(&mut self, own: BTreeMap<String, Option<Row>>) {
        self.commits += 1;
        for (key, row) in own {
            self.keys.entry(key).or_default().push((self.commits, row));
        }
    }
}

fn new_actor(db: &Db, random: &mut Random) -> Actor {
    let level = if random.below(2) == 0 { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
    let options = TxnOptions { isolation: level, lock_wait_timeout_ms: Some(1), ..TxnOptions::default() };
    Actor { session: db.begin_with(options), level, snapshot: None, own: BTreeMap::new(), savepoints: Vec::new() }
}

fn random_row(random: &mut Random) -> Row {
    let b = if random.below(3) == 0 { String::new() } else { format!("b{}", random.below(25)) };
    let length = if random.below(12) == 0 { 1000 + random.below(9000) } else { random.below(60) };
    row(&format!("a{}", random.below(6)), &b, &"r".repeat(length as usize))
}

fn write(model: &Model, actor: &mut Actor, random: &mut Random) {
    let key = format!("k{:02}", random.below(KEYS));
    let new = random_row(random);
    let exists = model.newest(actor, &key).is_some();
    let (result, effect) = match random.below(4) {
        3 => {
            let changed = model.newest(actor, &key).map(|row| Row { a: new.a.clone(), ..row.clone() });
            (actor.session.update_a(&key, std::str::from_utf8(&new.a).unwrap()), changed)
        }
        0 => (actor.session.insert(&key, &new).map(|()| true), Some(new)),
        1 => (actor.session.update(&key, &new), Some(new)),
        _ => (actor.session.delete(&key), None),
    };
    match result {
        Ok(done) => {
            if done {
                if let Some(new) = &effect {
                    assert!(!model.has_duplicate(actor, &key, new), "{key} duplicates {:?}", new.b);
                }
                actor.own.insert(key, effect);
            } else {
                assert!(!exists, "{key} exists");
            }
        }
        Err(Error::DuplicateKey { index, .. }) => {
            let new = effect.expect("a delete meets no duplicate");
            assert!(if index == "PRIMARY" { exists } else { model.has_duplicate(actor, &key, &new) });
        }
        Err(Error::LockWaitTimeout) => {}
        Err(error) => panic!("{error}"),
    }
}

fn read(model: &Model, actor: &mut Actor, random: &mut Random) {
    actor.snapshot.get_or_insert(model.commits);
    let seen = model.seen(actor);
    match random.below(3) {
        0 => {
            let key = format!("k{:02}", random.below(KEYS));
            assert_eq!(actor.session.get(&key).as_ref(), seen.get(&key));
        }
        1 => {
            let reverse = random.below(2) == 0;
            let found = actor.session.scan_rows(&ScanOptions { reverse, ..ScanOptions::default() }).unwrap();
            let expected: Vec<_> = seen.into_iter().collect();
            assert!(if reverse { found.iter().rev().eq(&expected) } else { found.iter().eq(&expected) });
        }
        _ => {
            let a = format!("a{}", random.below(6));
            let range = entries_of(&a);
            let found = actor.session.scan_rows(&by(0, &range)).unwrap();
            let expected: Vec<_> = seen.into_iter().filter(|(_, row)| row.a == a.as_bytes()).collect();
            assert_eq!(found, expected);
        }
    }
}

fn end(db: &Db, model: &mut Model, actor: &mut Actor, random: &mut Random) {
    let commit = random.below(4) > 0;
    let done = std::mem::replace(actor, new_actor(db, random));
    if commit {
        done.session.commit();
        model.commit(done.own);
    } else {
        done.session.rollback();
    }
}

fn savepoint(actor: &mut Actor, random: &mut Random) {
    if random.below(2) == 0 || actor.savepoints.is_empty() {
        let savepoint = actor.session.savepoint();
        actor.savepoints.push((savepoint, actor.own.clone()));
    } else {
        actor.savepoints.truncate(1 + random.below(actor.savepoints.len() as u64) as usize);
        let (savepoint, own) = actor.savepoints[actor.savepoints.len() - 1].clone();
        actor.session.rollback_to(savepoint).unwrap();
        actor.own = own;
    }
}

fn run(seed: u64) {
    let db = Db::new();
    let mut random = Random(seed);
    let mut model = Model::default();
    let mut actors: Vec<Actor> = (0..SESSIONS).map(|_| new_actor(&db, &mut random)).collect();
    for _ in 0..1500 {
        let actor = &mut actors[random.below(SESSIONS as u64) as usize];
        match random.below(20) {
            0..=9 => write(&model, actor, &mut random),
            10..=15 => read(&model, actor, &mut random),
            16 => savepoint(actor, &mut random),
            17 => drop(db.system.purge_step(random.below(30) as usize).unwrap()),
            _ => end(&db, &mut model, actor, &mut random),
        }
    }
    for actor in actors {
        actor.session.commit();
        model.commit(actor.own);
    }
    let expected: BTreeMap<Vec<u8>, Row> = model
        .keys
        .keys()
        .filter_map(|key| Some((key.clone().into_bytes(), model.at(key, model.commits)?.clone())))
        .collect();
    assert_eq!(db.check(false), expected, "seed {seed}");
    db.purge_all();
    assert_eq!(db.check(true), expected, "seed {seed}");
    assert!(db.system.locks.is_empty());
    let chains: usize =
        expected.values().filter(|row| row.encode().len() > 944).map(|row| row.rest.len().div_ceil(4040)).sum();
    assert_eq!(db.overflow_pages(), chains, "seed {seed}");
}

#[test]
fn random_transactions_do_what_the_model_does() {
    for seed in 1..=8 {
        run(seed);
    }
}
