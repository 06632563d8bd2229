//! `highwater torture hermitage`: the anomalies that each isolation level prevents, on Highwater and on MariaDB
//! ([`highwater_torture::isolation::hermitage`]).

use crate::failure::Failure;
use crate::output::Lines;
use clap::Args;
use highwater_lab::subject::{self, Files, Settings, SubjectKind};
use highwater_torture::isolation::hermitage::{self, Highwater, Script, Server, ServerEngine};

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture hermitage
  highwater torture hermitage --subject highwater --subject mariadb

`occurs` is the anomaly; otherwise what prevented it: the version that was read, a wait for a lock, a deadlock's
victim, a write conflict. Exit status 1 if a cell is not what docs/design/isolation.md promises.";

/// On what the schedules are played.
#[derive(Args, Clone, Debug)]
pub(super) struct HermitageOptions {
    /// Highwater, or InnoDB of a MariaDB server through SQL; can be given more than once
    #[arg(long, value_name = "SUBJECT", default_value = "highwater", value_parser = ["highwater", "mariadb"])]
    subject: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names the cells that are not as promised.
pub(super) fn run(options: &HermitageOptions) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for subject in &options.subject {
        wrong.extend(match subject.as_str() {
            "mariadb" => mariadb()?,
            _ => play("Highwater", &mut Highwater::open()?, |script| script.highwater)?,
        });
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Failed(wrong.join("; "))) }
}

/// Plays all, prints the table and returns what is not as promised.
fn play<S: hermitage::Subject>(
    name: &str,
    subject: &mut S,
    promised: fn(&Script) -> &'static str,
) -> Result<Vec<String>, Failure> {
    let lines = hermitage::play_all(subject)?;
    Lines { stdout_taken: false }.write(&format!("{name}\n\n{}", hermitage::table(&lines)));
    Ok(hermitage::differences(&lines, promised).into_iter().map(|line| format!("{name}, {line}")).collect())
}

fn mariadb() -> Result<Vec<String>, Failure> {
    let installed = SubjectKind::Mariadb.find().map_err(|missing| Failure::Failed(missing.to_string()))?;
    let folder = tempfile::tempdir().map_err(|error| Failure::Failed(error.to_string()))?;
    let files = Files::in_folder(folder.path().join("mariadb"));
    let server = subject::Server::start(&installed, &files, &Settings::default())?;
    let name = format!("InnoDB of MariaDB {}", server.version());
    let found = play(&name, &mut Server::new(server.store().clone(), ServerEngine::InnoDb)?, |script| script.innodb);
    server.stop()?;
    found
}
