//! Cells on a model of a store.

use super::*;
use crate::peers::Contents;
use crate::store::model::Model;
use std::collections::BTreeMap;

impl Database for Model {
    type Store = Model;

    fn version(&self) -> String {
        "model".into()
    }

    fn open(&mut self) -> Result<Model> {
        Ok(self.clone())
    }

    fn close(&mut self, _: Model) -> Result<()> {
        Ok(())
    }
}

/// Bytes of 1,000 rows in each table, of YCSB or sysbench: the least there is.
const MIN_BYTES: u64 = 1;

fn request(workload: PeerWorkload, folder: &tempfile::TempDir) -> Request {
    Request {
        subject: "model".into(),
        workload,
        task: Task::Run,
        folder: folder.path().into(),
        data_bytes: MIN_BYTES,
        cache_bytes: 0,
        beyond_memory: true,
        durable: false,
        clients: 2,
        warmup_s: 0.05,
        seconds: 0.1,
        verify: Verify::Rows,
        seed: 1,
        options: BTreeMap::new(),
        loaded_digest: None,
    }
}

fn load(model: &mut Model, request: &Request) -> Contents {
    let answer = measure(&Request { task: Task::Load, ..request.clone() }, model).unwrap();
    assert!(broken(&answer).is_empty(), "{:?}", answer.conditions);
    answer.contents
}

fn broken(answer: &Answer) -> Vec<String> {
    answer.conditions.iter().filter(|one| !one.holds).map(|one| one.condition.clone()).collect()
}

fn of_rows() -> impl Iterator<Item = PeerWorkload> {
    PeerWorkload::ALL
        .into_iter()
        .filter(|one| !matches!(one, PeerWorkload::Tpcc | PeerWorkload::Redb | PeerWorkload::BulkLoad))
}

#[test]
fn every_workload_leaves_the_rows_that_it_must() {
    for workload in of_rows() {
        // Where others have the processors no transaction may end in a short run.
        let is_done = (0..10).any(|attempt| leaves_its_rows(workload, f64::from(1 << attempt)));
        assert!(is_done, "{workload:?} warms up with no transaction, or inserts nothing");
    }
}

/// Whether a run so many times as long as others has a warm-up, and inserts if it is to.
fn leaves_its_rows(workload: PeerWorkload, longer: f64) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (mut model, request) = (Model::default(), request(workload, &folder));
    let loaded = load(&mut model, &request);
    let (warmup_s, seconds) = (request.warmup_s * longer, request.seconds * longer);
    let request = Request { loaded_digest: Some(loaded.digest), warmup_s, seconds, ..request };
    let answer = measure(&request, &mut model).unwrap();
    let names: Vec<&str> = answer.conditions.iter().map(|one| one.condition.as_str()).collect();
    let expected: &[&str] = if workload.writes() { &["rows"] } else { &["rows", "digest"] };
    assert_eq!((names, broken(&answer)), (expected.into(), Vec::new()), "{workload:?} {:?}", answer.conditions);
    let (inserts, has_more) =
        (matches!(workload, PeerWorkload::YcsbD | PeerWorkload::YcsbE), answer.contents.rows > loaded.rows);
    assert!(inserts || !has_more, "{workload:?}");
    answer.warmup_transactions > 0 && inserts == has_more
}

#[test]
fn fewer_rows_than_the_settings_say_are_found() {
    let folder = tempfile::tempdir().unwrap();
    // YCSB's own reads find them, and end the run.
    for workload in [PeerWorkload::WriteOnly, PeerWorkload::PointReads, PeerWorkload::IndexScans] {
        let (mut model, request) = (Model::default(), request(workload, &folder));
        load(&mut model, &request);
        let more = Request { data_bytes: 240 * 4 * 100_000, seconds: 0.02, warmup_s: 0.0, ..request };
        assert_eq!(broken(&measure(&more, &mut model).unwrap()), ["rows"], "{workload:?}");
    }
}

#[test]
fn other_rows_than_those_loaded_are_found() {
    let folder = tempfile::tempdir().unwrap();
    for workload in of_rows().filter(|workload| !workload.writes()) {
        let (mut model, request) = (Model::default(), request(workload, &folder));
        load(&mut model, &request);
        let other = Request { loaded_digest: Some("0".repeat(16)), ..request };
        assert_eq!(broken(&measure(&other, &mut model).unwrap()), ["digest"], "{workload:?}");
    }
}
