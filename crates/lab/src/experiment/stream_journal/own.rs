//! Highwater as a subject: the journal is inside the engine, and its stream is chosen by placement.
//!
//! Rules
//! 1. The device is sized for each cell ([`SizedDevice`]): the data fill the same share of it, the journal comes on
//!    top, spare flash is the preset's. It is in process and on the virtual clock, so there is no file system, and
//!    rates are by the device's time.
//! 2. As in the document all writes are in one stream, or the journal has its own stream. Out of place, without a
//!    journal, is also measured with a stream for each placement.
//! 3. A run executes its transactions twice: the first time to bring the device into a steady state.

use super::plan::{JOURNAL, JOURNALS, MODE, OWN_SPARE, SMALL, SPARE};
use crate::experiment::measurement::{MIN_SERVER_POOL_BYTES, Measurement, MeasurementSpec, log_bytes};
use crate::experiment::metric::{self, series};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Scale, Setting, Workspace, setting};
use crate::measure::{SizedDevice, Streams};
use crate::subject::{Load, Settings};
use highwater_bench::run::RunOptions;
use highwater_bench::workload::tpcc;
use highwater_bench::{Error, Result};
use highwater_device::preset::{self, DeviceConfig};
use std::collections::BTreeMap;

pub(super) const DOUBLEWRITE: &str = "doublewrite";
pub(super) const IN_ONE_STREAM: &str = "journal";
pub(super) const OWN_STREAM: &str = "journal, own stream";
pub(super) const ATOMIC: &str = "atomic";
pub(super) const OUT_OF_PLACE: &str = "out-of-place";
pub(super) const OUT_OF_PLACE_STREAMS: &str = "out-of-place, streams";
pub(super) const MODES: [&str; 6] =
    [DOUBLEWRITE, IN_ONE_STREAM, OWN_STREAM, ATOMIC, OUT_OF_PLACE, OUT_OF_PLACE_STREAMS];

const PAGE_BYTES: u64 = 16 << 10;
/// Share of the space for data that the data use.
const FILL: f64 = 0.8;
const THREADS: usize = 16;
const WAREHOUSE_BYTES: u64 = 100 << 20;
/// Approximate bytes that a transaction adds to the database.
const ADDED_BYTES: u64 = 900;
const MAX_PURGE_LAG: u64 = 1000;
/// The areas in front of the journal.
const AREAS_BYTES: u64 = 6 << 20;

pub(super) fn has_journal(mode: &str) -> bool {
    [IN_ONE_STREAM, OWN_STREAM].contains(&mode)
}

/// The measured settings: each mode; modes with a journal with each size of it.
pub(super) fn settings() -> Vec<Setting> {
    let sizes = |mode: &str| if has_journal(mode) { &JOURNALS[..] } else { &JOURNALS[..1] };
    let all = MODES.iter().flat_map(|mode| sizes(mode).iter().map(move |journal| (*mode, *journal)));
    all.map(|(mode, journal)| setting([(MODE, mode), (JOURNAL, journal), (SPARE, OWN_SPARE)])).collect()
}

fn warehouses(scale: Scale) -> u64 {
    scale.of([1, 4, 6, 20])
}

/// A database grows by steps, and an out-of-place store has segments in reserve: much for the smallest device.
fn room_to_grow(scale: Scale) -> u64 {
    scale.of([32 << 20, 0, 0, 0])
}

fn transactions(scale: Scale) -> u64 {
    scale.of([300, 6_000, 20_000, 100_000])
}

/// About 1 : 50 and 1 : 13 of the database at `quick`; the smallest there is, and the default twice.
fn journal_bytes(journal: &str) -> u64 {
    if journal == SMALL { 8 << 20 } else { 32 << 20 }
}

/// A tenth of the data.
fn pool_bytes(scale: Scale) -> u64 {
    (warehouses(scale) * WAREHOUSE_BYTES / 10).max(MIN_SERVER_POOL_BYTES)
}

