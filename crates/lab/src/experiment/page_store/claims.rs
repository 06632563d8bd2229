//! Highwater's aims, compared with the published figures.

use super::plan::{ATOMIC, BASE, DOUBLEWRITE, HALF_FULL, LZ4, MACHINE_CLOCK, PLAIN, Point, ZSTD};
use crate::experiment::judge::{self, Judgment, Rows, number};
use crate::experiment::metric;
use crate::experiment::{Claim, Row, SubjectKind, Verdict};

/// A ratio of bytes that is nearer than this to what it should be is too close to decide.
const TOLERANCE: f64 = 0.02;
/// The tolerance for a ratio of speeds, on an idle machine.
const SPEED_TOLERANCE: f64 = 0.05;
/// Minimum ratio of written bytes to the device's capacity: with fewer writes a run shows nothing about its flash.
const MIN_CAPACITIES: f64 = 0.5;

/// The aimed reductions of flash bytes, each relative to a store.
pub(super) const FEWER: [(&str, &str, f64); 4] =
    [(ZSTD, DOUBLEWRITE, 4.0), (LZ4, DOUBLEWRITE, 2.8), (PLAIN, DOUBLEWRITE, 1.4), (ZSTD, ATOMIC, 2.5)];
const DEVICE_AMPLIFICATION: f64 = 1.02;
/// By fill.
const ENGINE_AMPLIFICATION: [(&str, f64); 2] = [(HALF_FULL, 1.25), (BASE.fill, 2.2)];
const TIMES_AS_FAST: f64 = 1.5;
/// Published for TPC-C, all techniques together, against doublewrite.
const PUBLISHED_FEWER: f64 = 7.2;
const PUBLISHED_FASTER: f64 = 2.45;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    let own = SubjectKind::Highwater.name();
    let own: Vec<Row> = rows.iter().filter(|row| row.subject == own).cloned().collect();
    let mut claims = Vec::new();
    for (store, than, aim) in FEWER {
        let text = format!("{store} writes at most 1/{aim} of the flash bytes a transaction that {than} does");
        claims.extend(judge::claims(&own, &[(&text, &|rows| fewer(rows, store, than, aim))]));
    }
    let text = format!(
        "With streams the device's write amplification of out-of-place pages is at most {DEVICE_AMPLIFICATION}"
    );
    claims.extend(judge::claims(&own, &[(&text, &device_amplification)]));
    for (fill, limit) in ENGINE_AMPLIFICATION {
        let text = format!("Without compression {PLAIN} writes at most {limit} bytes a flushed byte at fill {fill}");
        claims.extend(judge::claims(&own, &[(&text, &|rows| engine_amplification(rows, fill, limit))]));
    }
    let text = format!("On the machine's clock {ZSTD} is at least {TIMES_AS_FAST} times as fast as {DOUBLEWRITE}");
    claims.extend(judge::claims(&own, &[(&text, &faster)]));
    claims
}

fn at<'r>(rows: &Rows<'r>, point: Point<'_>) -> Option<&'r Row> {
    rows.find(&point.key())
}

/// The judgment, unless one of the runs wrote too little to have come into a steady state.
fn steady(rows: &[&Row], (verdict, detail): Judgment) -> Judgment {
    let least = rows.iter().map(|row| row.value(metric::CAPACITIES_WRITTEN)).fold(f64::INFINITY, f64::min);
    match least < MIN_CAPACITIES {
        true => (Verdict::Undecided, format!("a run wrote {} of the device's capacity only; {detail}", number(least))),
        false => (verdict, detail),
    }
}

fn not_measured() -> Judgment {
    (Verdict::Lost, "not measured".into())
}

fn fewer(rows: &Rows<'_>, store: &str, than: &str, aim: f64) -> Judgment {
    let [Some(row), Some(other)] = [store, than].map(|store| at(rows, Point { store, ..BASE })) else {
        return not_measured();
    };
    let [bytes, others] = [row, other].map(|row| row.value(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION));
    let times = others / bytes;
    let published = match (store, than) {
        (ZSTD, DOUBLEWRITE) => format!(" (published: {PUBLISHED_FEWER})"),
        _ => String::new(),
    };
    let detail = format!("{} and {} bytes: {} times fewer{published}", number(bytes), number(others), number(times));
    steady(&[row, other], (judge::below(aim, times, TOLERANCE), detail))
}

fn device_amplification(rows: &Rows<'_>) -> Judgment {
    let measured = |store| Some((store, at(rows, Point { store, ..BASE })?));
    let found: Vec<(&str, &Row)> = [PLAIN, LZ4, ZSTD].into_iter().filter_map(measured).collect();
    if found.is_empty() {
        return not_measured();
    }
    let of = |row: &Row| row.value(metric::PAGE_STREAMS_WRITE_AMPLIFICATION);
    let holds = found.iter().all(|(_, row)| of(row) <= DEVICE_AMPLIFICATION);
    let one = |(store, row): &(&str, &Row)| {
        format!("{store} {:.3} (with the log's stream {:.3})", of(row), row.value(metric::WRITE_AMPLIFICATION))
    };
    let detail = found.iter().map(one).collect::<Vec<_>>().join(", ");
    let rows: Vec<&Row> = found.iter().map(|(_, row)| *row).collect();
    steady(&rows, (holds.into(), detail))
}

fn engine_amplification(rows: &Rows<'_>, fill: &str, limit: f64) -> Judgment {
    let Some(row) = at(rows, Point { store: PLAIN, fill, ..BASE }) else { return not_measured() };
    let amplification = row.value(metric::ENGINE_WRITE_AMPLIFICATION);
    steady(&[row], ((amplification <= limit).into(), format!("{amplification:.3}")))
}

fn faster(rows: &Rows<'_>) -> Judgment {
    let timed = |store| at(rows, Point { store, clock: MACHINE_CLOCK, ..BASE });
    let [Some(row), Some(other)] = [ZSTD, DOUBLEWRITE].map(timed) else { return not_measured() };
    let speed = |row: &Row| row.value(metric::TPS);
    let times = speed(row) / speed(other);
    let mut detail = format!(
        "{} and {} /s: {} times (published: {PUBLISHED_FASTER})",
        number(speed(row)),
        number(speed(other)),
        number(times)
    );
    if let Some(lz4) = timed(LZ4) {
        detail += &format!("; {LZ4} {} times", number(speed(lz4) / speed(other)));
    }
    let tolerance = judge::rate_tolerance([row, other], SPEED_TOLERANCE);
    (judge::below(TIMES_AS_FAST, times, tolerance), detail)
}
