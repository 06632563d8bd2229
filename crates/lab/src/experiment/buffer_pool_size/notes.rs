//! Notes: the parts of the paper's setup that are kept, the differences, and the reason why two claims are judged with
//! one client.

use super::claims::{by_pool, held_back};
use super::plan::{LOG_DEVICE, ONE_SHARES, WAREHOUSE_BYTES, log_of, seconds, threads, warehouses};
use crate::experiment::judge::{Rows, list};
use crate::experiment::outcome::title_of;
use crate::experiment::{DeviceChoice, Plan, Row, metric};

/// Processors that are busier than this count as the limit.
const BUSY_PCT: f64 = 90.0;

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let scale = plan.scale;
    let (warmup_s, seconds) = seconds(scale);
    vec![
        format!(
            "{} warehouses instead of 100 ({} MB instead of 10 GB); pools of 15, 30, 45, 60 and 75 % of that; log {} \
             MiB (the paper's, MySQL 5.7's default of 96 MiB, in the same ratio to the data, but at least 4 MiB).",
            warehouses(scale),
            warehouses(scale) * WAREHOUSE_BYTES / 1_000_000,
            log_of(scale) >> 20
        ),
        format!(
            "Many clients are {} client threads; the paper had 64 on a server of 24 threads. Pools of {} are measured \
             with one client too: then no other commit shares a log write. Two claims are judged by that; group commit \
             and a small machine hide them from many clients, whose figures are shown too.",
            threads(scale),
            ONE_SHARES.join(", ")
        ),
        format!(
            "{warmup_s} s of warm-up, then {seconds} s measured, each on a fresh copy of the same loaded data; the \
             mix is tpcc-mysql's, 10:10:1:1:1."
        ),
        "Every commit is synced, so a log write is a group of commits. The paper's 6 to 43 a second cannot count the \
         same, so only the direction is compared."
            .into(),
        "Rates that differ by less than 10 % are too small to tell. Where other programs took more than a tenth of the \
         processors (cpu_others_pct), they must differ by more than those can have slowed a run down."
            .into(),
        "lru_scan_depth is the paper's 1,024 for each of eight pool instances, divided as the data, at least 100; \
         flush_neighbors is 0, so that every page belongs to one list."
            .into(),
        match &plan.device {
            DeviceChoice::Local => "Data and log are in folders of their own on the same disk of this machine; \
                                    requests are counted by the subjects."
                .into(),
            DeviceChoice::Preset(name) => {
                format!("Data are on the emulated {name}, the log on an emulated {LOG_DEVICE}, as in the paper.")
            }
        },
    ]
}

pub(super) fn explanations(rows: &[Row]) -> Vec<String> {
    Rows::of_each(rows).filter_map(|of| explanation(&of)).collect()
}

/// The reason why writes of many clients do not rise with the pool, if the processors were at their limit with the
/// largest pool.
fn explanation(rows: &Rows<'_>) -> Option<String> {
    let busy = by_pool(rows, metric::CPU_PCT);
    let [.., with_largest] = busy;
    let (data, log) = held_back(rows);
    if with_largest.is_nan() || with_largest < BUSY_PCT || !(data || log) {
        return None;
    }
    let name = title_of(rows.subject);
    let mut text =
        format!("{name}, many clients: the processors were busy {} % of the time with the five pools.", list(&busy));
    if data {
        text += " Data writes a second are pages written a transaction times transactions a second. A larger pool \
                 combines more changes into one write, so the first falls; the second rises only until the \
                 processors are the limit.";
    }
    if log {
        text += " A log write is a group of commits: the busier the processors, the more commits share one, so the \
                 log's writes need not rise with its bytes.";
    }
    Some(text)
}
