//! `highwater lab list`, `highwater lab run EXPERIMENT|all`: the source documents' experiments.
//!
//! Rules
//! 1. Progress goes to stderr; the claims and the path of the report go to stdout, or with `--json -` only the JSON.
//! 2. Ctrl-C or SIGTERM ends the measurement, which undoes its set-up; a second signal, or [`TIMEOUT`] without success,
//!    ends the process at once, and the guards of servers and mounts clean up.
//! 3. A claim that does not hold is exit status 1 only with `--strict`: a document's claim need not hold on this
//!    machine. A claim with a difference too small to decide is not lost.
//! 4. `all` continues when an experiment fails; then the exit status is 1 at the end.

use crate::failure::Failure;
use crate::lab_progress::Terminal;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use crate::signals;
use clap::{Args, Subcommand};
use highwater_lab::experiment::{self, Experiment, Outcome, Request, Resume, Scale, SubjectKind, Verdict};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum time of an interrupted measurement to undo its set-up.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Stands for every experiment.
const ALL: &str = "all";

const EXAMPLES: &str = "\
Examples:
  highwater lab list
  highwater lab run flush-neighbors --scale quick --subject highwater --out /tmp/neighbors
  highwater lab run all --scale quick --out /tmp/all";

const LIST_EXAMPLES: &str = "\
Examples:
  highwater lab list";

const RUN_EXAMPLES: &str = "\
Examples:
  highwater lab run flush-neighbors --scale quick --subject highwater --out /tmp/neighbors
  highwater lab run buffer-pool-size --subject highwater,mysql --device samsung-960-pro-512gb --out /tmp/pool
  highwater lab run stream-journal --scale quick --traces /srv/traces --out /tmp/journal
  highwater lab run stall --scale standard --out /tmp/stall --resume
  highwater lab run page-store --scale quick --subject highwater --out /tmp/stores
  highwater lab run peers --scale quick --subject highwater,lmdb --workload tpcc,ycsb-a --out /tmp/peers
  highwater lab run peers --scale quick --subject highwater,mariadb,myrocks --workload write-only --out /tmp/servers
  highwater lab run peers --scale quick --workload tpcc --clients 1,4,16 --repetitions 3 --out /tmp/clients
  highwater lab run peers --scale quick --only data=in-memory,commits=relaxed --out /tmp/relaxed
  highwater lab run peers --scale quick --device samsung-pm953-960gb --workload tpcc --out /tmp/flash
  highwater lab run all --scale quick --out /tmp/all

all runs every experiment but peers, each in a folder of its own below --out, and writes index.html with every claim and
a link to each report. What an experiment does not have (a subject, a device) is left out. If one fails, the others
still run, and the exit status is 1. peers needs a program of its own: cargo xtask peers-build; its servers are those
that scripts/install-servers installs.

Scales: smoke = a few seconds; shows that the laboratory works, but is too small to judge claims. quick = the whole
experiment on one subject in at most three minutes. standard = 15 to 45 minutes on all subjects. full = the sizes of
the source documents.";

/// Repeat the experiments of the source documents
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// List the experiments
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Run an experiment, or all: measurements, claims, report
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
}

