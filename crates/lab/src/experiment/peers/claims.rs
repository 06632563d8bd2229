//! The claims: Highwater is at least as good as the best peer in every cell.

use super::plan::{IN_MEMORY, Point};
use crate::experiment::judge::{self, Judgment, Rows, Speed, number};
use crate::experiment::metric::{self, Metric, info};
use crate::experiment::outcome::title_of;
use crate::experiment::{Claim, Row, Setting, SubjectKind, Verdict};
use highwater_bench::peers::PeerWorkload;

const OWN: SubjectKind = SubjectKind::Highwater;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    let cell_claim = if rows.iter().any(has_flash) { flash_claim } else { cell_claim };
    let mut claims: Vec<Claim> = cells(rows).into_iter().filter_map(|cell| cell_claim(rows, cell)).collect();
    let subjects = "Every result was verified: rows, indexes, the workload's conditions";
    claims.extend(judge::claims(rows, &[(subjects, &verified), ("Its memory was enough", &kept_to_its_memory)]));
    claims.extend(same_rows(rows));
    claims
}

/// The settings of the rows, each once.
pub(super) fn cells(rows: &[Row]) -> Vec<&Setting> {
    let mut cells: Vec<&Setting> = Vec::new();
    for row in rows {
        if !cells.contains(&&row.setting) {
            cells.push(&row.setting);
        }
    }
    cells
}

/// The metric by which a workload is judged; if it is a time, less is better.
pub(super) fn speed_of(workload: PeerWorkload) -> Metric {
    if workload == PeerWorkload::Redb { metric::STEPS_MS } else { metric::TPS }
}

/// A row's speed: of a time, its inverse.
pub(super) fn speed(row: &Row, workload: PeerWorkload) -> f64 {
    let value = row.value(speed_of(workload));
    if workload == PeerWorkload::Redb { 1.0 / value } else { value }
}

/// The fastest peer of a cell.
pub(super) fn best<'r>(rows: &'r [Row], setting: &Setting, workload: PeerWorkload) -> Option<&'r Row> {
    let peers = rows.iter().filter(|row| row.setting == *setting && row.subject != OWN.name());
    let timed = peers.filter(|row| speed(row, workload).is_finite());
    timed.max_by(|a, b| speed(a, workload).total_cmp(&speed(b, workload)))
}

/// Highwater's row of a cell.
pub(super) fn own<'r>(rows: &'r [Row], setting: &Setting) -> Option<&'r Row> {
    rows.iter().find(|row| row.setting == *setting && row.subject == OWN.name())
}

/// The speed of Highwater relative to the best peer, run by run.
pub(super) fn ratio(own: &Row, best: &Row, workload: PeerWorkload) -> Speed {
    let metric = speed_of(workload);
    let runs = |row: &Row| row.runs(metric).into_iter();
    let pairs: Vec<(f64, f64)> = match workload {
        PeerWorkload::Redb => runs(best).zip(runs(own)).collect(),
        _ => runs(own).zip(runs(best)).collect(),
    };
    Speed::of(&pairs)
}

fn cell_claim(rows: &[Row], setting: &Setting) -> Option<Claim> {
    let point = Point::of(setting).ok()?;
    let (own, best) = (own(rows, setting)?, best(rows, setting, point.workload)?);
    let unit = if point.workload == PeerWorkload::Redb { "ms" } else { "/s" };
    let value = |row: &Row| number(row.value(speed_of(point.workload)));
    let peer = title_of(&best.subject);
    let (verdict, detail) = if speed(own, point.workload).is_finite() {
        let ratio = ratio(own, best, point.workload);
        let detail = format!("{} and {} {unit}: {}", value(own), value(best), ratio.show(peer));
        judge::all_at_least_one(&[ratio], detail)
    } else {
        (Verdict::Lost, format!("no result; {peer} has {} {unit}", value(best)))
    };
    let text = format!("At least as fast as the fastest peer: {}", point.describe());
    Some(Claim { text, subject: OWN.name().into(), verdict, detail })
}

