//! The values of a run: bytes of a transaction at each level, and write amplification between each two adjacent levels.
//!
//! | level | bytes |
//! |---|---|
//! | pool | pages that were flushed, times the page size |
//! | store | those as they were written; what protects them (doublewrite, journal) or moves them |
//! | redo | written to the redo log |
//! | device | taken from the host, and written to the flash |
//!
//! Rules
//! 1. A value that a subject does not count is absent. A server counts whole pages, also those that it writes
//!    compressed; so of page compression only the pool's and the device's bytes are known.

use super::plan::{DEVICE_CLOCK, PAGE_COMPRESSION, Point, WITH};
use crate::experiment::measurement::Measurement;
use crate::experiment::metric::{self, Metric, series};
use crate::experiment::{CellResult, SubjectKind};
use highwater_bench::Result;
use highwater_device::adapter::PlacementStreams;
use highwater_device::ssd::counters::{Counters, MAX_STREAMS, StreamCounters};
use highwater_storage::Placement;

/// Bytes written to the places of pages.
const IN_PLACE: [Metric; 5] = [
    metric::UNDO_BYTES_WRITTEN,
    metric::CHANGE_BUFFER_BYTES_WRITTEN,
    metric::INDEX_LEAF_BYTES_WRITTEN,
    metric::INDEX_INNER_BYTES_WRITTEN,
    metric::OTHER_BYTES_WRITTEN,
];

/// The counters of out-of-place stores.
const OUT_OF_PLACE: [Metric; 12] = [
    metric::CLEAN_WAITS,
    metric::CLEAN_WAIT_US,
    metric::COMPRESSED_BYTES_IN,
    metric::COMPRESSED_BYTES_OUT,
    metric::COMPRESS_US,
    metric::SEGMENTS_CLEANED,
    metric::STORE_SEGMENTS_FREE,
    metric::STORE_SEGMENTS,
    metric::STORE_BYTES_CLEANED,
    metric::STORE_BYTES_USER,
    metric::STORE_DISCARDS,
    metric::STORE_LIVE_BYTES,
];

pub(super) fn measured(taken: &Measurement, subject: SubjectKind, point: &Point<'_>) -> Result<CellResult> {
    let mut measured = taken.measured();
    let page_bytes = point.page_bytes()? as f64;
    let counters = if point.is_out_of_place() { &OUT_OF_PLACE[..] } else { &IN_PLACE[..] };
    let more = [metric::DOUBLEWRITE_BYTES_WRITTEN, metric::JOURNAL_BYTES_WRITTEN, metric::REDO_BYTES_WRITTEN];
    for counter in counters.iter().chain(&more) {
        measured.put(*counter, taken.counter(*counter));
    }
    put_levels(&mut measured, point, page_bytes);
    if let Some(device) = &taken.device {
        put_device(&mut measured, device, taken.device_capacity_bytes);
        if point.streams == WITH && !subject.is_server() {
            let pages = stream_amplification(device, &page_streams());
            measured.put(metric::PAGE_STREAMS_WRITE_AMPLIFICATION, pages);
        }
    }
    let transactions = measured.value(metric::TRANSACTIONS);
    measured.put(metric::CPU_US_PER_TRANSACTION, measured.value(metric::SUBJECT_CPU_S) * 1e6 / transactions);
    if point.clock == DEVICE_CLOCK {
        let seconds = taken.result.device.as_ref().map_or(f64::NAN, |device| device.device_s);
        measured.put(metric::ELAPSED_S, seconds);
        measured.put(metric::TPS, transactions / seconds);
        // Latencies are by the machine's clock.
        measured.values.remove(metric::LATENCY_P99_US.name());
    }
    put_over_time(&mut measured, taken, page_bytes);
    Ok(measured)
}