#[derive(Args, Debug)]
struct RunArgs {
    /// Name of the experiment (highwater lab list), or all
    experiment: String,
    /// What to measure, separated by commas: highwater, mysql, mariadb, ... (highwater lab list) [default: the
    /// experiment's that are installed; of peers all but the servers]
    #[arg(long, value_name = "SUBJECTS", value_delimiter = ',')]
    subject: Vec<String>,
    /// Workloads to measure, separated by commas, of an experiment that has several (peers) [default: all]
    #[arg(long, value_name = "WORKLOADS", value_delimiter = ',')]
    workload: Vec<String>,
    /// Numbers of clients, separated by commas, of an experiment that lets you choose (peers) [default: 4; at the
    /// standard and full scales 1,4,16]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    clients: Vec<u32>,
    /// Measure only settings that have this value of what the experiment varies; again or separated by commas for more
    /// (peers: data=in-memory, data=10-x-memory, commits=durable, commits=relaxed) [default: all]
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    only: Vec<String>,
    /// An option of Highwater, of an experiment that lets you choose them (peers): with page-store=out-of-place its
    /// pages are written once; again or separated by commas for more [default: its own defaults]
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    highwater_option: Vec<String>,
    /// Where the data are stored: local (this machine's disk) or the preset of an emulated device [default: the first
    /// one that `highwater lab list` shows]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Size of the experiment: smoke, quick, standard or full
    #[arg(long, default_value = "standard")]
    scale: String,
    /// Folder for the results: a new or empty folder, or with --resume the folder of the run to continue
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Continue an earlier run of the same experiment into the same folder
    #[arg(long)]
    resume: bool,
    /// With --resume: continue even if another build of this program measured the earlier part; the results then come
    /// from both builds
    #[arg(long, requires = "resume")]
    any_build: bool,
    /// Exit status 1 if a claim does not hold
    #[arg(long)]
    strict: bool,
    /// How many times each setting is measured [default: depends on the experiment and the scale]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of the recorded traces that stream-journal replays at the scales smoke and quick [default:
    /// $HIGHWATER_TRACES, or ~/.cache/highwater/traces, or the sampled traces that this program carries]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Folder in which the experiment creates its databases; they are removed afterwards [default: the folder of --out]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Also write the result as JSON to FILE; with -, write only the JSON to stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] says why and with which exit status.
pub(crate) fn run(args: &LabArgs) -> Result<(), Failure> {
    match &args.command {
        LabCommand::List => list(),
        LabCommand::Run(args) if args.experiment == ALL => run_all(args),
        LabCommand::Run(args) => run_experiment(args),
    }
}

fn list() -> Result<(), Failure> {
    let out = Lines { stdout_taken: false };
    for one in experiment::all() {
        let own = one.default_subjects();
        let one = one.about();
        let names = |wanted: bool| {
            let kinds = one.subjects.iter().filter(|kind| own.contains(kind) == wanted);
            kinds.map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
        };
        let (subjects, others) = (names(true), names(false));
        let others = if others.is_empty() { others } else { format!("; on request {others}") };
        let text = format!(
            "{}\n    {}\n    source: {}\n    subjects: {subjects}{others}\n    devices: {}",
            one.name,
            one.summary,
            one.source,
            one.devices.join(", ")
        );
        out.write(&text);
    }
    Ok(())
}

fn run_experiment(args: &RunArgs) -> Result<(), Failure> {
    let experiment = experiment::find(&args.experiment)?;
    let request = request(args)?;
    let plan = request.plan(experiment)?;
    json_must_be_writable(args.json.as_ref())?;
    signals::stop(Some(TIMEOUT))?;
    for line in &plan.skipped {
        tell!("{line}");
    }
    let mut terminal = Terminal::new();
    let outcome = experiment::run(experiment, &plan, resume(args), &mut terminal);
    drop(terminal);
    finish(experiment, args, outcome)
}

fn resume(args: &RunArgs) -> Resume {
    match (args.resume, args.any_build) {
        (false, _) => Resume::No,
        (true, false) => Resume::SameBuild,
        (true, true) => Resume::AnyBuild,
    }
}

fn run_all(args: &RunArgs) -> Result<(), Failure> {
    let request = request(args)?;
    json_must_be_writable(args.json.as_ref())?;
    signals::stop(Some(TIMEOUT))?;
    let mut terminal = Terminal::new();
    let experiments: Vec<_> = experiment::all().iter().copied().filter(|one| one.is_of_all()).collect();
    let overview = experiment::run_all(&experiments, &request, resume(args), &mut terminal);
    drop(terminal);
    let overview = overview.map_err(|error| match error {
        highwater_bench::Error::Usage(reason) => Failure::Usage(reason),
        error => Failure::Failed(format!(
            "{error}; finished measurements are kept: run the same command with --resume to continue"
        )),
    })?;
    let out = Lines { stdout_taken: args.json == Some(Json::Stdout) };
    for part in &overview.experiments {
        out.write(&part.failure().unwrap_or_else(|| format!("{} ({:.0} s)", part.experiment, part.seconds)));
        if let Some(outcome) = &part.outcome {
            out.write(&claims(outcome));
        }
    }
    out.write(&format!("Reports: {}", args.out.join("index.html").display()));
    if let Some(json) = &args.json {
        let text = serde_json::to_string_pretty(&overview).map_err(|e| Failure::Failed(format!("as JSON: {e}")))?;
        write_json(json, &text)?;
    }
    let failed = overview.failed();
    if !failed.is_empty() {
        return Err(Failure::Failed(format!("failed: {}; --resume runs what is missing again", failed.join(", "))));
    }
    if args.strict && overview.has_lost() { Err(Failure::NotFine) } else { Ok(()) }
}

fn request(args: &RunArgs) -> Result<Request, Failure> {
    let subjects = args.subject.iter().map(|name| name.parse::<SubjectKind>()).collect::<Result<Vec<_>, _>>()?;
    Ok(Request {
        subjects,
        workloads: args.workload.clone(),
        clients: args.clients.clone(),
        only: args.only.clone(),
        highwater_options: args.highwater_option.clone(),
        device: args.device.clone(),
        scale: args.scale.parse::<Scale>()?,
        repetitions: args.repetitions,
        seed: args.seed,
        work_dir: args.work_dir.clone(),
        traces: args.traces.clone(),
        out_dir: args.out.clone(),
    })
}

fn finish(
    experiment: &dyn Experiment,
    args: &RunArgs,
    outcome: highwater_bench::Result<Outcome>,
) -> Result<(), Failure> {
    let outcome = outcome.map_err(|error| match error {
        highwater_bench::Error::Usage(reason) => Failure::Usage(reason),
        error if experiment::has_cells(&args.out) => Failure::Failed(format!(
            "{}: {error}; finished measurements are kept: run the same command with --resume to continue",
            experiment.about().name
        )),
        error => Failure::Failed(format!("{}: {error}", experiment.about().name)),
    })?;
    let out = Lines { stdout_taken: args.json == Some(Json::Stdout) };
    out.write(&claims(&outcome));
    out.write(&format!("Report: {}", args.out.join("report.html").display()));
    if let Some(json) = &args.json {
        let text = serde_json::to_string_pretty(&outcome).map_err(|e| Failure::Failed(format!("as JSON: {e}")))?;
        write_json(json, &text)?;
    }
    if args.strict && outcome.has_lost() { Err(Failure::NotFine) } else { Ok(()) }
}

/// A line a claim and subject.
fn claims(outcome: &Outcome) -> String {
    let line = |claim: &experiment::Claim| {
        let verdict = match claim.verdict {
            Verdict::Lost => "LOST",
            other => other.text(),
        };
        format!("{verdict:<17} {:<10} {}: {}", claim.subject, claim.text, claim.detail)
    };
    outcome.claims.iter().map(line).collect::<Vec<_>>().join("\n")
}
