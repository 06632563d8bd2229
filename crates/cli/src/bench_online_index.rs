//! `highwater bench online-index`: an index of a large table is built while clients change the table.

use crate::bench::LoadProgress;
use crate::bench_phases::PhaseOptions;
use crate::engine_options::tell_recovery;
use crate::failure::Failure;
use clap::Args;
use highwater_bench::concurrent_clients::Phase;
use highwater_bench::online_index::{Build, Config, OnlineIndex, measure};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options.
#[derive(Args, Clone, Debug)]
pub(crate) struct OnlineIndexArgs {
    /// Folder of the database; created if it does not exist, kept afterwards without the index, and reused if it holds
    /// as many rows
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Rows of the table, about 200 bytes each
    #[arg(long, default_value = "1000000", value_parser = crate::workload_options::rows)]
    rows: u64,
    /// Client threads: each transaction changes three rows, the column of the index in two of them
    #[arg(long, short = 't', default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    threads: u64,
    /// Seconds that the clients run before the build, and after it, for comparison
    #[arg(long, default_value_t = 10.0, value_parser = crate::bench::seconds)]
    seconds: f64,
    /// Rebuild the index afterwards, while the clients run too
    #[arg(long)]
    rebuild: bool,
    #[command(flatten)]
    common: PhaseOptions,
}

/// Runs the command.
///
/// # Errors
/// That of the engine, of a file, or [`Failure::Usage`].
pub(crate) fn run(args: &OnlineIndexArgs) -> Result<(), Failure> {
    let config = Config {
        rows: args.rows,
        threads: args.threads as usize,
        seconds: args.seconds,
        rebuild: args.rebuild,
        seed: args.common.seed,
    };
    let database = args.common.open(&args.dir)?;
    args.common.engine.must_agree_with(&database)?;
    tell_recovery(&database);
    let progress = LoadProgress::new(args.rows);
    let measured = measure(&database, &config, &progress, &mut |phase| tell!("{phase} ..."));
    let closed = database.close();
    let measured = measured?;
    closed?;
    args.common.report(&args.dir, &table(&measured), as_json(&measured, args))
}

fn builds(measured: &OnlineIndex) -> Vec<(&'static str, Build)> {
    let rebuild = measured.rebuild.map(|rebuild| ("rebuild", rebuild));
    std::iter::once(("build", measured.build)).chain(rebuild).collect()
}

fn phases(measured: &OnlineIndex) -> Vec<(&'static str, Phase)> {
    let rebuilding = measured.rebuild.map(|rebuild| ("rebuilding", rebuild.clients));
    let all = [("before", measured.before), ("building", measured.build.clients), ("after", measured.after)];
    all.into_iter().chain(rebuilding).collect()
}

fn rows_per_s(measured: &OnlineIndex, build: &Build) -> f64 {
    measured.rows as f64 / build.clients.seconds
}

fn table(measured: &OnlineIndex) -> String {
    let mut text = format!(
        "rows: {}; the index has an entry for each, and the check, of {:.1} s, no finding\n\n",
        measured.rows, measured.check_s
    );
    text += &format!("{:<14}{:>14}{:>14}{:>16}{:>14}\n", "", "seconds", "rows/s", "noted changes", "sorted, MiB");
    for (what, build) in builds(measured) {
        let (seconds, rows_per_s) = (build.clients.seconds, rows_per_s(measured, &build));
        let (noted, mib) = (build.noted_changes, build.sorted_bytes as f64 / 1048576.0);
        text += &format!("{what:<14}{seconds:>14.1}{rows_per_s:>14.0}{noted:>16}{mib:>14.1}\n");
    }
    text += &format!("\n{:<14}{:>14}{:>16}{:>16}\n", "clients", "seconds", "transactions/s", "longest, ms");
    for (what, Phase { tps, max_ms, seconds }) in phases(measured) {
        text += &format!("{what:<14}{seconds:>14.1}{tps:>16.0}{max_ms:>16.1}\n");
    }
    text
}

fn as_json(measured: &OnlineIndex, args: &OnlineIndexArgs) -> Value {
    let builds = builds(measured).into_iter().map(|(what, build)| {
        json!({
            "what": what,
            "seconds": build.clients.seconds,
            "rows_per_s": rows_per_s(measured, &build),
            "noted_changes": build.noted_changes,
            "sorted_bytes": build.sorted_bytes,
        })
    });
    let clients = phases(measured).into_iter().map(|(what, Phase { tps, max_ms, seconds })| {
        json!({"while": what, "transactions_per_s": tps, "max_ms": max_ms, "seconds": seconds})
    });
    json!({
        "rows": measured.rows,
        "threads": args.threads,
        "builds": builds.collect::<Vec<_>>(),
        "clients": clients.collect::<Vec<_>>(),
        "check_s": measured.check_s,
    })
}
