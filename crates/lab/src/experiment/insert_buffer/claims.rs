//! The paper's claims, and additional claims of Highwater.

use super::paper;
use super::plan::{BUFFERING, DISK, HDD, MEDIA, MEDIUM, MEMORY, OFF, SSD};
use crate::experiment::judge::{self, Judgment, Rows, more_pct, number};
use crate::experiment::metric::{self, Axis, Metric};
use crate::experiment::{Claim, Row, SubjectKind, Verdict};

/// A smaller gain in the mean does not count.
const TOLERANCE: f64 = 0.02;
/// A single pair of runs decides from this gain on.
const SINGLE_PAIR: f64 = 0.05;
/// Highwater's aims: memory against off.
const AIM_SSD: f64 = 1.5;
const AIM_HDD: f64 = 2.0;
/// Most of the bytes that `disk` writes of its buffer that `memory` may carry forward.
const MAX_CARRIED: f64 = 0.1;
const PAGE_BYTES: f64 = 16384.0;

pub(super) type Key<'k> = [(Axis, &'k str); 2];

pub(super) fn key<'k>(medium: &'k str, buffering: &'k str) -> Key<'k> {
    [(MEDIUM, medium), (BUFFERING, buffering)]
}

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    let media: Vec<&str> =
        MEDIA.into_iter().filter(|medium| rows.iter().any(|row| row.get(MEDIUM) == *medium)).collect();
    let own = SubjectKind::Highwater.name();
    let own: Vec<Row> = rows.iter().filter(|row| row.subject == own).cloned().collect();
    let mut claims = Vec::new();
    for medium in &media {
        claims.extend(of_medium(rows, medium));
    }
    if media.len() == 2 {
        let text = "Buffering on disk gains more on the hard disk than on the SSD";
        claims.extend(judge::claims(rows, &[(text, &gains_more_on_the_hard_disk)]));
    }
    for medium in &media {
        claims.extend(of_highwater(&own, medium));
    }
    claims
}

fn of_medium(rows: &[Row], medium: &str) -> Vec<Claim> {
    let text = |text: &str| format!("{medium}: {text}");
    judge::claims(
        rows,
        &[
            (&text("buffering on disk is faster than none"), &|rows| faster(rows, medium, OFF, DISK)),
            (&text("a buffer in memory is faster than one on disk"), &|rows| faster(rows, medium, DISK, MEMORY)),
            (&text("buffer pages are read and written with disk, none at all with off and memory"), &|rows| {
                buffer_pages(rows, medium)
            }),
            (&text("fewer index pages are written a transaction with buffering than without"), &|rows| {
                fewer_index_writes(rows, medium)
            }),
        ],
    )
}

fn of_highwater(own: &[Row], medium: &str) -> Vec<Claim> {
    let aim = if medium == HDD { AIM_HDD } else { AIM_SSD };
    judge::claims(
        own,
        &[
            (&format!("{medium}: memory is at least {aim} times as fast as off"), &|rows| aims_at(rows, medium, aim)),
            (
                &format!(
                    "{medium}: memory carries forward less than a tenth of the bytes that disk writes of its buffer"
                ),
                &|rows| carries_little(rows, medium),
            ),
        ],
    )
}

/// Ratios of speed, run by run: those of the same repetition follow each other.
fn ratios(rows: &Rows<'_>, medium: &str, than: &str, is: &str) -> Vec<f64> {
    let runs = |buffering| rows.find(&key(medium, buffering)).map_or_else(Vec::new, |row| row.runs(metric::TPS));
    runs(is).iter().zip(runs(than)).map(|(is, than)| is / than).collect()
}

fn mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// Whether all runs are above `least`, or all are not. A single run that is near `least` decides nothing.
pub(super) fn all_above(ratios: &[f64], least: f64) -> Verdict {
    if ratios.is_empty() || ratios.iter().any(|ratio| ratio.is_nan()) {
        return Verdict::Lost;
    }
    let near = if ratios.len() == 1 { SINGLE_PAIR } else { TOLERANCE };
    let distance = mean(ratios) / least - 1.0;
    if distance.abs() < near {
        return Verdict::Undecided;
    }
    match (ratios.iter().all(|ratio| *ratio > least), ratios.iter().all(|ratio| *ratio < least)) {
        (true, _) => Verdict::Holds,
        (_, true) => Verdict::Lost,
        _ => Verdict::Undecided,
    }
}

fn speed(rows: &Rows<'_>, medium: &str, buffering: &str) -> f64 {
    rows.value(&key(medium, buffering), metric::TPS)
}

