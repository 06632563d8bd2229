//! `highwater shell DIR`: commands on a database, from a terminal, a script or the command line.
//!
//! | file | what |
//! |---|---|
//! | `words` | a line becomes words |
//! | `commands` | words become a command; the help |
//! | `complete` | completion by Tab |
//! | `create` | the definition of a new table |
//! | `session` | the commands carried out |
//! | `printer` | rows as a table, CSV or JSON |
//!
//! Rules
//! 1. The shell opens the database itself, as any program does. If another process has it open, the shell reads it
//!    through that process, and refuses commands that change it (`source.rs`).
//! 2. On a terminal no error ends the shell. A script and `-c` end at the first error, with status 1, unless
//!    `--keep-going` is given.
//! 3. A transaction that is open at the end is rolled back, with a message.
//! 4. Ctrl-C ends the running command, not the shell.

mod commands;
mod complete;
mod create;
pub(crate) mod printer;
mod session;
mod words;

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::while_read;
use crate::source::Source;
use clap::Args;
use complete::Completion;
use printer::Form;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use session::{Session, Stop};
use signal_hook::consts::SIGINT;
use std::io::{BufRead, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "\
Examples:
  highwater shell /srv/shop
  highwater shell /srv/shop -c tables -c 'get city 17'
  highwater shell /srv/shop --format json -c 'scan city by by_name starts Lu limit 10'

A script comes from stdin: highwater shell /srv/shop < changes.txt
In the shell `help` lists the commands: tables, schema, get, scan, count, insert, put, delete, create,
drop, begin, commit, rollback.
A database that another process has open is read through that process; commands that change it are refused.
Exit status: 0; 1 a command failed; 2 the database cannot be opened.";

/// Rows that a scan without a limit shows on a terminal.
const TERMINAL_ROWS: usize = 100;

/// Look at a database and change rows, by commands
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShellArgs {
    /// Folder of the database
    dir: PathBuf,
    /// A command; without one they are read from stdin
    #[arg(short, long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// How rows are shown
    #[arg(long, value_enum, default_value_t)]
    format: Form,
    /// Write nothing: the database is recovered in memory if it was not closed
    #[arg(long)]
    read_only: bool,
    /// Go on after an error of a script
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs `shell`.
///
/// # Errors
/// [`Failure::Usage`] if the database cannot be opened, [`Failure::NotFine`] after a command that failed, which was
/// reported; the failure of closing.
pub(crate) fn run(args: &ShellArgs) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, interrupted.clone())
        .map_err(|error| Failure::Failed(format!("waiting for signals: {error}")))?;
    let opened = match args.read_only {
        true => args.engine.open_read_only(&args.dir),
        false => args.engine.open(&args.dir, &[], false),
    };
    let source = Source::of(&args.dir, opened)?;
    let is_typed = args.commands.is_empty() && std::io::stdin().is_terminal();
    let row_limit = (is_typed && std::io::stdout().is_terminal()).then_some(TERMINAL_ROWS);
    let session =
        Session { source: source.clone(), txn: None, form: args.format, row_limit, interrupted: &interrupted };
    let mut shell = Shell { session, keeps_going: args.keep_going || is_typed, failures: 0 };
    let ended = match (is_typed, args.commands.is_empty()) {
        (true, _) => shell.type_lines(),
        (false, true) => shell.read_lines(std::io::stdin().lock()),
        (false, false) => args.commands.iter().try_for_each(|line| shell.line(line, "")),
    };
    // The error that ends a shell early has been printed.
    let (is_cut, failures) = (ended.is_err() && !matches!(ended, Err(End::Exit | End::Closed)), shell.failures);
    if shell.session.txn.take().is_some_and(|txn| txn.rollback().is_ok()) {
        tell!("the open transaction was rolled back");
    }
    drop(shell);
    source.close()?;
    if is_cut || failures > 0 { Err(Failure::NotFine) } else { Ok(()) }
}

/// The reason for the end of the commands.
enum End {
    Exit,
    /// A command failed.
    Failed,
    /// The reader of the output has ended.
    Closed,
}

struct Shell<'s> {
    session: Session<'s>,
    keeps_going: bool,
    failures: u64,
}

impl Shell<'_> {
    /// Reads lines from the terminal.
    fn type_lines(&mut self) -> Result<(), End> {
        let failed = |error: ReadlineError| {
            tell!("error: the terminal: {error}");
            End::Failed
        };
        let config = Config::builder().completion_type(CompletionType::List).build();
        let mut editor = Editor::<Completion, DefaultHistory>::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Completion { source: self.session.source.clone() }));
        if let Err(reason) = self.session.source.to_change() {
            tell!("{reason}");
        }
        tell!("`help` lists the commands, Tab completes names, Ctrl-D leaves.");
        loop {
            let prompt = if self.session.txn.is_some() { "highwater*> " } else { "highwater> " };
            match editor.readline(prompt) {
                Ok(line) => {
                    if !line.trim().is_empty() {
                        // Without it the line is not found again, which harms nothing.
                        let _ = editor.add_history_entry(&line);
                    }
                    self.line(&line, "")?;
                    self.failures = 0;
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn read_lines(&mut self, script: impl BufRead) -> Result<(), End> {
        for (at, line) in script.lines().enumerate() {
            let place = format!("line {}: ", at + 1);
            match line {
                Ok(line) => self.line(&line, &place)?,
                Err(error) => {
                    tell!("error: {place}{error}");
                    return Err(End::Failed);
                }
            }
        }
        Ok(())
    }

    /// Carries out the commands of a line. After an error those after it are left out.
    fn line(&mut self, line: &str, place: &str) -> Result<(), End> {
        let failed = |reason: String| {
            tell!("error: {place}{reason}");
            Err(End::Failed)
        };
        let done = match words::commands(line) {
            Err(reason) => failed(reason),
            Ok(all) => all.iter().try_for_each(|words| match commands::parse(words) {
                Ok(command) => self.command(command, place),
                Err(reason) => failed(reason),
            }),
        };
        match done {
            Err(End::Failed) if self.keeps_going => {
                self.failures += 1;
                Ok(())
            }
            done => done,
        }
    }

    fn command(&mut self, command: commands::Command, place: &str) -> Result<(), End> {
        self.session.interrupted.store(false, Ordering::Relaxed);
        let mut out = BufWriter::new(std::io::stdout().lock());
        let done = self.session.run(command, &mut out);
        let flushed = out.flush().map_err(Stop::Output);
        match done.and(flushed) {
            Ok(()) => Ok(()),
            Err(Stop::Exit) => Err(End::Exit),
            Err(Stop::Output(error)) => match while_read::<()>(Err(error)) {
                Ok(_) => Err(End::Closed),
                Err(error) => {
                    tell!("error: stdout: {error}");
                    Err(End::Failed)
                }
            },
            Err(Stop::Wrong(reason)) => {
                tell!("error: {place}{}", reason.replace('\n', " "));
                Err(End::Failed)
            }
        }
    }
}
