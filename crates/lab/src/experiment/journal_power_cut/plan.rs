//! Modes and sizes of atomic writes, and the cuts of a cell.

use super::cycle::{Aftermath, Site};
use crate::experiment::journaled::Mode;
use crate::experiment::metric::{self, Axis, info};
use crate::experiment::{Cell, CellResult, Plan, Scale, Workspace, setting};
use highwater_bench::Result;

pub(super) const MODE: Axis = Axis::new("mode");
pub(super) const ATOMIC: Axis = Axis::new("atomic_bytes");
pub(super) const MODES: [Mode; 3] = [Mode::OrderedDoublewrite, Mode::Ordered, Mode::Data];
/// Size of an InnoDB page: a device with atomic writes of this size tears no page.
pub(super) const WHOLE_PAGE: &str = "16384";
pub(super) const ATOMIC_BYTES: [&str; 3] = ["512", "4096", WHOLE_PAGE];

fn cuts(scale: Scale) -> u64 {
    scale.of([1, 12, 20, 300])
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    let (modes, sizes) = match plan.scale {
        Scale::Smoke => (&MODES[..1], &ATOMIC_BYTES[1..2]),
        Scale::Quick => (&MODES[..], &ATOMIC_BYTES[1..2]),
        Scale::Standard | Scale::Full => (&MODES[..], &ATOMIC_BYTES[..]),
    };
    plan.cells(sizes, |size, _| modes.iter().map(|mode| setting([(MODE, mode.name()), (ATOMIC, size)])).collect())
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    workspace.step("mounting a device")?;
    let mut site = Site::new(plan, cell, workspace)?;
    let all = cuts(plan.scale);
    let mut found = Vec::new();
    for n in 0..all {
        workspace.step(&format!("cut {} of {all}", n + 1))?;
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(cell.repetition) * 10_007 + n);
        let aftermath = site.cut(seed)?;
        if let Some(text) = aftermath.finding() {
            workspace.line(&format!("{}, seed {seed}: {text}", cell.describe()));
        }
        found.push(aftermath);
    }
    site.close()?;
    Ok(measured(&found))
}

pub(super) fn measured(found: &[Aftermath]) -> CellResult {
    let mut measured = CellResult::default();
    let count = |fits: fn(&Aftermath) -> bool| found.iter().filter(|a| fits(a)).count() as f64;
    measured.put(metric::CUTS, found.len() as f64);
    measured.put(metric::DAMAGED_DATABASES, count(|a| a.damage.is_some()));
    measured.put(metric::DATABASES_WITH_TORN_PAGES, count(|a| a.torn_pages > 0));
    measured.put(metric::TORN_PAGES, found.iter().map(|a| a.torn_pages).sum::<u64>() as f64);
    measured.put(metric::DATABASES_WITH_LOST_COMMITS, count(|a| !a.lost.is_empty()));
    if let Some(text) = found.iter().find_map(Aftermath::finding) {
        measured.put_info(info::FIRST_FINDING, text.to_string());
    }
    measured
}

/// Notes on the cuts and on the definition of damage.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "MySQL 5.6.24 with one warehouse of TPC-C, 4 clients, pool 16 MiB, redo log 8 MiB, O_DIRECT, every \
             commit synced, on ext4 with a journal of 16 MiB; {} cuts a setting, each at a write that a seed \
             chooses, within about a second of load.",
            cuts(plan.scale)
        ),
        "The device has a volatile cache, keeps what it has flushed and promises no order; 16 KiB are atomic \
         wherever they begin, smaller units where they are aligned. A longer request may tear between units."
            .into(),
        "A database counts as damaged if its file system cannot be mounted, the server does not start, or CHECK TABLE \
         EXTENDED reports a problem in any table. Torn pages are those whose checksum fails before recovery; \
         doublewrite may repair them. The next cut hits the same database if it is sound; a damaged database is \
         replaced by the freshly loaded one."
            .into(),
    ]
}