fn texts<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Options by which the database is made.
fn load_options(mode: &str) -> BTreeMap<String, String> {
    match mode {
        OUT_OF_PLACE | OUT_OF_PLACE_STREAMS => texts([
            ("page_store", "out-of-place".into()),
            ("page_compression", "off".into()),
            ("segment_size", (512 << 10).to_string()),
        ]),
        _ => BTreeMap::new(),
    }
}

fn settings_of(mode: &str, journal: &str, scale: Scale) -> Settings {
    let pool = pool_bytes(scale);
    let mut extra = load_options(mode);
    extra.extend(texts([("max_purge_lag", MAX_PURGE_LAG.to_string())]));
    match mode {
        IN_ONE_STREAM | OWN_STREAM => extra
            .extend(texts([("doublewrite", "journal".into()), ("journal_size", journal_bytes(journal).to_string())])),
        ATOMIC => extra.extend(texts([("doublewrite", "atomic".into())])),
        // Less than the live bytes take: the file grows until the device is full, then the store cleans.
        OUT_OF_PLACE | OUT_OF_PLACE_STREAMS => extra.extend(texts([("segment_fill_pct", "25".into())])),
        _ => {}
    }
    Settings {
        buffer_pool_bytes: pool,
        page_bytes: PAGE_BYTES,
        log_bytes: log_bytes(pool),
        flush_neighbors: "0".into(),
        doublewrite: mode == DOUBLEWRITE,
        lru_scan_depth: (pool / PAGE_BYTES / 4).clamp(100, 1024),
        extra,
        ..Settings::default()
    }
}

fn sized_device(mode: &str, journal: &str, plan: &Plan) -> Result<SizedDevice> {
    let streams = match mode {
        OWN_STREAM => Streams::Journal,
        OUT_OF_PLACE_STREAMS => Streams::Each,
        _ => Streams::One,
    };
    Ok(SizedDevice {
        sized_by: settings_of(DOUBLEWRITE, SMALL, plan.scale),
        added_bytes: 2 * transactions(plan.scale) * ADDED_BYTES + room_to_grow(plan.scale),
        copies_bytes: if has_journal(mode) { AREAS_BYTES + journal_bytes(journal) } else { 0 },
        fill: FILL,
        spare: own_spare(&plan.device)?,
        streams,
        largest_unit_bytes: 512 << 10,
        seed: plan.seed,
    })
}

/// The share of spare flash of the preset.
fn own_spare(device: &DeviceChoice) -> Result<f64> {
    let refused = || Error::Usage("the journal's stream needs an emulated SSD".into());
    let DeviceChoice::Preset(name) = device else { return Err(refused()) };
    let DeviceConfig::Ssd(ssd) = preset::find(name)?.config() else { return Err(refused()) };
    Ok(ssd.overprovisioning())
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let (mode, journal, scale) = (cell.get(MODE), cell.get(JOURNAL), plan.scale);
    let (mix, seed) = (tpcc::Mix::TpccMysql, plan.seed_of(cell));
    let load = tpcc::Config { warehouses: warehouses(scale), mix, seed, ..tpcc::Config::default() };
    let spec = MeasurementSpec {
        settings: settings_of(mode, journal, scale),
        data_bytes: warehouses(scale) * WAREHOUSE_BYTES,
        virtual_time: true,
        load_options: load_options(mode),
        sized_device: Some(sized_device(mode, journal, plan)?),
        warmup_events: transactions(scale),
        options: RunOptions {
            threads: THREADS,
            seconds: 0.0,
            events: transactions(scale),
            report_interval_s: scale.of([0.1, 0.2, 0.5, 5.0]),
            ..RunOptions::default()
        },
        ..MeasurementSpec::of(plan, cell, Load::Tpcc(load))
    };
    measured(&spec.run(workspace)?, mode)
}

