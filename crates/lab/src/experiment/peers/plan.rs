//! Which settings are measured, and how large they are.

use crate::experiment::metric::Axis;
use crate::experiment::{Cell, Plan, Scale, Setting, SubjectKind, setting};
use highwater_bench::compared::Compared;
use highwater_bench::{Error, Result};

pub(super) const WORKLOAD: Axis = Axis::new("workload");
pub(super) const DATA: Axis = Axis::new("data");
pub(super) const COMMITS: Axis = Axis::new("commits");
pub(super) const CLIENTS: Axis = Axis::new("clients");

pub(super) const IN_MEMORY: &str = "in memory";
pub(super) const BEYOND: &str = "10 x cache";
pub(super) const DURABLE: &str = "durable";
pub(super) const RELAXED: &str = "relaxed";
/// Of workloads that only read.
pub(super) const NONE: &str = "none";

/// Clients of workloads in which many take part, if the plan does not say.
const FEW_CLIENTS: [u32; 1] = [4];
const MANY_CLIENTS: [u32; 3] = [1, 4, 16];
/// Threads of a load.
const LOAD_CLIENTS: &str = "2";

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point<'p> {
    pub workload: Compared,
    pub data: &'p str,
    pub commits: &'p str,
    pub clients: &'p str,
}

impl<'p> Point<'p> {
    pub(super) fn of(setting: &'p Setting) -> Result<Point<'p>> {
        let of = |axis: Axis| setting.get(axis.name()).map_or("", String::as_str);
        let name = of(WORKLOAD);
        let unknown = || Error::Usage(format!("there is no workload {name:?}; there are: {}", Compared::names()));
        let workload = Compared::named(name).ok_or_else(unknown)?;
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

/// Sizes of a class of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Bytes of rows.
    pub data: u64,
    /// What an engine may cache.
    pub cache: u64,
}

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// What the process of a subject may have beside its cache where data are larger than memory, in MiB. One that
/// reads through the operating system uses what it does not need of it as more cache: so it is what the engine needs,
/// as measured (docs/peers/README.md), and at least 16 for pages of files that are being written.
fn beside_cache_mib(subject: SubjectKind) -> u64 {
    match subject {
        // It reads past the operating system, so what it does not need is nobody's.
        SubjectKind::Highwater => 48,
        SubjectKind::Rocksdb => 80,
        SubjectKind::Wiredtiger | SubjectKind::Redb => 128,
        SubjectKind::Fjall => 256,
        SubjectKind::Mysql => 112,
        SubjectKind::Mariadb | SubjectKind::Myrocks => 160,
        _ => 32,
    }
}

/// Most memory of a process, page cache included.
pub(super) fn memory(scale: Scale, point: &Point<'_>, subject: SubjectKind) -> u64 {
    let beside = match (point.workload, point.is_beyond()) {
        (Compared::Redb, _) => 8 * GIB,
        (_, true) => beside_cache_mib(subject) * MIB,
        (_, false) => GIB,
    };
    sizes(scale, point).cache + beside
}

pub(super) fn sizes(scale: Scale, point: &Point<'_>) -> Sizes {
    let cache = match point.is_beyond() {
        true => scale.of([16, 32, 64, 256]) * MIB,
        false => scale.of([512, 512, 2048, 8192]) * MIB,
    };
    let data = match point.workload {
        Compared::Redb => return redb_sizes(scale),
        _ if point.is_beyond() => cache * 10,
        _ => scale.of([8, 48, 400, 2048]) * MIB,
    };
    Sizes { data, cache }
}

/// The source's sizes from the standard scale on; its cache is 4 GiB at every scale.
fn redb_sizes(scale: Scale) -> Sizes {
    let pairs: u64 = scale.of([50_000, 250_000, 5_000_000, 5_000_000]);
    Sizes { data: pairs * 174, cache: 4 * GIB }
}

/// Seconds of warm-up and of measuring.
pub(super) fn seconds(scale: Scale) -> (f64, f64) {
    scale.of([(0.1, 0.3), (0.5, 2.0), (3.0, 10.0), (10.0, 60.0)])
}

/// Numbers of clients, of workloads in which many take part.
fn clients(plan: &Plan) -> Vec<String> {
    let own = if plan.scale >= Scale::Standard { &MANY_CLIENTS[..] } else { &FEW_CLIENTS };
    let chosen = if plan.clients.is_empty() { own } else { &plan.clients };
    chosen.iter().map(u32::to_string).collect()
}

/// The settings of a workload on data of a class.
fn points<'p>(workload: Compared, data: &'p str, clients: &'p [String]) -> Vec<Point<'p>> {
    let point = |commits, clients| Point { workload, data, commits, clients };
    match workload {
        Compared::BulkLoad => return vec![point(RELAXED, LOAD_CLIENTS)],
        Compared::Redb if data == BEYOND => return Vec::new(),
        Compared::Redb => return vec![point(DURABLE, "1")],
        _ => {}
    }
    let commits: &[&'static str] = if workload.writes() { &[DURABLE, RELAXED] } else { &[NONE] };
    commits.iter().flat_map(|commits| clients.iter().map(|clients| point(commits, clients))).collect()
}

/// The cells: data of one kind and class after the other; within a workload repetition after repetition, and in each of
/// its settings the subjects one after the other. redb's benchmark is not for servers: a statement for each pair would
/// measure the socket.
pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    let mut workloads: Vec<Compared> = Compared::ALL.to_vec();
    workloads.retain(|one| plan.workloads.is_empty() || plan.workloads.iter().any(|name| name == one.name()));
    workloads.sort_by_key(|one| one.data());
    let classes: &[&'static str] = if plan.scale == Scale::Smoke { &[IN_MEMORY] } else { &[IN_MEMORY, BEYOND] };
    let (clients, mut cells) = (clients(plan), Vec::new());
    let has = |workload, subject: &&SubjectKind| workload != Compared::Redb || !subject.is_server();
    for of_data in workloads.chunk_by(|one, other| one.data() == other.data()) {
        for (class, workload) in classes.iter().flat_map(|class| of_data.iter().map(move |one| (*class, *one))) {
            let settings: Vec<Setting> = points(workload, class, &clients).iter().map(Point::setting).collect();
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
