//! Replays of recorded runs: write amplification without a server.
//!
//! Rules
//! 1. The traces are those in the folder that `--traces` or HIGHWATER_TRACES names. If none is named, they are those in
//!    `~/.cache/highwater/traces` if all are there, else the sampled ones that the program carries.
//! 2. The device has the recorder's 2 GiB (a sixteenth of it for a sample), is filled once and overwritten once at
//!    random, and runs the trace twice; figures are the second pass's.
//! 3. Each row, and the notes, say which traces were used.

use super::plan::{JOURNAL, MODE, OWN_SPARE, SMALL, SPARE, places};
use super::sampled;
use crate::experiment::journaled::Mode;
use crate::experiment::metric::{self, info, series};
use crate::experiment::{Cell, CellResult, DeviceChoice, Plan, Scale, Workspace};
use highwater_bench::{Error, Result};
use highwater_device::age::Age;
use highwater_device::replay::result::{GroupResult, ReplayResult};
use highwater_device::replay::{self, ReplayOptions};
use std::path::{Path, PathBuf};

const CAPACITY_BYTES: u64 = 2 << 30;

/// The traces of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Traces {
    /// Whole ones, in a folder.
    Folder(PathBuf),
    /// The program's own.
    Sampled,
}

impl Traces {
    fn of(plan: &Plan) -> Traces {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
        Traces::choose(plan.traces.clone().or_else(|| variable("HIGHWATER_TRACES")), cache)
    }

    fn choose(named: Option<PathBuf>, cache: Option<PathBuf>) -> Traces {
        if let Some(folder) = named {
            return Traces::Folder(folder);
        }
        let folder = cache.map(|cache| cache.join("highwater/traces"));
        let is_whole = |folder: &PathBuf| NAMES.iter().all(|name| file(folder, name).is_file());
        folder.filter(is_whole).map_or(Traces::Sampled, Traces::Folder)
    }

    /// For the report.
    fn describe(&self) -> String {
        match self {
            Traces::Folder(folder) => format!("whole traces in {}", folder.display()),
            Traces::Sampled => format!("sampled traces that the program carries, one page of {}", sampled::SHARE),
        }
    }

    fn options(&self, name: &str, device: &str, workspace: &mut Workspace<'_>) -> Result<ReplayOptions> {
        match self {
            Traces::Folder(folder) => {
                let mut options = ReplayOptions::on_preset(trace(folder, name)?, device)?;
                options.capacity_bytes = Some(CAPACITY_BYTES);
                Ok(options)
            }
            Traces::Sampled => sampled::options(name, device, CAPACITY_BYTES, workspace),
        }
    }
}

const ORDERED: &str = "tpcc-ordered-j8-dwb";
const DATA_SMALL: &str = "tpcc-data-j8";
const DATA_LARGE: &str = "tpcc-data-j64";
const NAMES: [&str; 3] = [ORDERED, DATA_SMALL, DATA_LARGE];

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.csv.zst"))
}

/// Name of the trace of a cell.
fn name_of(cell: &Cell) -> Result<&'static str> {
    Ok(match (Mode::of(cell.get(MODE))?.journals_data(), cell.get(JOURNAL)) {
        (false, _) => ORDERED,
        (true, SMALL) => DATA_SMALL,
        (true, _) => DATA_LARGE,
    })
}

fn trace(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = file(folder, name);
    if path.is_file() {
        return Ok(path);
    }
    let how = "name their folder with --traces (or in HIGHWATER_TRACES), or name none, for the sampled traces that the \
               program carries; to record them: highwater device mount \
               MOUNTPOINT --capacity 2G --journal-mode ordered|data --journal-size 8M|64M --record NAME.csv.zst, \
               with a MySQL 5.6 and its TPC-C load on it; --scale standard runs without traces";
    Err(Error::Usage(format!("there is no {}; {how}", path.display())))
}

pub(super) fn measure(plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
    let DeviceChoice::Preset(device) = &plan.device else {
        return Err(Error::Usage("a trace is replayed on an emulated device, not on this disk".into()));
    };
    workspace.step("replaying")?;
    let (traces, name) = (Traces::of(plan), name_of(cell)?);
    let mut options = traces.options(name, device, workspace)?;
    options.passes = if plan.scale == Scale::Smoke { 1 } else { 2 };
    options.age = Age { overwrites: 1.0, seed: plan.seed, ..Age::default() };
    options.rules = Mode::of(cell.get(MODE))?.stream_rules()?;
    if cell.get(SPARE) != OWN_SPARE {
        let percent: f64 = cell.get(SPARE).parse().map_err(|_| Error::Usage("spare flash is not a number".into()))?;
        options.overprovisioning = Some(percent / 100.0);
    }
    let result = replay::run(&options, &mut |_| {})?;
    let mut measured = measured(&result);
    measured.put_info(info::TRACE, format!("{name}, of the {}", traces.describe()));
    Ok(measured)
}

fn measured(result: &ReplayResult) -> CellResult {
    let mut measured = CellResult::default();
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

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let traces = Traces::of(plan);
    let mut notes = vec![
        format!("Replayed: {}.", traces.describe()),
        "Recorded from MySQL 5.6.24 under tpcc-mysql: 10 warehouses (1.1 GiB, growing) on a device of 2 GiB, 16 \
         connections, 420 s, pool 128 MiB, redo log 128 MiB. Journals of 8 and 64 MiB: 1 : 141 and 1 : 18 of the \
         database."
            .into(),
        "The device was filled once and overwritten once at random; the trace ran twice, and figures are the second \
         run's. Requests took no time: new orders per minute need --scale standard."
            .into(),
    ];
    if traces == Traces::Sampled {
        notes.push(format!(
            "A sample has the writes and discards of one page of {0}; the device has a sixteenth of the recorder's \
             size and of its write buffer. Its write amplification is 6 to 9 % lower than the whole traces', in the \
             same order. Whole traces: --traces.",
            sampled::SHARE
        ));
    }
    notes
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
    }

    #[test]
    fn traces_that_are_not_named_are_those_at_hand_or_the_programs() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("highwater/traces");
        let chosen = |named: Option<&str>| Traces::choose(named.map(PathBuf::from), Some(cache.path().into()));
        assert_eq!(chosen(Some("/a")), Traces::Folder("/a".into()), "what is named is not replaced");
        std::fs::create_dir_all(&folder).unwrap();
        for name in NAMES {
            assert_eq!(chosen(None), Traces::Sampled, "{name} is missing");
            std::fs::write(file(&folder, name), "").unwrap();
        }
        assert_eq!(chosen(None), Traces::Folder(folder));
        assert_eq!(Traces::choose(None, None), Traces::Sampled);
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
