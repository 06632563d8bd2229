//! The measured settings and their sizes.

use crate::experiment::metric::Axis;
use crate::experiment::{Cell, DeviceChoice, Plan, Scale, Setting, SubjectKind, setting};
use highwater_bench::peers::PeerWorkload;
use highwater_bench::{Error, Result};

pub(super) const WORKLOAD: Axis = Axis::new("workload");
pub(super) const DATA: Axis = Axis::new("data");
pub(super) const COMMITS: Axis = Axis::new("commits");
pub(super) const CLIENTS: Axis = Axis::new("clients");

pub(super) const IN_MEMORY: &str = "in memory";
pub(super) const BEYOND: &str = "10 x memory";
pub(super) const DURABLE: &str = "durable";
pub(super) const RELAXED: &str = "relaxed";
/// Of workloads that only read.
pub(super) const NONE: &str = "none";

/// Clients of workloads in which many take part, if the plan does not say.
const SMALL_CLIENTS: [u32; 1] = [4];
const LARGE_CLIENTS: [u32; 3] = [1, 4, 16];
/// Threads of a load.
const LOAD_CLIENTS: &str = "2";

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point<'p> {
    pub workload: PeerWorkload,
    pub data: &'p str,
    pub commits: &'p str,
    pub clients: &'p str,
}

