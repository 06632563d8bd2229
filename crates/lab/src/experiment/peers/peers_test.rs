//! Cells and claims of peers, on made-up rows.

use super::plan::{BEYOND, CLIENTS, COMMITS, DATA, IN_MEMORY, Point, RELAXED, WORKLOAD};
use super::*;
use crate::experiment::metric::info;
use crate::experiment::testing;
use crate::experiment::{Scale, Setting, Verdict, setting};
use std::collections::BTreeSet;

fn plan(scale: Scale, workloads: &[&str]) -> Plan {
    let plan = testing::plan(scale, "local", &SubjectKind::OF_COMPARE);
    Plan { workloads: workloads.iter().map(ToString::to_string).collect(), repetitions: 2, ..plan }
}

#[test]
fn cells_are_unique_and_subjects_take_turns() {
    for scale in Scale::ALL {
        let cells = Peers.cells(&plan(scale, &[]));
        let ids: BTreeSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids.len(), cells.len());
        let subjects: Vec<&str> = cells.iter().take(7).map(|cell| cell.subject.as_str()).collect();
        assert_eq!(subjects, SubjectKind::OF_COMPARE.map(SubjectKind::name));
        assert!(cells.iter().all(|cell| Point::of(&cell.setting).is_ok()));
    }
    let cells = Peers.cells(&plan(Scale::Standard, &["tpcc", "point-reads"]));
    // Two classes; TPC-C durable and relaxed; three numbers of clients; two repetitions, seven subjects.
    assert_eq!(cells.len(), (2 * 2 * 3 + 2 * 3) * 2 * 7);
    let asked = Plan { clients: vec![2, 64], ..plan(Scale::Quick, &["point-reads", "bulk-load"]) };
    let clients: BTreeSet<String> =
        Peers.cells(&asked).iter().map(|cell| cell.setting[CLIENTS.name()].clone()).collect();
    // The threads of a load are its own.
    assert_eq!(clients.into_iter().collect::<Vec<_>>(), ["2", "64"]);
}

#[test]
fn settings_can_be_left_out() {
    let only = [("data", "in-memory"), ("commits", "durable"), ("commits", "none")].map(|(n, v)| (n.into(), v.into()));
    let all = plan(Scale::Quick, &["tpcc", "point-reads"]);
    let chosen = Peers.cells(&Plan { only: only.into(), ..all.clone() });
    let wanted = |cell: &&Cell| cell.setting[DATA.name()] == IN_MEMORY && cell.setting[COMMITS.name()] != RELAXED;
    assert_eq!(chosen.len(), Peers.cells(&all).iter().filter(wanted).count());
    assert!(!chosen.is_empty());
}

#[test]
fn servers_are_measured_on_request_and_without_redbs_benchmark() {
    assert!(Peers.default_subjects().iter().all(|subject| !subject.is_server()));
    let all = testing::plan(Scale::Quick, "local", &SubjectKind::ALL);
    let of = |subject: SubjectKind| {
        let cells = Peers.cells(&all).into_iter().filter(move |cell| cell.subject == subject.name());
        cells.map(|cell| cell.get(WORKLOAD).to_string()).collect::<BTreeSet<_>>()
    };
    let embedded = of(SubjectKind::Highwater);
    for server in SubjectKind::SERVERS {
        assert!(Peers.about().subjects.contains(&server));
        let left_out: Vec<String> = embedded.difference(&of(server)).cloned().collect();
        assert_eq!(left_out, ["redb"], "{server}");
    }
}

#[test]
fn beyond_memory_every_engine_has_the_same_memory_and_a_cache_within_it() {
    let workloads = PeerWorkload::ALL.into_iter().filter(|workload| *workload != PeerWorkload::Redb);
    for (scale, workload) in Scale::ALL.into_iter().flat_map(|scale| workloads.clone().map(move |one| (scale, one))) {
        let point = Point { workload, data: BEYOND, commits: "relaxed", clients: "4" };
        let memory = plan::memory(scale, &point, SubjectKind::Highwater);
        assert_eq!(plan::data(scale, &point), memory * 10);
        for subject in SubjectKind::OF_COMPARE {
            assert_eq!(plan::memory(scale, &point, subject), memory, "{scale:?} {workload:?} {subject}");
            assert!((1..memory).contains(&plan::cache(scale, &point, subject)), "{scale:?} {workload:?} {subject}");
        }
        // A server has more, for all of it that is no engine.
        assert!(plan::memory(scale, &point, SubjectKind::Mariadb) > memory);
    }
}