fn measured(taken: &Measurement, mode: &str) -> Result<CellResult> {
    let device = taken.device.as_ref().ok_or_else(|| Error::Usage("no emulated device was measured".into()))?;
    let mut measured = taken.measured();
    let (host, media) = (device.hbmw() as f64, device.mbmw() as f64);
    let (transactions, seconds) = (measured.value(metric::TRANSACTIONS), device_s(taken));
    let (journal, doublewrite) =
        (taken.counter(metric::JOURNAL_BYTES_WRITTEN), taken.counter(metric::DOUBLEWRITE_BYTES_WRITTEN));
    for (metric, value) in [
        (metric::WRITE_AMPLIFICATION, device.write_amplification()),
        (metric::HOST_WRITTEN_BYTES, host),
        (metric::MEDIA_WRITTEN_BYTES, media),
        (metric::COPIED_BYTES, media - host),
        (metric::DEVICE_HOST_BYTES_PER_TRANSACTION, host / transactions),
        (metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, media / transactions),
        (metric::JOURNAL_SHARE, (journal + doublewrite) / host),
        (metric::DATA_SYNCS, taken.counter(metric::DATA_SYNCS)),
        (metric::JOURNAL_SYNCS, taken.counter(metric::JOURNAL_SYNCS)),
        (metric::DOUBLEWRITE_SYNCS, taken.counter(metric::DOUBLEWRITE_SYNCS)),
        (metric::ELAPSED_S, seconds),
        (metric::TPS, transactions / seconds),
        (metric::CAPACITIES_WRITTEN, host / taken.device_capacity_bytes.map_or(f64::NAN, |bytes| bytes as f64)),
    ] {
        measured.put(metric, value);
    }
    // Latencies are by the machine's clock.
    measured.values.remove(metric::LATENCY_P99_US.name());
    let streams = device.streams.iter().enumerate().filter(|(_, stream)| stream.host_blocks > 0);
    for (number, stream) in streams.filter(|_| mode == OWN_STREAM) {
        let written = stream.host_blocks + stream.copied_blocks + stream.padded_blocks;
        let name = metric::stream_write_amplification(&number.to_string());
        measured.put_named(&name, written as f64 / stream.host_blocks as f64);
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let points = taken.device_over_time.iter().filter(|now| now.hbmw() > 0);
    measured
        .put_series(series::WAF_OVER_TIME, points.map(|now| [gib(now.hbmw()), now.write_amplification()]).collect());
    Ok(measured)
}

fn device_s(taken: &Measurement) -> f64 {
    taken.result.device.as_ref().map_or(f64::NAN, |device| device.device_s)
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let scale = plan.scale;
    let mib = |bytes: u64| bytes >> 20;
    vec![
        format!(
            "Highwater: {} warehouses (about {} MiB), tpcc-mysql's mix, {THREADS} clients, pages of 16 KiB, pool and \
             redo log {} MiB each, journals of {} and {} MiB. Each cell has a device of its own, in process and \
             without a file system: the data fill {:.0} % of the room for them, the journal comes on top, spare \
             flash is the preset's.",
            warehouses(scale),
            mib(warehouses(scale) * WAREHOUSE_BYTES),
            mib(pool_bytes(scale)),
            mib(journal_bytes(SMALL)),
            mib(journal_bytes("large")),
            FILL * 100.0
        ),
        format!(
            "Highwater: the device was filled and overwritten once at random, and discarded; {} transactions were \
             run, then as many measured. Requests took no time, the device added its time up: rates are by that \
             time.",
            transactions(scale)
        ),
        "Highwater's journal has the images of pages only: redo goes to the redo log, which is in the data's stream \
         as all else does, but with \"out-of-place, streams\". The engine writes a page to its place as soon as its \
         image is durable. So a larger journal saves syncs and no writes, other than a file system's journal, in which \
         a page may change again before it is written to its place. Doublewrite and journal tell the device what they \
         do not need any more."
            .into(),
    ]
}
