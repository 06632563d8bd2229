//! YCSB on a model of a store.

use super::*;
use crate::store::model::Model;
use crate::workload::{Silent, load_or_reuse};

#[test]
fn every_letter_runs_its_operations() {
    let expected: [(Letter, &[usize]); 6] = [
        (Letter::A, &[0, 1]),
        (Letter::B, &[0, 1]),
        (Letter::C, &[0]),
        (Letter::D, &[0, 2]),
        (Letter::E, &[2, 3]),
        (Letter::F, &[0, 4]),
    ];
    for (letter, kinds) in expected {
        let store = Model::default();
        let workload = Ycsb::new(Config { letter, records: 200, seed: 1 });
        load_or_reuse(&store, &workload, 2, &Silent).unwrap();
        let mut client = workload.client(&store, 0).unwrap();
        let mut found = BTreeMap::<usize, u32>::new();
        for _ in 0..200 {
            *found.entry(client.run().unwrap().unwrap().kind).or_default() += 1;
        }
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), kinds, "{letter:?}");
        let inserted = found.get(&2).copied().unwrap_or(0);
        assert_eq!(store.count(TABLE), 200 + inserted as usize);

        let next = Ycsb::new(Config { letter, records: 200, seed: 2 });
        next.client(&store, 0).unwrap();
        assert_eq!(next.inserts.committed.load(Relaxed), 200 + u64::from(inserted));
    }
}

#[test]
fn a_number_that_a_killed_run_left_out_is_filled() {
    let store = Model::default();
    let workload = Ycsb::new(Config { letter: Letter::D, records: 200, seed: 1 });
    load_or_reuse(&store, &workload, 2, &Silent).unwrap();
    let table = open_table(&store, TABLE).unwrap();
    let mut txn = store.session().unwrap();
    let mut txn = txn.begin().unwrap();
    Record::new(rng(7, 7)).insert(&mut txn, &table, 201).unwrap();
    txn.finish().unwrap();
    let mut client = workload.client(&store, 0).unwrap();
    let inserted = (0..200).filter(|_| client.run().unwrap().unwrap().kind == Operation::Insert as usize).count();
    assert!(inserted > 1);
    assert_eq!(store.count(TABLE), 201 + inserted);
}

#[test]
fn a_record_that_is_missing_is_an_error() {
    for letter in Letter::ALL {
        let store = Model::default();
        let half = Ycsb::new(Config { letter, records: 100, seed: 1 });
        load_or_reuse(&store, &half, 1, &Silent).unwrap();
        let workload = Ycsb::new(Config { letter, records: 200, seed: 1 });
        let mut client = workload.client(&store, 0).unwrap();
        let error = (0..200).find_map(|_| client.run().err()).expect("half of the records are missing").to_string();
        assert!(error.contains("usertable has no user"), "{letter:?}: {error}");
    }
}
