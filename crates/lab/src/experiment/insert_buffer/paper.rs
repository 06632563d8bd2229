//! The paper's figures: an hour each, absolute.

use super::plan::{BUFFERING, DISK, HDD, MEDIUM, MEMORY, OFF, SSD};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{Cell, figures_of};
use std::collections::BTreeMap;

pub(super) const SECONDS: f64 = 3600.0;

/// A column of the paper's table.
pub(super) struct Column {
    medium: &'static str,
    buffering: &'static str,
    figures: [(Metric, f64); 6],
}

const fn column(medium: &'static str, buffering: &'static str, figures: [f64; 6]) -> Column {
    let [tps, requests, index_reads, index_writes, buffer_reads, buffer_writes] = figures;
    Column {
        medium,
        buffering,
        figures: [
            (metric::TPS, tps),
            (metric::REQUESTS_PER_S, requests),
            (metric::INDEX_PAGES_READ, index_reads),
            (metric::INDEX_PAGES_WRITTEN, index_writes),
            (metric::CHANGE_BUFFER_PAGES_READ, buffer_reads),
            (metric::CHANGE_BUFFER_PAGES_WRITTEN, buffer_writes),
        ],
    }
}

pub(super) const COLUMNS: [Column; 5] = [
    column(SSD, OFF, [792.81, 14_270.55, 45_496_691.0, 19_396_386.0, 0.0, 0.0]),
    column(SSD, DISK, [946.17, 17_031.05, 52_860_783.0, 15_481_472.0, 3_160_746.0, 3_408_553.0]),
    column(SSD, MEMORY, [1071.19, 19_281.51, 52_295_720.0, 14_160_546.0, 0.0, 0.0]),
    column(HDD, OFF, [13.71, 246.77, 700_321.0, 249_256.0, 0.0, 0.0]),
    column(HDD, DISK, [18.68, 336.26, 776_643.0, 194_294.0, 780.0, 1_219.0]),
];

/// The paper's figure for a medium and setting.
pub(super) fn figure(medium: &str, buffering: &str, metric: Metric) -> Option<f64> {
    let column = COLUMNS.iter().find(|column| column.medium == medium && column.buffering == buffering)?;
    column.figures.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
}

/// Transactions of the hour.
pub(super) fn transactions(medium: &str, buffering: &str) -> Option<f64> {
    figure(medium, buffering, metric::TPS).map(|tps| tps * SECONDS)
}

pub(super) fn paper(cell: &Cell) -> BTreeMap<String, f64> {
    let (medium, buffering) = (cell.get(MEDIUM), cell.get(BUFFERING));
    let column = COLUMNS.iter().find(|column| column.medium == medium && column.buffering == buffering);
    column.map(|column| figures_of(&column.figures)).unwrap_or_default()
}
