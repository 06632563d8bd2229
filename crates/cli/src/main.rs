//! The `highwater` command.
//!
//! Rules
//! 1. Exit status: 0 success, 1 a failed check or an error, 2 wrong use.
//! 2. Results go to stdout, everything else (progress, messages, errors) to stderr. An error is one line that begins
//!    with `error:`.
//! 3. With `--json -` stdout carries the JSON and nothing else.
//! 4. This file only dispatches; each command has a file of its own.

/// A line on stderr. If stderr is closed the work continues (`eprintln!` would panic).
macro_rules! tell {
    ($($what:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($what)*);
    }};
}

mod at_rest;
mod backup;
mod bench;
mod bench_online_index;
mod bench_phases;
mod bench_setting;
mod bench_shrink;
mod changes;
mod check;
mod compact;
mod concurrent_backup;
mod concurrent_readers;
mod csv_field;
mod device;
mod dump;
mod engine_options;
mod export;
mod failure;
mod fresh;
mod import;
mod inspect;
mod lab;
mod lab_progress;
mod manual;
mod metrics;
mod output;
mod prepared;
mod progress;
mod rotate_key;
mod salvage;
mod shell;
mod signals;
mod source;
mod table_commands;
mod this_program;
mod top;
mod torture;
mod transaction_options;
mod workload_options;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  highwater bench tpcc --warehouses 2 --threads 4 --seconds 20 --dir /tmp/tpcc --report tpcc.html
  highwater bench sysbench read_write --tables 4 --table-size 100000 --threads 8 --seconds 60 --dir /tmp/sb
  highwater bench ycsb b --records 1000000 --threads 4 --seconds 30 --dir /tmp/ycsb --json -
  highwater bench tpcc --device samsung-pm953-960gb --capacity 2G --seconds 30 --json -
  highwater check /tmp/tpcc
  highwater backup /srv/shop /backup/monday
  highwater restore /backup/monday --to /srv/copy
  highwater compact /srv/shop
  highwater import /tmp/world city cities.csv --primary-key id --index by_name=name
  highwater export /tmp/world city cities-again.csv
  highwater dump /tmp/world world.hwdump
  highwater load world.hwdump /tmp/world-again
  highwater shell /tmp/world -c 'get city 17'
  highwater top 127.0.0.1:9104
  highwater inspect /tmp/world page 70
  highwater device replay tpcc.csv.zst --stream 1=journal --passes 2
  highwater lab run flush-neighbors --scale quick --subject highwater --out /tmp/neighbors

Exit status: 0 success; 1 a check failed or an error happened; 2 the command line is wrong.";

const DEVICE_EXAMPLES: &str = "\
Examples:
  highwater device list
  highwater device replay tpcc.csv.zst --stream 1=journal --passes 2";

/// A transactional storage engine for flash: benchmarks, checks and tools
#[derive(Debug, Parser)]
#[command(name = "highwater", version, after_help = EXAMPLES, max_term_width = 110)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload in this process and measure it
    Bench(bench::BenchArgs),
    /// Verify every page, tree, free list and cross-reference of a database
    Check(check::CheckArgs),
    /// Copy a database into a backup: all of it, or what changed since another backup
    Backup(backup::BackupArgs),
    /// Make a database of a backup and the incremental backups that follow it; or only verify them
    Restore(backup::RestoreArgs),
    /// Make the data file of a database as short as it can be
    Compact(compact::CompactArgs),
    /// Give an encrypted database another key
    RotateKey(rotate_key::RotateKeyArgs),
    /// List transactions that are prepared and wait for their coordinator; commit them or roll them back
    Prepared(prepared::PreparedArgs),
    /// Import a CSV file or JSON lines into a new or existing table
    Import(table_commands::ImportOptions),
    /// Export a table as CSV
    Export(table_commands::ExportOptions),
    /// Write a whole database as one stream, which every later version loads
    Dump(dump::DumpArgs),
    /// Load a database from such a stream
    Load(dump::LoadArgs),
    /// Print the row changes that committed transactions have left in the change log
    Changes(changes::ChangesArgs),
    /// Look at a database and change rows, by commands: typed, from a script or from the command line
    Shell(shell::ShellArgs),
    /// Show what a running process does: throughput, buffer pool, redo log, flushing, waits
    Top(top::TopArgs),
    /// Look at a database's tables, pages, redo log and lists
    Inspect(inspect::InspectArgs),
    /// Use the emulated SSD or hard disk without the engine: list presets, replay a trace, mount a block device
    #[command(after_help = DEVICE_EXAMPLES)]
    Device(device::DeviceArgs),
    /// Repeat the experiments of the source documents on Highwater, MySQL and MariaDB
    Lab(lab::LabArgs),
    /// Test what the engine promises: recovery after kills and power cuts, damaged files, levels of isolation
    Torture(torture::TortureArgs),
    /// Print a script with which bash, zsh or fish completes commands and options
    Completions(manual::CompletionsArgs),
    /// Print a manual page: of the program, or of a command
    Man(manual::ManArgs),
}

impl Command {
    /// The alternative to a command that does not work while another process has the database open.
    fn while_in_use(&self) -> &'static str {
        match self {
            Command::Check(_) => "let that process call Database::check or Database::repair_indexes, or end it first",
            Command::Backup(_) => "that process takes a backup meanwhile, with Database::backup; or end it first",
            Command::Compact(_) => "let that process call Database::compact, or end it first",
            Command::RotateKey(_) => "let that process call Database::rotate_key, or end it first",
            Command::Prepared(_) => {
                "let that process call Database::prepared and Database::finish_prepared, or end it first"
            }
            Command::Inspect(_) => "end it first; highwater shell and highwater top work meanwhile",
            Command::Shell(_) | Command::Export(_) | Command::Dump(_) | Command::Changes(_) | Command::Top(_) => {
                "it serves no readers (max_readers is 0): end it first"
            }
            Command::Bench(_) => "end it first, or name another folder",
            _ => "end it first",
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let while_in_use = command.while_in_use();
    run_alone(command).map_err(|failure| failure.with_instead(while_in_use))
}

fn run_alone(command: Command) -> Result<(), Failure> {
    match command {
        Command::Bench(args) => bench::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Compact(args) => compact::run(&args),
        Command::RotateKey(args) => rotate_key::run(&args),
        Command::Prepared(args) => prepared::run(&args),
        Command::Import(options) => table_commands::import(options),
        Command::Device(args) => device::run(&args),
        Command::Export(options) => table_commands::export(options),
        Command::Dump(args) => dump::dump(&args),
        Command::Load(args) => dump::load(&args),
        Command::Changes(args) => changes::run(&args),
        Command::Shell(args) => shell::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Torture(args) => torture::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    }
}

fn main() -> ExitCode {
    signals::ignore_file_size_limit();
    // A wrong command line ends here, with status 2 and clap's message; --help and --version with status 0.
    let line = CommandLine::parse();
    match run(line.command).and_then(|()| output::stdout_failure()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                tell!("error: {message}");
            }
            ExitCode::from(failure.status())
        }
    }
}

#[cfg(test)]
#[path = "main_test.rs"]
mod tests;
