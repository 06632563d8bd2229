//! Damage of the files of a small database: bytes flipped alone, blocks that lie at the wrong place or are of an older
//! time. `highwater torture corrupt` flips every byte, many at once; each test run has it flip every byte of a header.

use highwater::internals::test_part::{is_tried, test_part};
use highwater_torture::corruption::{
    ByteRole, Case, Damage, File, Kind, Left, STORES, Small, Store, Tally, cases, flips, grouped, run, run_groups,
};
use std::sync::Arc;

/// Of the bytes that are in no header, every Nth are flipped.
const EVERY: u64 = 1999;
const THREADS: usize = 2;
/// How the name of redo ends that an opening applies. What becomes of a flip there depends on what becomes of others:
/// each run tries all of them.
const REDO: &str = "redo since the checkpoint";

/// The cases of this run's part.
fn tried(cases: Vec<Case>) -> Vec<Case> {
    let numbered = (0..).zip(cases).filter(|(n, case)| is_tried(*n) || case.what.ends_with(REDO));
    numbered.map(|(_, case)| case).collect()
}

/// Of all cases, more than `least` have this outcome, redo left out.
fn expect_more(tally: &Tally, outcome: &str, least: u64) {
    let counted = tally.counts.iter().filter(|((what, found), _)| *found == outcome && !what.ends_with(REDO));
    let parts = test_part().map_or(1, |(_, parts)| parts);
    assert!(counted.map(|(_, count)| count).sum::<u64>() * parts > least, "{outcome}: {:?}", tally.counts);
}

fn expect_no_failure(tally: &Tally) {
    let lines: Vec<String> = tally.lines().collect();
    println!("{}", lines.join("\n"));
    let failures: Vec<_> = tally.failures.iter().take(10).map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn sweep(store: Store, left: Left, every: u64) -> (Arc<Small>, Tally) {
    let small = Arc::new(Small::new(store, left).unwrap());
    let cases = tried(flips(&small, every, 0).unwrap());
    let tally = run(Arc::clone(&small), cases, THREADS, |_| {});
    expect_no_failure(&tally);
    (small, tally)
}

#[test]
fn flips_in_a_closed_database() {
    let (_, tally) = sweep(STORES[0], Left::Closed, EVERY);
    expect_more(&tally, "reported", 1500);
    expect_more(&tally, "harmless", 400);
}

#[test]
fn flips_in_a_database_that_was_not_closed() {
    let (small, tally) = sweep(STORES[0], Left::Stopped, EVERY);
    assert!(small.torn.is_some());
    expect_more(&tally, "reported", 500);
    assert!(tally.count("reported") > 200 && tally.count("taken for a torn write") > 0, "{:?}", tally.counts);
}

#[test]
fn flips_with_a_journal() {
    for left in [Left::Closed, Left::Stopped] {
        let (_, tally) = sweep(STORES[1], left, EVERY);
        expect_more(&tally, "reported", 500);
    }
}

#[test]
fn flips_in_a_closed_database_out_of_place() {
    // Compressed, and without what a small database that is closed does not need, there is less to damage.
    let (_, tally) = sweep(STORES[2], Left::Closed, EVERY / 40);
    expect_more(&tally, "reported", 300);
}

#[test]
fn flips_in_a_database_out_of_place_that_was_not_closed() {
    let (_, tally) = sweep(STORES[3], Left::Stopped, EVERY);
    expect_more(&tally, "reported", 500);
}

#[test]
fn blocks_at_the_wrong_place_or_of_an_older_time() {
    for store in [STORES[0], STORES[1], STORES[3]] {
        for left in [Left::Closed, Left::Stopped] {
            let small = Arc::new(Small::new(store, left).unwrap());
            for kind in Kind::ALL {
                let tally = run(Arc::clone(&small), cases(&small, kind, 41).unwrap(), THREADS, |_| {});
                expect_no_failure(&tally);
                assert!(tally.count("reported") > 0, "{kind:?}: {:?}", tally.counts);
            }
        }
    }
}

/// The judge can fail: wrong rows that nothing reports, damage that is said to be live and is not.
#[test]
fn what_must_not_be_is_a_failure() {
    let small = Arc::new(Small::new(STORES[0], Left::Closed).unwrap());
    let nothing = || vec![Damage { file: File::Data, offset: 0, bytes: Vec::new() }];
    let said_to_be_live = Case::of_byte("a page that is whole", nothing(), ByteRole::Page(3));
    let tally = run(Arc::clone(&small), vec![said_to_be_live], 1, |_| {});
    assert!(tally.failures[0].to_string().contains("nothing was reported"), "{:?}", tally.failures);
    // All three files of an earlier closing are a sound database with other rows.
    let older = File::ALL.map(|file| Damage { file, offset: 0, bytes: small.older[file as usize].to_vec() });
    let older = Case::of_byte("an older database", older.to_vec(), ByteRole::Unused);
    let tally = run(small, vec![older], 1, |_| {});
    assert!(tally.failures[0].to_string().contains("wrong rows"), "{:?}", tally.failures);
}

/// The parts together have every block, and each has the headers.
#[test]
fn parts_make_up_the_whole() {
    let at = |block: u64| {
        let damage = Damage { file: File::Data, offset: block * 4096 + 17, bytes: vec![1] };
        Case::of_byte("a byte", vec![damage], ByteRole::Unused)
    };
    for block in 0..40 {
        let parts = (0..10).filter(|part| at(block).is_of_part(*part, 10)).count();
        assert_eq!(parts, if block < 2 { 10 } else { 1 }, "block {block}");
    }
}

/// Which cases are put together changes the time, not the outcome.
#[test]
fn together_each_flip_becomes_what_it_becomes_alone() {
    for store in [STORES[0], STORES[3]] {
        let small = Arc::new(Small::new(store, Left::Closed).unwrap());
        let cases = tried(flips(&small, EVERY, 0).unwrap());
        let groups = grouped(&small, cases.clone(), 16);
        assert!(groups.iter().any(|group| group.len() > 4));
        let together = run_groups(Arc::clone(&small), groups, THREADS, |_| {});
        let alone = run(small, cases, THREADS, |_| {});
        assert_eq!(together.counts, alone.counts);
        assert!(together.failures.is_empty() && alone.failures.is_empty());
    }
}