fn faster(rows: &Rows<'_>, medium: &str, than: &str, is: &str) -> Judgment {
    let ratios = ratios(rows, medium, than, is);
    let papers = [is, than].map(|buffering| paper::figure(medium, buffering, metric::TPS));
    let papers = match papers {
        [Some(is), Some(than)] => format!("{:+.0} %", more_pct(than, is)),
        _ => "not measured".into(),
    };
    let (tps_is, tps_than) = (speed(rows, medium, is), speed(rows, medium, than));
    let gain = (mean(&ratios) - 1.0) * 100.0;
    let detail = format!("{} and {} /s: {gain:+.0} % (paper: {papers})", number(tps_is), number(tps_than));
    (all_above(&ratios, 1.0), detail)
}

fn gains_more_on_the_hard_disk(rows: &Rows<'_>) -> Judgment {
    let [ssd, hdd] = [SSD, HDD].map(|medium| ratios(rows, medium, OFF, DISK));
    let percent = |ratios: &[f64]| (mean(ratios) - 1.0) * 100.0;
    let memory = [SSD, HDD].map(|medium| percent(&self::ratios(rows, medium, OFF, MEMORY)));
    let detail = format!(
        "{:+.0} % and {:+.0} % (paper: +36 % and +19 %); in memory {:+.0} % and {:+.0} %",
        percent(&hdd),
        percent(&ssd),
        memory[1],
        memory[0]
    );
    let pairs: Vec<f64> = hdd.iter().zip(&ssd).map(|(hdd, ssd)| hdd / ssd).collect();
    (all_above(&pairs, 1.0), detail)
}

/// Pages of the buffer, read and written, where a value of the rows is `of` a metric.
fn buffer_io(of: impl Fn(Metric) -> f64) -> f64 {
    of(metric::CHANGE_BUFFER_PAGES_READ) + of(metric::CHANGE_BUFFER_PAGES_WRITTEN)
}

fn buffer_pages(rows: &Rows<'_>, medium: &str) -> Judgment {
    let [off, memory] = [OFF, MEMORY].map(|buffering| buffer_io(|metric| rows.max(&key(medium, buffering), metric)));
    let disk = buffer_io(|metric| rows.value(&key(medium, DISK), metric));
    let detail = format!("off {}, disk {}, memory {}", number(off), number(disk), number(memory));
    match (off == 0.0 && memory == 0.0, disk) {
        (true, disk) if disk > 0.0 => (Verdict::Holds, detail),
        (true, 0.0) => (Verdict::Undecided, format!("{detail}: the buffer stayed in the pool, the run was too short")),
        _ => (Verdict::Lost, detail),
    }
}

/// A count for each transaction.
pub(super) fn per_transaction(rows: &Rows<'_>, medium: &str, buffering: &str, metric: Metric) -> f64 {
    let of = |metric| rows.value(&key(medium, buffering), metric);
    of(metric) / of(metric::TRANSACTIONS)
}

fn fewer_index_writes(rows: &Rows<'_>, medium: &str) -> Judgment {
    let writes = [OFF, DISK, MEMORY].map(|b| per_transaction(rows, medium, b, metric::INDEX_PAGES_WRITTEN));
    let papers = [OFF, DISK, MEMORY].map(|buffering| {
        let writes = paper::figure(medium, buffering, metric::INDEX_PAGES_WRITTEN);
        let each = writes.zip(paper::transactions(medium, buffering)).map(|(writes, all)| writes / all);
        each.map_or("–".into(), number)
    });
    let [off, disk, memory] = writes;
    let detail =
        format!("off {}, disk {}, memory {} (paper: {})", number(off), number(disk), number(memory), papers.join(", "));
    ((disk < off && memory < off).into(), detail)
}

fn aims_at(rows: &Rows<'_>, medium: &str, aim: f64) -> Judgment {
    let ratios = ratios(rows, medium, OFF, MEMORY);
    let detail = format!("{} times", number(mean(&ratios)));
    (all_above(&ratios, aim), detail)
}

fn carries_little(rows: &Rows<'_>, medium: &str) -> Judgment {
    let carried = per_transaction(rows, medium, MEMORY, metric::CHANGE_BUFFER_CARRIED_BYTES);
    let written = per_transaction(rows, medium, DISK, metric::CHANGE_BUFFER_PAGES_WRITTEN) * PAGE_BYTES;
    let detail = format!("{} and {} bytes a transaction", number(carried), number(written));
    ((carried < written * MAX_CARRIED).into(), detail)
}
