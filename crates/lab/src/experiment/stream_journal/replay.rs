//! Recorded runs replayed: write amplification without a server.
//!
//! Rules
//! 1. The traces lie in the folder that `--traces` names, or HIGHWATER_TRACES, or in `~/.cache/highwater/traces`.
//! 2. The device has the recorder's 2 GiB, is filled once and overwritten once at random, and runs the trace twice;
//!    figures are the second pass's.

use super::plan::{JOURNAL, MODE, OWN_SPARE, SMALL, SPARE, places};
use crate::experiment::journaled::Mode;
use crate::experiment::metric::{self, series};
use crate::experiment::{Cell, DeviceChoice, Measured, Plan, Scale, Workspace};
use highwater_bench::{Error, Result};
use highwater_device::age::Age;
use highwater_device::replay::result::{GroupResult, ReplayResult};
use highwater_device::replay::{self, ReplayOptions};
use std::path::{Path, PathBuf};

const CAPACITY_BYTES: u64 = 2 << 30;

/// The folder of the traces.
fn folder(set: Option<PathBuf>, cache: Option<PathBuf>) -> PathBuf {
    set.unwrap_or_else(|| cache.unwrap_or_else(|| ".".into()).join("highwater/traces"))
}

fn folder_of(plan: &Plan) -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    folder(plan.traces.clone().or_else(|| variable("HIGHWATER_TRACES")), cache)
}

/// Name of the trace of a cell.
fn name_of(cell: &Cell) -> Result<&'static str> {
    Ok(match (Mode::of(cell.get(MODE))?.journals_data(), cell.get(JOURNAL)) {
        (false, _) => "tpcc-ordered-j8-dwb",
        (true, SMALL) => "tpcc-data-j8",
        (true, _) => "tpcc-data-j64",
    })
}

fn trace(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(format!("{name}.csv.zst"));
    if path.is_file() {
        return Ok(path);
    }
    let how = "name their folder with --traces (or in HIGHWATER_TRACES), or record them: highwater device mount \
               MOUNTPOINT --capacity 2G --journal-mode ordered|data --journal-size 8M|64M --record NAME.csv.zst, \
               with a MySQL 5.6 and its TPC-C load on it; --scale standard runs without traces";
    Err(Error::Usage(format!("there is no {}; {how}", path.display())))
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
    let path = trace(&folder_of(plan), name_of(cell)?)?;
    let DeviceChoice::Preset(device) = &plan.device else {
        return Err(Error::Usage("a trace is replayed on an emulated device, not on this disk".into()));
    };
    workspace.step("replaying")?;
    let mut options = ReplayOptions::on_preset(path, device)?;
    options.capacity_bytes = Some(CAPACITY_BYTES);
    options.passes = if plan.scale == Scale::Smoke { 1 } else { 2 };
    options.age = Age { overwrites: 1.0, seed: plan.seed, ..Age::default() };
    options.rules = Mode::of(cell.get(MODE))?.stream_rules()?;
    if cell.get(SPARE) != OWN_SPARE {
        let percent: f64 = cell.get(SPARE).parse().map_err(|_| Error::Usage("spare flash is no number".into()))?;
        options.overprovisioning = Some(percent / 100.0);
    }
    let result = replay::run(&options, &mut |_| {})?;
    Ok(measured(&result))
}

fn measured(result: &ReplayResult) -> Measured {
    let mut measured = Measured::default();
    let totals = &result.totals;
    let written = totals.host_written_bytes as f64;
    let is_journal = |group: &&GroupResult| group.name == "journal";
    let journal = result.groups.iter().find(is_journal);
    let others: Vec<&GroupResult> = result.groups.iter().filter(|group| !is_journal(group)).collect();
    let blocks = |group: &&GroupResult| match group.writes_per_written_block > 0.0 {
        true => group.written_bytes as f64 / group.writes_per_written_block,
        false => 0.0,
    };
    let other_bytes: f64 = others.iter().map(|group| group.written_bytes as f64).sum();
    for (name, value) in [
        (metric::WRITE_AMPLIFICATION, totals.write_amplification),
        (metric::HOST_WRITTEN_BYTES, written),
        (metric::MEDIA_WRITTEN_BYTES, totals.media_written_bytes as f64),
        (metric::COPIED_BYTES, totals.copied_bytes as f64),
        (metric::JOURNAL_SHARE, journal.map_or(0.0, |group| group.written_bytes as f64 / written)),
        (metric::JOURNAL_WRITES_PER_BLOCK, journal.map_or(0.0, |group| group.writes_per_written_block)),
        (metric::OTHER_WRITES_PER_BLOCK, other_bytes / others.iter().map(blocks).sum::<f64>().max(1.0)),
    ] {
        measured.put(name, value);
    }
    for stream in &result.streams {
        measured.put_named(&metric::stream_write_amplification(&stream.stream), stream.write_amplification);
    }
    let point =
        |s: &replay::result::Sample| [s.host_written_bytes as f64 / f64::from(1 << 30), s.write_amplification_so_far];
    measured.put_series(series::WAF_OVER_TIME, result.samples.iter().map(point).collect());
    measured.put_series(series::WRITES_BY_PLACE, places(&result.heat_written_blocks, result.capacity_bytes));
    measured
}

pub(super) fn notes() -> Vec<String> {
    vec![
        "Replayed traces of MySQL 5.6.24 under tpcc-mysql: 10 warehouses (1.1 GiB, growing) on a device of 2 GiB, 16 \
         connections, 420 s, pool 128 MiB, redo log 128 MiB. Journals of 8 and 64 MiB: 1 : 141 and 1 : 18 of the \
         database."
            .into(),
        "The device was filled once and overwritten once at random; the trace ran twice, and figures are the second \
         run's. Requests took no time: new orders per minute need --scale standard."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{SubjectKind, setting};

    #[test]
    fn a_missing_trace_says_how_to_get_one() {
        let empty = tempfile::tempdir().unwrap();
        let error = trace(empty.path(), "tpcc-data-j8").unwrap_err().to_string();
        assert!(
            error.contains("tpcc-data-j8.csv.zst") && error.contains("HIGHWATER_TRACES") && error.contains("--record")
        );
        assert_eq!(folder(Some("/a".into()), Some("/b".into())), Path::new("/a"));
        assert_eq!(folder(None, Some("/b".into())), Path::new("/b/highwater/traces"));
    }

    #[test]
    fn each_cell_has_its_trace() {
        let cell = |mode: &str, journal: &str| {
            let values = setting([(MODE, mode), (JOURNAL, journal)]);
            Cell::new(SubjectKind::Mysql, "simple-2gb", values, 0)
        };
        assert_eq!(name_of(&cell("OJ+DWB", "small")).unwrap(), "tpcc-ordered-j8-dwb");
        assert_eq!(name_of(&cell("MS-DJ", "small")).unwrap(), "tpcc-data-j8");
        assert_eq!(name_of(&cell("DJ", "large")).unwrap(), "tpcc-data-j64");
    }
}
