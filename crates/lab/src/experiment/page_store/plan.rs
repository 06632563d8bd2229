//! The measured points, and the settings and load of each.

use super::values;
use crate::experiment::measurement::{MIN_SERVER_POOL_BYTES, MeasurementSpec, log_bytes};
use crate::experiment::metric::Axis;
use crate::experiment::{Cell, CellResult, Plan, Scale, Setting, SubjectKind, Workspace, setting};
use crate::measure::{SizedDevice, Streams};
use crate::subject::{Load, Settings};
use highwater_bench::run::RunOptions;
use highwater_bench::workload::tpcc;
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;

pub(super) const STORE: Axis = Axis::new("store");
pub(super) const PAGE: Axis = Axis::new("page_size");
pub(super) const FILL: Axis = Axis::new("fill");
pub(super) const SPARE: Axis = Axis::new("spare_pct");
pub(super) const STREAMS: Axis = Axis::new("streams");
pub(super) const CLOCK: Axis = Axis::new("clock");

pub(super) const DOUBLEWRITE: &str = "doublewrite";
pub(super) const JOURNAL: &str = "journal";
pub(super) const ATOMIC: &str = "atomic";
pub(super) const PLAIN: &str = "out-of-place";
pub(super) const LZ4: &str = "out-of-place lz4";
pub(super) const ZSTD: &str = "out-of-place zstd";
pub(super) const STORES: [&str; 6] = [DOUBLEWRITE, JOURNAL, ATOMIC, PLAIN, LZ4, ZSTD];
/// MariaDB's compressed pages in place, holes punched after them, with doublewrite.
pub(super) const PAGE_COMPRESSION: &str = "page compression";
/// The stores of Highwater in MariaDB: its files are a file system's, which promises no atomic write.
const PLUGIN_STORES: [&str; 5] = [DOUBLEWRITE, JOURNAL, PLAIN, LZ4, ZSTD];
/// The stores with which fill, spare flash and streams are varied.
pub(super) const VARIED: [&str; 4] = [DOUBLEWRITE, JOURNAL, ATOMIC, ZSTD];

pub(super) const PAGES: [&str; 3] = ["4 KiB", "8 KiB", "16 KiB"];
pub(super) const FILLS: [&str; 2] = ["0.5", "0.8"];
pub(super) const HALF_FULL: &str = FILLS[0];
pub(super) const SPARES: [&str; 3] = ["7", "15", "28"];
pub(super) const WITH: &str = "with";
pub(super) const WITHOUT: &str = "without";
/// Requests take the device's time, which is only added up.
pub(super) const DEVICE_CLOCK: &str = "device";
pub(super) const MACHINE_CLOCK: &str = "machine";

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point<'p> {
    pub store: &'p str,
    pub page: &'p str,
    pub fill: &'p str,
    pub spare: &'p str,
    pub streams: &'p str,
    pub clock: &'p str,
}

/// The base point, from which the other points differ.
pub(super) const BASE: Point<'static> =
    Point { store: DOUBLEWRITE, page: PAGES[1], fill: FILLS[1], spare: SPARES[1], streams: WITH, clock: DEVICE_CLOCK };

/// The base setting of a server: it has the mounted device's one stream.
const SERVER_BASE: Point<'static> = Point { streams: WITHOUT, clock: MACHINE_CLOCK, ..BASE };