impl<'p> Point<'p> {
    pub(super) fn of(setting: &'p Setting) -> Result<Point<'p>> {
        let of = |axis: Axis| setting.get(axis.name()).map_or("", String::as_str);
        let name = of(WORKLOAD);
        let unknown = || Error::Usage(format!("there is no workload {name:?}; there are: {}", PeerWorkload::names()));
        let workload = PeerWorkload::named(name).ok_or_else(unknown)?;
        Ok(Point { workload, data: of(DATA), commits: of(COMMITS), clients: of(CLIENTS) })
    }

    pub(super) fn setting(&self) -> Setting {
        let texts = [(DATA, self.data), (COMMITS, self.commits), (CLIENTS, self.clients)];
        let mut all = setting(texts);
        all.insert(WORKLOAD.name().into(), self.workload.name().into());
        all
    }

    pub(super) fn is_beyond(&self) -> bool {
        self.data == BEYOND
    }

    pub(super) fn clients(&self) -> usize {
        self.clients.parse().unwrap_or(1)
    }

    /// `tpcc, in memory, durable, 4 clients`.
    pub(super) fn describe(&self) -> String {
        let commits = if self.commits == NONE { String::new() } else { format!(", {}", self.commits) };
        let clients = if self.clients == "1" { "client" } else { "clients" };
        format!("{}, {}{commits}, {} {clients}", self.workload.name(), self.data, self.clients)
    }
}

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Memory that the process of every subject may have where data are larger than memory, page cache included.
fn memory_mib(scale: Scale) -> u64 {
    scale.of([64, 128, 256, 1024])
}

/// Of that memory, what is the subject's own cache, in MiB. One that reads past the operating system gets all but 48
/// (10 were measured in addition to the cache); of a load only three eighths, for two indexes are sorted at a time,
/// each in a quarter of the cache, and the redo log grows in the page cache. One that reads through the operating
/// system has the rest as more cache there.
fn own_cache_mib(scale: Scale, workload: PeerWorkload, subject: SubjectKind) -> u64 {
    let memory = memory_mib(scale);
    match (is_direct(subject), workload) {
        (true, PeerWorkload::BulkLoad) => memory / 8 * 3,
        (true, _) => memory - 48,
        (false, _) => memory / 4,
    }
}

/// Additional memory of a server compared with an engine in a process, in MiB: for the server's other parts, as
/// measured.
fn server_mib(subject: SubjectKind) -> u64 {
    match subject {
        SubjectKind::Mysql => 64,
        SubjectKind::Mariadb | SubjectKind::MariadbHighwater => 112,
        SubjectKind::Myrocks => 64,
        _ => 0,
    }
}

/// Whether it uses direct I/O.
fn is_direct(subject: SubjectKind) -> bool {
    use SubjectKind::{Highwater, Mariadb, MariadbHighwater, Mysql};
    matches!(subject, Highwater | MariadbHighwater | Mysql | Mariadb)
}

/// Most memory of a process, page cache included.
pub(super) fn memory(scale: Scale, point: &Point<'_>, subject: SubjectKind) -> u64 {
    match (point.workload, point.is_beyond()) {
        (PeerWorkload::Redb, _) => REDB_CACHE + 8 * GIB,
        (_, true) => (memory_mib(scale) + server_mib(subject)) * MIB,
        (_, false) => cache_in_memory(scale) + GIB,
    }
}

/// Cache size of a subject.
pub(super) fn cache(scale: Scale, point: &Point<'_>, subject: SubjectKind) -> u64 {
    match (point.workload, point.is_beyond()) {
        (PeerWorkload::Redb, _) => REDB_CACHE,
        (workload, true) => own_cache_mib(scale, workload, subject) * MIB,
        (_, false) => cache_in_memory(scale),
    }
}

/// Bytes of rows.
pub(super) fn data(scale: Scale, point: &Point<'_>) -> u64 {
    match point.workload {
        PeerWorkload::Redb => redb_pairs(scale) * 174,
        _ if point.is_beyond() => memory_mib(scale) * 10 * MIB,
        _ => scale.of([8, 48, 400, 2048]) * MIB,
    }
}

fn cache_in_memory(scale: Scale) -> u64 {
    scale.of([512, 512, 2048, 8192]) * MIB
}

/// As its source has it, at every scale.
const REDB_CACHE: u64 = 4 * GIB;

/// The source's number from the standard scale on.
fn redb_pairs(scale: Scale) -> u64 {
    scale.of([50_000, 250_000, 5_000_000, 5_000_000])
}

/// Seconds of warm-up and of the measurement. On an emulated SSD there is no warm-up, and the measurement is longer:
/// the written bytes should exceed the device's capacity.
pub(super) fn seconds(plan: &Plan) -> (f64, f64) {
    match plan.device {
        DeviceChoice::Local => plan.scale.of([(0.1, 0.3), (0.5, 2.0), (3.0, 10.0), (10.0, 60.0)]),
        DeviceChoice::Preset(_) => plan.scale.of([(0.0, 0.3), (0.0, 60.0), (0.0, 180.0), (0.0, 600.0)]),
    }
}

/// Numbers of clients, of workloads in which many take part.
fn clients(plan: &Plan) -> Vec<String> {
    let own = if plan.scale >= Scale::Standard { &LARGE_CLIENTS[..] } else { &SMALL_CLIENTS };
    let chosen = if plan.clients.is_empty() { own } else { &plan.clients };
    chosen.iter().map(u32::to_string).collect()
}

/// The settings of a workload on data of a class.
fn points<'p>(workload: PeerWorkload, data: &'p str, clients: &'p [String]) -> Vec<Point<'p>> {
    let point = |commits, clients| Point { workload, data, commits, clients };
    match workload {
        PeerWorkload::BulkLoad => return vec![point(RELAXED, LOAD_CLIENTS)],
        PeerWorkload::Redb if data == BEYOND => return Vec::new(),
        PeerWorkload::Redb => return vec![point(DURABLE, "1")],
        _ => {}
    }
    let commits: &[&'static str] = if workload.writes() { &[DURABLE, RELAXED] } else { &[NONE] };
    commits.iter().flat_map(|commits| clients.iter().map(|clients| point(commits, clients))).collect()
}

/// Whether a workload is measured on an emulated SSD: its data are larger than memory, and its transactions write.
/// (During a load a new device does not collect garbage.)
fn has_flash_bytes(workload: PeerWorkload) -> bool {
    workload.writes() && !matches!(workload, PeerWorkload::BulkLoad | PeerWorkload::Redb)
}

/// The cells: data of one kind and class after the other; within a workload repetition after repetition, and in each of
/// its settings the subjects one after another. redb's benchmark is not for servers: a statement for each pair would
/// measure the socket.
pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    let mut workloads: Vec<PeerWorkload> = PeerWorkload::ALL.to_vec();
    workloads.retain(|one| plan.workloads.is_empty() || plan.workloads.iter().any(|name| name == one.name()));
    workloads.sort_by_key(|one| one.data());
    workloads.retain(|one| plan.device == DeviceChoice::Local || has_flash_bytes(*one));
    let classes: &[&'static str] = match plan.device {
        _ if plan.scale == Scale::Smoke => &[IN_MEMORY],
        DeviceChoice::Local => &[IN_MEMORY, BEYOND],
        DeviceChoice::Preset(_) => &[BEYOND],
    };
    let (clients, mut cells) = (clients(plan), Vec::new());
    let has = |workload, subject: &&SubjectKind| workload != PeerWorkload::Redb || !subject.is_server();
    for of_data in workloads.chunk_by(|one, other| one.data() == other.data()) {
        for (class, workload) in classes.iter().flat_map(|class| of_data.iter().map(move |one| (*class, *one))) {
            let mut settings: Vec<Setting> = points(workload, class, &clients).iter().map(Point::setting).collect();
            settings.retain(|one| plan.wants(one));
            for repetition in 0..plan.repetitions {
                let subjects = || plan.subjects.iter().filter(|subject| has(workload, subject));
                let pairs = settings.iter().flat_map(|one| subjects().map(move |subject| (one, *subject)));
                let cell =
                    |(one, subject): (&Setting, _)| Cell::new(subject, plan.device.name(), one.clone(), repetition);
                cells.extend(pairs.map(cell));
            }
        }
    }
    cells
}