/// Whether its bytes of flash were counted.
pub(super) fn has_flash(row: &Row) -> bool {
    row.value(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION).is_finite()
}

/// On an emulated SSD, which takes no time, Highwater is compared with the peer that wrote least to the flash.
fn flash_claim(rows: &[Row], setting: &Setting) -> Option<Claim> {
    let (point, bytes) = (Point::of(setting).ok()?, metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION);
    let own = own(rows, setting)?;
    let peers = rows.iter().filter(|row| row.setting == *setting && row.subject != OWN.name() && has_flash(row));
    let best = peers.min_by(|a, b| a.value(bytes).total_cmp(&b.value(bytes)))?;
    let (peer, of_best) = (title_of(&best.subject), number(best.value(bytes)));
    let (verdict, detail) = if has_flash(own) {
        let pairs: Vec<(f64, f64)> = own.runs(bytes).into_iter().zip(best.runs(bytes)).collect();
        let detail = format!("{} and {of_best} B: {}", number(own.value(bytes)), Speed::of(&pairs).show(peer));
        let fewer: Vec<(f64, f64)> = pairs.iter().map(|(own, best)| (*best, *own)).collect();
        judge::all_at_least_one(&[Speed::of(&fewer)], detail)
    } else {
        (Verdict::Lost, format!("no result; {peer} has {of_best} B"))
    };
    let text = format!("No more bytes of flash for a transaction than the peer with the fewest: {}", point.describe());
    Some(Claim { text, subject: OWN.name().into(), verdict, detail })
}

fn verified(rows: &Rows<'_>) -> Judgment {
    let broken: Vec<&Row> = rows.all().filter(|row| row.max(metric::CONDITIONS_BROKEN) > 0.0).collect();
    let not_ended = rows.all().filter(|row| !was_ended(row));
    let (verified, not): (Vec<&Row>, Vec<&Row>) =
        not_ended.partition(|row| row.value(metric::CONDITIONS_BROKEN).is_finite());
    match broken.first() {
        None if !not.is_empty() => (Verdict::Lost, format!("{} rows of results are not verified", not.len())),
        None => (Verdict::Holds, format!("{} rows of results", verified.len())),
        Some(first) => {
            let finding = first.info(info::FIRST_FINDING).unwrap_or("in another repetition than the first");
            (Verdict::Lost, format!("{} broken; first: {finding}", broken.len()))
        }
    }
}

/// Whether the kernel ended it at its memory limit, at least once.
fn was_ended(row: &Row) -> bool {
    row.max(metric::ENDED_BY_MEMORY_LIMIT) > 0.0
}

fn kept_to_its_memory(rows: &Rows<'_>) -> Judgment {
    let ended: Vec<String> = rows
        .all()
        .filter(|row| was_ended(row))
        .filter_map(|row| Some(Point::of(&row.setting).ok()?.describe()))
        .collect();
    match ended.is_empty() {
        true => (Verdict::Holds, format!("{} rows of results", rows.all().count())),
        false => (Verdict::Lost, format!("ended by its limit: {}", ended.join("; "))),
    }
}

/// A claim for each subject: what it loaded is what the first one loaded.
fn same_rows(rows: &[Row]) -> Vec<Claim> {
    let text = "The loaded rows are the same as every other engine's";
    let judged = |of: &Rows<'_>| -> Judgment {
        let loaded = |row: &&Row| row.info(info::LOADED_DIGEST).is_some();
        let other = of.all().filter(loaded).find_map(|row| {
            let digest = row.info(info::LOADED_DIGEST);
            let differs = |other: &&Row| other.setting == row.setting && other.info(info::LOADED_DIGEST) != digest;
            rows.iter().filter(loaded).find(differs).map(|other| (row, other))
        });
        match other {
            None => (Verdict::Holds, "by digest".into()),
            Some((row, other)) => {
                let place = Point::of(&row.setting).map_or_else(|_| IN_MEMORY.into(), |point| point.describe());
                (Verdict::Lost, format!("{place}: not those of {}", title_of(&other.subject)))
            }
        }
    };
    judge::claims(rows, &[(text, &judged)])
}