impl<'p> Point<'p> {
    pub(super) fn of(cell: &'p Cell) -> Point<'p> {
        let [store, page, fill, spare, streams, clock] =
            [STORE, PAGE, FILL, SPARE, STREAMS, CLOCK].map(|axis| cell.get(axis));
        Point { store, page, fill, spare, streams, clock }
    }

    pub(super) fn key(&self) -> [(Axis, &'p str); 6] {
        [
            (STORE, self.store),
            (PAGE, self.page),
            (FILL, self.fill),
            (SPARE, self.spare),
            (STREAMS, self.streams),
            (CLOCK, self.clock),
        ]
    }

    pub(super) fn setting(&self) -> Setting {
        setting(self.key())
    }

    pub(super) fn page_bytes(&self) -> Result<u64> {
        let kib: u64 = number(self.page.trim_end_matches(" KiB"))?;
        Ok(kib << 10)
    }

    pub(super) fn is_out_of_place(&self) -> bool {
        [PLAIN, LZ4, ZSTD].contains(&self.store)
    }

    fn compression(&self) -> &'static str {
        match self.store {
            LZ4 => "lz4",
            ZSTD => "zstd",
            _ => "off",
        }
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N> {
    text.parse().map_err(|_| Error::Usage(format!("{text:?} is not a number")))
}

/// About 100 MB each.
pub(super) fn warehouses(scale: Scale) -> u64 {
    scale.of([4, 4, 6, 20])
}

const WAREHOUSE_BYTES: u64 = 100 << 20;
/// Approximate bytes that a transaction adds to the database, unpurged undo included.
const ADDED_BYTES: u64 = 900;
const DATA_TO_POOL: u64 = 10;
pub(super) const THREADS: usize = 16;
/// Committed transactions that purge may be behind: on the virtual clock transactions are done as fast as the
/// processors allow, and undo that is left grows the database.
const MAX_PURGE_LAG: u64 = 1000;

/// A tenth of the data.
pub(super) fn pool_bytes(scale: Scale) -> u64 {
    (warehouses(scale) * WAREHOUSE_BYTES / DATA_TO_POOL).max(MIN_SERVER_POOL_BYTES)
}

/// As large as the pool.
pub(super) fn log_of(scale: Scale) -> u64 {
    log_bytes(pool_bytes(scale))
}

/// Small against the device: the dozen that are open or reserved are to take a few per cent of it.
pub(super) fn segment_bytes(scale: Scale) -> u64 {
    scale.of([512 << 10, 512 << 10, 512 << 10, 2 << 20])
}

/// Transactions that are measured; before them as many are run. 6,000 to 10,000 of each for a warehouse: with 2,000 the
/// stores' segments were not yet as they stay, and the cleaner copied an eighth more.
pub(super) fn transactions(scale: Scale, subject: SubjectKind) -> u64 {
    match subject.is_server() {
        true => scale.of([200, 2_000, 4_000, 50_000]),
        false => scale.of([500, 24_000, 60_000, 200_000]),
    }
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    plan.cells(&[""], |_, subject| points(plan.scale, subject).iter().map(Point::setting).collect())
}

pub(super) fn points(scale: Scale, subject: SubjectKind) -> Vec<Point<'static>> {
    match subject {
        SubjectKind::Highwater if scale == Scale::Smoke => {
            let timed = Point { clock: MACHINE_CLOCK, ..BASE };
            [DOUBLEWRITE, ATOMIC, ZSTD].into_iter().map(|store| Point { store, ..BASE }).chain([timed]).collect()
        }
        SubjectKind::Mysql => server_points(scale, &[DOUBLEWRITE]),
        SubjectKind::Mariadb => server_points(scale, &[DOUBLEWRITE, PAGE_COMPRESSION]),
        SubjectKind::MariadbHighwater => server_points(scale, &PLUGIN_STORES),
        _ => own_points(scale),
    }
}

/// The base first; those that claims need at every scale; then one thing varied at a time.
fn own_points(scale: Scale) -> Vec<Point<'static>> {
    let at = |base: Point<'static>, stores: &[&'static str]| -> Vec<Point<'static>> {
        stores.iter().map(|&store| Point { store, ..base }).collect()
    };
    let timed: &[&str] = if scale == Scale::Quick { &[DOUBLEWRITE, ZSTD] } else { &STORES };
    let mut points = at(BASE, &STORES);
    points.extend(at(Point { fill: HALF_FULL, ..BASE }, &[PLAIN]));
    points.extend(at(Point { clock: MACHINE_CLOCK, ..BASE }, timed));
    if scale == Scale::Quick {
        return points;
    }
    for page in PAGES.into_iter().filter(|page| *page != BASE.page) {
        points.extend(at(Point { page, ..BASE }, &STORES));
    }
    points.extend(at(Point { fill: HALF_FULL, ..BASE }, &VARIED));
    for spare in SPARES.into_iter().filter(|spare| *spare != BASE.spare) {
        points.extend(at(Point { spare, ..BASE }, &VARIED));
    }
    points.extend(at(Point { streams: WITHOUT, ..BASE }, &VARIED));
    points
}

