//! Some lives of some databases; the same seed twice.

use super::silent_faults::{OPERATIONS, SilentFault};
use super::*;
use highwater::internals::BackgroundStep;
use highwater::internals::test_part::is_tried;
use highwater::{Schema, Type, values};

fn lives(seed: u64, lives: u32) -> (Tally, History) {
    let mut simulation = Simulation::new(seed, MAX_STEPS);
    simulation.run(lives).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    (simulation.tally(), simulation.history().clone())
}

#[test]
fn every_answer_is_the_oracles_whatever_fails() {
    let mut all = Tally::default();
    (0..24).for_each(|seed| all.add(&lives(seed, 6).0));
    assert!(all.cuts > 50 && all.recovery_cuts > 20 && all.failures > 2 && all.acknowledged > 500, "{all:?}");
    assert!(all.silent_faults > 2 && all.extent_maps > 1, "{all:?}");
}

#[test]
fn whatever_operation_fails_nothing_is_lost() {
    let mut all = Tally::default();
    for seed in 0..4 {
        all.add(&every_failure(seed, 40, || {}).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
    assert!(all.failures > 150 && all.cuts > 50, "{all:?}");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    // The clock determines when an engine checks again whether a full disk has space.
    let is_repeatable = |seed: &u64| !Simulation::new(*seed, MAX_STEPS).has_small_disks();
    for seed in (100..110).filter(is_repeatable).filter(|seed| is_tried(*seed)) {
        let ((tally, history), again) = (lives(seed, 4), lives(seed, 4));
        assert_eq!((history.difference(&again.1), tally), (None, again.0), "seed {seed}");
    }
}

/// The pages of a transaction that is active at a power cut are in their places, so the next opening reads them first
/// when it rolls the transaction back. Each read of that opening is made to read another page, in turn: with some of
/// them the rollback is skipped, and each time that is reported.
#[test]
fn a_rollback_that_was_skipped_is_a_report() {
    let mut simulation = Simulation::new(0, MAX_STEPS);
    cut_off_a_transaction(&mut simulation).unwrap();
    let reads: Vec<Tally> = (0..4 * OPERATIONS).map(|read| misdirected(&mut simulation, read)).collect();
    let skipped: Vec<_> = reads.iter().filter(|tally| tally.rollbacks_skipped > 0).collect();
    assert!(!skipped.is_empty(), "no rollback was skipped");
    assert!(skipped.iter().all(|tally| tally.silent_faults_reported == 1), "{skipped:?}");
    // Some reads are repeated, or come after the rollback.
    assert!(skipped.len() < reads.iter().filter(|tally| tally.silent_faults == 1).count());
}

/// Leaves the disks as a power cut does that comes while a transaction is active whose changes were all written.
fn cut_off_a_transaction(simulation: &mut Simulation) -> Result<()> {
    let db = simulation.open(&Faults::new())?;
    let schema = Schema::new().column("id", Type::U64).column("text", Type::Text(1000)).primary_key(&["id"]);
    let table = db.database().create_table("cut_off", schema)?;
    let text = "x".repeat(900);
    db.database().transact(|txn| (0..200).try_for_each(|id| txn.insert(&table, &values![id, &*text]).map(drop)))?;
    let mut txn = db.database().begin()?;
    (0..200).try_for_each(|id| txn.update(&table, &values![id], &[(1, "changed".into())]).map(drop))?;
    db.database().flush_log()?;
    while db.database().list_lengths().dirty > 0 {
        simulation.now_ms.fetch_add(1000, Relaxed);
        db.step(BackgroundStep::Cleaner)?;
    }
    simulation.cut();
    Ok(txn.rollback()?)
}

fn misdirected(simulation: &mut Simulation, read: u64) -> Tally {
    simulation.tally = Tally::default();
    simulation
        .live_with_fault(SilentFault::MisdirectedRead, read)
        .unwrap_or_else(|error| panic!("read {read}: {error}"));
    simulation.tally
}

/// With this seed the last page of the LRU list came in lately, and all pages are clean: the change buffer found no
/// frame in 20 seconds.
#[test]
fn a_clean_page_is_a_victim_though_the_last_one_came_in_lately() {
    lives(50_234, 5);
}