/// Bytes that the pool and the store wrote, and their relation.
pub(super) fn put_levels(measured: &mut CellResult, point: &Point<'_>, page_bytes: f64) {
    let of = |metric| measured.value(metric);
    let flushed = of(metric::PAGES_FLUSHED) * page_bytes;
    let (pages, moved) = match point.is_out_of_place() {
        true => (of(metric::STORE_BYTES_USER), of(metric::STORE_BYTES_CLEANED)),
        false if point.store == PAGE_COMPRESSION => (f64::NAN, f64::NAN),
        false => (IN_PLACE.iter().map(|placement| of(*placement)).filter(|bytes| bytes.is_finite()).sum(), 0.0),
    };
    // What an out-of-place store does not have it does not write.
    let journal = Some(of(metric::JOURNAL_BYTES_WRITTEN)).filter(|bytes| bytes.is_finite());
    let copies = of(metric::DOUBLEWRITE_BYTES_WRITTEN) + journal.unwrap_or(0.0);
    let doublewrite = if pages.is_nan() { f64::NAN } else { copies };
    let ratio = of(metric::COMPRESSED_BYTES_IN) / of(metric::COMPRESSED_BYTES_OUT);
    let (redo, transactions) = (of(metric::REDO_BYTES_WRITTEN), of(metric::TRANSACTIONS));
    for (metric, bytes) in [
        (metric::FLUSHED_BYTES_PER_TRANSACTION, flushed),
        (metric::PAGE_BYTES_PER_TRANSACTION, pages),
        (metric::DOUBLEWRITE_BYTES_PER_TRANSACTION, doublewrite),
        (metric::CLEANED_BYTES_PER_TRANSACTION, moved),
        (metric::REDO_BYTES_PER_TRANSACTION, redo),
    ] {
        measured.put(metric, bytes / transactions);
    }
    measured.put(metric::ENGINE_WRITE_AMPLIFICATION, (pages + doublewrite + moved) / flushed);
    measured.put(metric::COMPRESSION_RATIO, ratio);
}

/// Bytes that the device took and wrote, and how often that is its capacity.
fn put_device(measured: &mut CellResult, device: &Counters, capacity_bytes: Option<u64>) {
    let (host, media) = (device.hbmw() as f64, device.mbmw() as f64);
    let transactions = measured.value(metric::TRANSACTIONS);
    measured.put(metric::DEVICE_HOST_BYTES_PER_TRANSACTION, host / transactions);
    measured.put(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, media / transactions);
    measured.put(metric::WRITE_AMPLIFICATION, device.write_amplification());
    measured.put(metric::CAPACITIES_WRITTEN, host / capacity_bytes.map_or(f64::NAN, |bytes| bytes as f64));
}

/// The streams that pages go to: all but the redo log's.
pub(super) fn page_streams() -> Vec<usize> {
    let redo = usize::from(PlacementStreams::spread(MAX_STREAMS as u8).of(Placement::Redo));
    (0..MAX_STREAMS).filter(|stream| *stream != redo).collect()
}

/// Flash writes over host writes of some streams; NaN if no stream was written.
pub(super) fn stream_amplification(device: &Counters, streams: &[usize]) -> f64 {
    let sum = |of: fn(&StreamCounters) -> u64| streams.iter().map(|n| of(&device.streams[*n])).sum::<u64>() as f64;
    let host = sum(|stream| stream.host_blocks);
    (host + sum(|stream| stream.copied_blocks + stream.padded_blocks)) / host
}

/// By transactions done: flash bytes over host bytes, and over the bytes of flushed pages, in each interval.
fn put_over_time(measured: &mut CellResult, taken: &Measurement, page_bytes: f64) {
    let (mut done, mut before) = (0.0, Counters::default());
    let (mut device, mut whole) = (Vec::new(), Vec::new());
    for (interval, now) in taken.result.intervals.iter().zip(&taken.device_over_time) {
        let step = now.since(&before);
        before = *now;
        done += interval.tps * interval.length_s;
        let flushed = interval.pages.flushed.unwrap_or(0) as f64 * page_bytes;
        if flushed > 0.0 {
            device.push([done, step.write_amplification()]);
            whole.push([done, step.mbmw() as f64 / flushed]);
        }
    }
    measured.put_series(series::WAF_OVER_TIME, device);
    measured.put_series(series::FLASH_TO_FLUSHED_OVER_TIME, whole);
}