fn server_points(scale: Scale, stores: &[&'static str]) -> Vec<Point<'static>> {
    let pages = if scale == Scale::Full { vec![BASE.page, PAGES[2]] } else { vec![BASE.page] };
    let at = |page| stores.iter().map(move |&store| Point { store, page, ..SERVER_BASE });
    pages.into_iter().flat_map(at).collect()
}

/// Options by which the database is made, and with which it is loaded.
pub(super) fn load_options(subject: SubjectKind, point: &Point<'_>, scale: Scale) -> BTreeMap<String, String> {
    match point.store {
        // The one algorithm that every build of the server has.
        PAGE_COMPRESSION => [("innodb_compression_default", "ON"), ("innodb_compression_algorithm", "zlib")]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        JOURNAL => own_options(subject, [("doublewrite", JOURNAL.into()), ("journal_size", JOURNAL_BYTES.to_string())]),
        _ if point.is_out_of_place() => own_options(
            subject,
            [
                ("page_store", PLAIN.into()),
                ("page_compression", point.compression().into()),
                ("segment_size", segment_bytes(scale).to_string()),
            ],
        ),
        _ => BTreeMap::new(),
    }
}

/// Fill in percent, below the share of live bytes in any cell: the file grows until the device is full, then the store
/// cleans.
const FILL_PCT: u64 = 25;

/// The smallest there is: the ring is a part of the small device.
const JOURNAL_BYTES: u64 = 8 << 20;

/// The doublewrite file before the journal in it, with the largest pages.
const AREAS_BYTES: u64 = 5 << 20;

/// Options of Highwater by the names that the subject has for them.
fn own_options<const N: usize>(subject: SubjectKind, options: [(&str, String); N]) -> BTreeMap<String, String> {
    options.into_iter().map(|(name, value)| (subject.option_of_highwater(name), value)).collect()
}

pub(super) fn settings(subject: SubjectKind, point: &Point<'_>, scale: Scale) -> Result<Settings> {
    let (pool, page_bytes) = (pool_bytes(scale), point.page_bytes()?);
    let mut extra = load_options(subject, point, scale);
    if !subject.is_server() {
        extra.extend(own_options(subject, [("max_purge_lag", MAX_PURGE_LAG.to_string())]));
    }
    match point.store {
        ATOMIC => extra.extend(own_options(subject, [("doublewrite", ATOMIC.into())])),
        PLAIN | LZ4 | ZSTD => extra.extend(own_options(subject, [("segment_fill_pct", FILL_PCT.to_string())])),
        _ => {}
    }
    Ok(Settings {
        buffer_pool_bytes: pool,
        page_bytes,
        log_bytes: log_of(scale),
        flush_neighbors: "0".into(),
        doublewrite: [DOUBLEWRITE, PAGE_COMPRESSION].contains(&point.store),
        lru_scan_depth: (pool / page_bytes / 4).clamp(100, 1024),
        extra,
        ..Settings::default()
    })
}

/// The device that the loaded data fill as much as the point says.
pub(super) fn sized_device(subject: SubjectKind, point: &Point<'_>, plan: &Plan) -> Result<SizedDevice> {
    let sized_by = settings(subject, &Point { store: DOUBLEWRITE, ..*point }, plan.scale)?;
    let spare: f64 = number(point.spare)?;
    Ok(SizedDevice {
        sized_by,
        added_bytes: 2 * transactions(plan.scale, subject) * ADDED_BYTES,
        fill: number(point.fill)?,
        spare: spare / 100.0,
        // For every store, so that all get the same device.
        copies_bytes: AREAS_BYTES + JOURNAL_BYTES,
        streams: if point.streams == WITH { Streams::Each } else { Streams::One },
        largest_unit_bytes: segment_bytes(plan.scale),
        seed: plan.seed,
    })
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let (subject, point, scale) = (cell.kind()?, Point::of(cell), plan.scale);
    let load = tpcc::Config { warehouses: warehouses(scale), seed: plan.seed_of(cell), ..tpcc::Config::default() };
    let events = transactions(scale, subject);
    let spec = MeasurementSpec {
        settings: settings(subject, &point, scale)?,
        data_bytes: warehouses(scale) * WAREHOUSE_BYTES,
        virtual_time: point.clock == DEVICE_CLOCK,
        load_options: load_options(subject, &point, scale),
        sized_device: Some(sized_device(subject, &point, plan)?),
        warmup_events: events,
        options: RunOptions {
            threads: THREADS,
            seconds: 0.0,
            events,
            report_interval_s: scale.of([0.1, 0.2, 0.5, 5.0]),
            ..RunOptions::default()
        },
        ..MeasurementSpec::of(plan, cell, Load::Tpcc(load))
    };
    values::measured(&spec.run(workspace)?, subject, &point)
}