#[test]
fn data_of_one_kind_and_class_follow_each_other() {
    let cells = Peers.cells(&plan(Scale::Standard, &[]));
    let mut groups: Vec<(&str, &str)> = cells
        .iter()
        .map(|cell| Point::of(&cell.setting).unwrap())
        .map(|point| (point.workload.data(), if point.data == BEYOND { BEYOND } else { IN_MEMORY }))
        .collect();
    groups.dedup();
    assert_eq!(groups.len(), groups.iter().collect::<BTreeSet<_>>().len(), "{groups:?}");
    assert_eq!(groups.len(), 7, "three kinds of data in two classes, and redb's");
}

fn point(clients: &str) -> Setting {
    setting([(WORKLOAD, "ycsb-a"), (DATA, IN_MEMORY), (COMMITS, "durable"), (CLIENTS, clients)])
}

fn row(subject: &str, runs: &[f64]) -> Row {
    let mut row = testing::row(subject, point("4"), &[(metric::TPS, runs[0]), (metric::CONDITIONS_BROKEN, 0.0)]);
    row.runs.insert(metric::TPS.name().into(), runs.to_vec());
    row.info.insert(info::LOADED_DIGEST.name().into(), "abc".into());
    row
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    Peers.claims(&plan(Scale::Quick, &[]), rows).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn a_cell_is_judged_against_the_fastest_peer() {
    use Verdict::{Holds, Lost, Undecided};
    let peers = [row("lmdb", &[90.0, 91.0, 90.0]), row("redb", &[50.0, 51.0, 50.0])];
    let with = |own: &[f64]| verdicts(&[&[row("highwater", own)], &peers[..]].concat())[0];
    assert_eq!(with(&[100.0, 101.0, 100.0]), Holds);
    assert_eq!(with(&[60.0, 61.0, 60.0]), Lost);
    assert_eq!(with(&[60.0, 180.0, 60.0]), Undecided);
    let claims =
        Peers.claims(&plan(Scale::Quick, &[]), &[&[row("highwater", &[60.0, 61.0, 60.0])], &peers[..]].concat());
    assert!(claims[0].detail.contains("LMDB") && claims[0].text.contains("ycsb-a, in memory, durable, 4 clients"));
}

#[test]
fn what_is_broken_or_other_rows_lose() {
    let whole = [row("highwater", &[2.0]), row("lmdb", &[1.0])];
    assert_eq!(verdicts(&whole)[1..], [Verdict::Holds; 6]);
    let mut broken = whole.clone();
    broken[1].measured.insert(metric::CONDITIONS_BROKEN.name().into(), 1.0);
    assert_eq!(verdicts(&broken)[1..3], [Verdict::Holds, Verdict::Lost]);
    // In one repetition of three, which the median does not show.
    broken[1].measured.insert(metric::CONDITIONS_BROKEN.name().into(), 0.0);
    broken[1].spread.insert(metric::CONDITIONS_BROKEN.name().into(), [0.0, 1.0]);
    assert_eq!(verdicts(&broken)[1..3], [Verdict::Holds, Verdict::Lost]);
    // Nothing was verified.
    let mut unknown = whole.clone();
    unknown[1].measured.remove(metric::CONDITIONS_BROKEN.name());
    assert_eq!(verdicts(&unknown)[1..3], [Verdict::Holds, Verdict::Lost]);
    let mut others = whole.clone();
    others[1].info.insert(info::LOADED_DIGEST.name().into(), "abd".into());
    assert_eq!(verdicts(&others)[5..], [Verdict::Lost; 2]);
}

#[test]
fn an_engine_that_its_memory_limit_ended_has_no_result() {
    let whole = [row("highwater", &[2.0]), row("lmdb", &[1.0]), row("fjall", &[3.0])];
    let without = |subject: usize| {
        let mut rows = whole.clone();
        let ended = metric::ENDED_BY_MEMORY_LIMIT.name().to_string();
        let setting = rows[subject].setting.clone();
        rows[subject] = testing::row(&whole[subject].subject, setting, &[(metric::ENDED_BY_MEMORY_LIMIT, 1.0)]);
        rows[subject].spread.insert(ended, [1.0, 1.0]);
        Peers.claims(&plan(Scale::Quick, &[]), &rows)
    };
    // Of a peer: the next one is the fastest.
    let claims = without(2);
    assert!(claims[0].detail.contains("LMDB"), "{}", claims[0].detail);
    let of_memory: Vec<&Claim> = claims.iter().filter(|claim| claim.text == "Its memory was enough").collect();
    assert_eq!(of_memory.iter().map(|claim| claim.verdict == Verdict::Lost).collect::<Vec<_>>(), [false, false, true]);
    assert!(of_memory[2].detail.contains("ycsb-a, in memory, durable, 4 clients"), "{}", of_memory[2].detail);
    // Highwater's own is lost.
    assert_eq!(without(0)[0].verdict, Verdict::Lost, "{}", without(0)[0].detail);
}

#[test]
fn figures_show_every_engine() {
    let rows = [row("highwater", &[2.0]), row("lmdb", &[1.0])];
    let figures = Peers.figures(&rows);
    let Some(Figure::Table(speeds)) = figures.first() else { panic!("no table") };
    assert_eq!(speeds.rows[0][..6], ["ycsb-a", "in memory", "durable", "4", "2.00", "1.00"]);
    assert!(speeds.rows[0][6].contains("2.00 times LMDB"), "{:?}", speeds.rows[0]);
    assert!(figures.iter().any(|figure| matches!(figure, Figure::Bars(bars) if bars.bars.len() == 2)));
}

#[test]
fn flash_is_shown_where_it_was_counted() {
    let title = |figure: &Figure| matches!(figure, Figure::Table(table) if table.title == "Flash");
    let mut rows = [row("highwater", &[2.0]), row("lmdb", &[1.0])];
    assert!(!Peers.figures(&rows).iter().any(title));
    for (name, value) in [
        (metric::DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION, 1000.0),
        (metric::WRITE_AMPLIFICATION, 1.25),
        (metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, 1250.0),
        (metric::CAPACITIES_WRITTEN, 3.1),
    ] {
        rows[1].measured.insert(name.name().into(), value);
    }
    let figures = Peers.figures(&rows);
    let Some(Figure::Table(flash)) = figures.iter().find(|figure| title(figure)) else { panic!("no table") };
    assert_eq!(flash.rows, [["ycsb-a", "in memory", "durable", "4", "LMDB", "1000", "1.25", "1250", "3.10"]]);
    // Then bytes of flash are judged, and a subject without them has lost.
    let bytes = metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION.name();
    let judged = |own: &[f64]| {
        let mut rows = rows.clone();
        if let Some(first) = own.first() {
            rows[0].measured.insert(bytes.into(), *first);
        }
        rows[0].runs.insert(bytes.into(), own.to_vec());
        rows[1].runs.insert(bytes.into(), vec![1250.0, 1251.0, 1250.0]);
        let claims = Peers.claims(&plan(Scale::Quick, &[]), &rows);
        assert!(claims[0].text.starts_with("No more bytes of flash") && claims[0].detail.contains("LMDB"));
        claims[0].verdict
    };
    assert_eq!(judged(&[1000.0, 1001.0, 1000.0]), Verdict::Holds);
    assert_eq!(judged(&[2000.0, 2001.0, 2000.0]), Verdict::Lost);
    assert_eq!(judged(&[]), Verdict::Lost);
}

#[test]
fn every_engine_finds_room_on_the_emulated_ssd() {
    let plan = testing::plan(Scale::Quick, "simple-2gb", &SubjectKind::OF_COMPARE);
    assert!(Peers.mounts(&plan) && !Peers.mounts(&testing::plan(Scale::Quick, "local", &SubjectKind::OF_COMPARE)));
    let cells = Peers.cells(&plan);
    assert!(cells.iter().all(|cell| cell.get(DATA) == BEYOND && cell.device == "simple-2gb"), "{cells:?}");
    let workloads: BTreeSet<&str> = cells.iter().map(|cell| cell.get(WORKLOAD)).collect();
    let wanted = ["tpcc", "write-only", "ycsb-a", "ycsb-b", "ycsb-d", "ycsb-e", "ycsb-f"];
    assert_eq!(workloads.into_iter().collect::<Vec<_>>(), wanted, "those that write");
    for cell in &cells {
        let point = Point::of(&cell.setting).unwrap();
        assert!(flash::capacity_bytes(&plan, &point) > plan::data(plan.scale, &point) / 2 * 3, "{point:?}");
    }
}

#[test]
fn the_emulated_ssd_counts_what_is_written_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = testing::plan(Scale::Smoke, "datacenter-nvme", &[SubjectKind::Highwater]);
    let point = Point { workload: PeerWorkload::YcsbA, data: IN_MEMORY, commits: RELAXED, clients: "4" };
    let mounted = flash::Flash::mount(&plan, &point, folder.path());
    if mounted.is_err() && std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none() {
        return;
    }
    let mut flash = mounted.unwrap().expect("a device");
    let path = flash.folder().join("file");
    flash.start();
    let file = std::fs::File::create(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; 32 << 20], 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let values = flash.values(2.0).map(|(_, value)| value);
    let mib = f64::from(1 << 20);
    // The file, and what ext4 notes of it.
    assert!(values[..2].iter().all(|bytes| (16.0..18.0).contains(&(bytes / mib))), "{values:?}");
    assert!((0.98..1.1).contains(&values[2]) && (0.05..0.1).contains(&values[3]), "{values:?}");
    flash.close().unwrap();
    assert!(!path.exists());
}
