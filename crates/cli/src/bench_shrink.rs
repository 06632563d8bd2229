//! `highwater bench shrink`: the size of a database's files after most rows of a table were deleted while clients ran.

use crate::bench_phases::PhaseOptions;
use crate::engine_options::tell_recovery;
use crate::failure::Failure;
use crate::output::must_be_empty;
use clap::Args;
use highwater_bench::concurrent_clients::Phase;
use highwater_bench::shrink::{Config, Footprint, Shrunk, measure};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShrinkArgs {
    /// Folder of the database: new, empty, or with a benchmark's database and --fresh
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Folder for the backups that are measured and removed; new or empty [default: DIR.backup]
    #[arg(long, value_name = "DEST")]
    backup_to: Option<PathBuf>,
    /// Bytes of column values to load
    #[arg(long, default_value = "500M", value_parser = crate::engine_options::size)]
    bytes: u64,
    /// Percent of the rows to delete, spread evenly
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=99))]
    percent: u64,
    /// Client threads that update the other rows meanwhile
    #[arg(long, short = 't', default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    threads: u64,
    /// Seconds that the clients run before the deletion, for comparison
    #[arg(long, default_value_t = 10.0, value_parser = crate::bench::seconds)]
    seconds: f64,
    #[command(flatten)]
    common: PhaseOptions,
}

/// Runs the command.
///
/// # Errors
/// That of the engine, of a file, or [`Failure::Usage`].
pub(crate) fn run(args: &ShrinkArgs) -> Result<(), Failure> {
    let mut backup_dir = args.dir.clone().into_os_string();
    backup_dir.push(".backup");
    let backup_to = args.backup_to.clone().unwrap_or_else(|| backup_dir.into());
    must_be_empty(&backup_to)?;
    let config = Config {
        bytes: args.bytes,
        percent: args.percent,
        threads: args.threads as usize,
        seconds: args.seconds,
        dir: args.dir.clone(),
        backup_to,
        seed: args.common.seed,
    };
    let database = args.common.open(&args.dir)?;
    tell_recovery(&database);
    let measured = measure(&database, &config, &mut |phase| tell!("{phase} ..."));
    let closed = database.close();
    let shrunk = measured?;
    closed?;
    args.common.report(&args.dir, &table(&shrunk), as_json(&shrunk))
}

fn table(shrunk: &Shrunk) -> String {
    let mib = |bytes: u64| bytes as f64 / 1048576.0;
    let mut text = format!("rows: {}, then {}\n\n", shrunk.rows[0], shrunk.rows[1]);
    text += &format!("{:<22}{:>14}{:>14}{:>14}\n", "MiB", "data file", "all files", "backup");
    for (what, Footprint { data_bytes, allocated_bytes, backup_bytes }) in footprints(shrunk) {
        let [data, all, backup] = [data_bytes, allocated_bytes, backup_bytes].map(mib);
        text += &format!("{what:<22}{data:>14.1}{all:>14.1}{backup:>14.1}\n");
    }
    if shrunk.fixed_pages > 0 {
        text += &format!("\n{} pages at the end of the file could not be moved\n", shrunk.fixed_pages);
    }
    text += &format!("\n{:<22}{:>14}{:>14}{:>14}\n", "clients", "updates/s", "longest, ms", "seconds");
    for (what, Phase { tps, max_ms, seconds }) in phases(shrunk) {
        text += &format!("{what:<22}{tps:>14.0}{max_ms:>14.1}{seconds:>14.1}\n");
    }
    text
}

fn footprints(shrunk: &Shrunk) -> [(&'static str, Footprint); 3] {
    [("loaded", shrunk.loaded), ("deleted", shrunk.deleted), ("compacted", shrunk.compacted)]
}

fn phases(shrunk: &Shrunk) -> [(&'static str, Phase); 4] {
    [
        ("alone", shrunk.alone),
        ("deleting", shrunk.deleting),
        ("returning space", shrunk.returning),
        ("compacting", shrunk.compacting),
    ]
}

fn as_json(shrunk: &Shrunk) -> Value {
    let files = footprints(shrunk).map(|(what, Footprint { data_bytes, allocated_bytes, backup_bytes })| {
        json!({
            "after": what,
            "data_bytes": data_bytes,
            "allocated_bytes": allocated_bytes,
            "backup_bytes": backup_bytes,
        })
    });
    let clients = phases(shrunk).map(|(what, Phase { tps, max_ms, seconds })| {
        json!({"while": what, "updates_per_s": tps, "max_ms": max_ms, "seconds": seconds})
    });
    json!({
        "rows_before": shrunk.rows[0],
        "rows_after": shrunk.rows[1],
        "files": files,
        "fixed_pages": shrunk.fixed_pages,
        "clients": clients,
    })
}
