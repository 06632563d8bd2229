//! `lab run peers` on every installed server, end to end at the smoke scale; and what the kernel ends has no result.
//!
//! Rules
//! 1. One that is not installed is named on standard error; `cargo xtask test` installs all.
//! 2. The embedded engines are measured by a program that is built apart; its tests are `cargo xtask peers-test`.

use highwater_bench::peers::{PeerWorkload, Request as CellRequest, Task, Verify};
use highwater_lab::experiment::{Request, Resume, Scale, Verdict, find, run};
use highwater_lab::measure::Quiet;
use highwater_lab::subject::{MemoryGroup, SubjectKind};
use std::path::Path;

fn installed() -> Vec<SubjectKind> {
    let found = SubjectKind::SERVERS.map(SubjectKind::find);
    found.iter().filter_map(|subject| subject.as_ref().err()).for_each(|missing| eprintln!("{missing}"));
    found.into_iter().flatten().map(|subject| subject.kind).collect()
}

fn request(subjects: Vec<SubjectKind>, out_dir: &Path) -> Request {
    Request {
        subjects,
        workloads: ["write-only", "index-scans", "bulk-load"].map(String::from).to_vec(),
        clients: Vec::new(),
        only: Vec::new(),
        highwater_options: Vec::new(),
        device: None,
        scale: Scale::Smoke,
        repetitions: None,
        seed: 7,
        work_dir: None,
        traces: None,
        out_dir: out_dir.into(),
    }
}

#[test]
fn every_server_has_verified_results() {
    let servers = installed();
    if servers.is_empty() {
        return;
    }
    let (folder, peers) = (tempfile::tempdir().unwrap(), find("peers").unwrap());
    let plan = request(servers.clone(), &folder.path().join("out")).plan(peers).unwrap();
    let outcome = run(peers, &plan, Resume::No, &mut Quiet).unwrap();
    // Durable and relaxed writes, scans, the load.
    assert_eq!(outcome.rows.len(), 4 * servers.len());
    for row in &outcome.rows {
        let value = |name: &str| row.measured.get(name).copied().unwrap_or(f64::NAN);
        let at = format!("{} {:?}: {:?}", row.subject, row.setting, row.measured);
        assert!(value("tps") > 0.0 && value("space_bytes") > 0.0 && value("peak_memory_bytes") > 0.0, "{at}");
        assert!(value("subject_cpu_s") > 0.0 && value("client_cpu_s") >= 0.0, "{at}");
        assert_eq!((value("conditions_broken"), value("ended_by_memory_limit")), (0.0, 0.0), "{at}");
        assert_eq!(value("index_entries"), 2.0 * value("rows"), "{at}");
    }
    // Of each server: results verified, memory enough, the same rows as the others.
    assert_eq!(outcome.claims.len(), 3 * servers.len());
    assert!(outcome.claims.iter().all(|claim| claim.verdict == Verdict::Holds), "{:?}", outcome.claims);
}

#[test]
fn a_server_that_its_memory_limit_ends_has_no_result() {
    const LIMIT: u64 = 24 << 20;
    if MemoryGroup::new(LIMIT).is_err() {
        return;
    }
    for server in installed() {
        let folder = tempfile::tempdir().unwrap();
        let request = CellRequest {
            subject: server.name().into(),
            workload: PeerWorkload::BulkLoad,
            task: Task::Load,
            folder: folder.path().join("database"),
            data_bytes: 8 << 20,
            cache_bytes: 128 << 20,
            beyond_memory: false,
            durable: false,
            clients: 1,
            warmup_s: 0.0,
            seconds: 0.0,
            verify: Verify::Rows,
            seed: 1,
            options: Default::default(),
            loaded_digest: None,
        };
        let taken = server.compare(&request, Some(LIMIT), folder.path()).unwrap();
        assert!(taken.answer.is_none() && taken.memory_limit == "24 MiB", "{server}: {taken:?}");
    }
}
