//! `highwater torture`: tests of what the engine promises, each a command with a file of its own.

mod corrupt;
mod crash;
mod disk;
mod drawn;
mod growth;
mod hermitage;
mod isolation;
mod power;
mod simulate;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use corrupt::CorruptOptions;
use crash::CrashOptions;
use growth::GrowthOptions;
use hermitage::HermitageOptions;
use isolation::IsolationOptions;
use power::PowerOptions;
use simulate::SimulateOptions;

const EXAMPLES: &str = "\
Examples:
  highwater torture crash --runs 30 --dir /tmp/torture
  highwater torture power --cuts 3000
  highwater torture corrupt --every 101
  highwater torture growth
  highwater torture hermitage
  highwater torture isolation --seconds 60
  highwater torture simulate --cuts 10000";

/// Test what the engine promises
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TortureArgs {
    #[command(subcommand)]
    kind: Torture,
}

#[derive(Debug, Subcommand)]
enum Torture {
    /// Kill a TPC-C run at random moments; after each kill recover the database and check it
    #[command(after_help = crash::EXAMPLES)]
    Crash(Box<CrashOptions>),
    /// Cut the power of a simulated disk at random moments; after each cut compare every index with its rows
    #[command(after_help = power::EXAMPLES)]
    Power(Box<PowerOptions>),
    /// Flip every byte of a small database, swap its blocks, put old ones back; each must be reported or be harmless
    #[command(after_help = corrupt::EXAMPLES)]
    Corrupt(Box<CorruptOptions>),
    /// Measure how operations grow with what they have to do, and whether skewed loads keep their level
    #[command(after_help = growth::EXAMPLES)]
    Growth(GrowthOptions),
    /// Play the schedules of the literature at every level of isolation and say which anomalies occur
    #[command(after_help = hermitage::EXAMPLES)]
    Hermitage(HermitageOptions),
    /// Run random transactions at every level of isolation and search what they saw for anomalies
    #[command(after_help = isolation::EXAMPLES)]
    Isolation(Box<IsolationOptions>),
    /// Run the whole engine on one thread, on simulated disks that fail; compare every answer; repeatable by a seed
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(Box<SimulateOptions>),
    /// The process that is killed
    #[command(hide = true)]
    Child(Box<CrashOptions>),
    /// The process that follows its change log
    #[command(hide = true)]
    Follower(Box<CrashOptions>),
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names what was lost or broken.
pub(crate) fn run(args: &TortureArgs) -> Result<(), Failure> {
    match &args.kind {
        Torture::Crash(options) => crash::run(options),
        Torture::Power(options) => power::run(options),
        Torture::Corrupt(options) => corrupt::run(options),
        Torture::Growth(options) => growth::run(options),
        Torture::Hermitage(options) => hermitage::run(options),
        Torture::Isolation(options) => isolation::run(options),
        Torture::Simulate(options) => simulate::run(options),
        Torture::Child(options) => crash::child(options),
        Torture::Follower(options) => crash::follow(options),
    }
}
