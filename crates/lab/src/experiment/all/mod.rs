//! All experiments one after another, and one page about them: `index.html`.
//!
//! Rules
//! 1. Each experiment has a folder with its name below the output folder, and runs there as it does alone.
//! 2. All folders are checked before anything is measured.
//! 3. An experiment that fails does not end the run; a request to stop does.
//! 4. A part that the experiment lacks (a subject, a device) or this machine lacks (a server, the right to mount) is
//!    left out, and the page has the reason.
//! 5. The page and `result.json` are rewritten after each experiment, and show only finished ones.

mod choice;
mod overview;
mod page;

pub use overview::{Overview, Part, State};

use super::files::{Folder, usage, write, write_json};
use super::{Experiment, Plan, Request, Resume, run};
use crate::measure::Watch;
use highwater_bench::{Error, Result};
use std::path::Path;
use std::time::Instant;

/// Runs the experiments and writes everything below the request's output folder.
///
/// # Errors
/// [`Error::Usage`] for a folder that cannot be used, or if nothing can be measured; [`Error::Interrupted`]. An
/// experiment's failure is in the overview.
pub fn run_all(
    experiments: &[&dyn Experiment],
    request: &Request,
    resume: Resume,
    watch: &mut dyn Watch,
) -> Result<Overview> {
    let planned: Vec<(&dyn Experiment, choice::Choice)> =
        experiments.iter().map(|one| (*one, choice::plan(*one, request))).collect();
    check(&planned, request, resume)?;
    let out = &request.out_dir;
    std::fs::create_dir_all(out).map_err(|e| usage(Error::file(out, e)))?;
    let mut overview = Overview::new(request);
    let all = planned.iter().filter(|(_, choice)| choice.is_ok()).count();
    let mut number = 0;
    for (experiment, choice) in &planned {
        let part = match choice {
            Err(reason) => Part::left_out(*experiment, reason),
            Ok(plan) => {
                number += 1;
                watch.experiment(number, all, experiment.about().name);
                measured(*experiment, plan, resume, watch)?
            }
        };
        if let Some(line) = part.failure() {
            watch.line(&line);
        }
        overview.experiments.push(part);
        write_json(&out.join("result.json"), &overview)?;
        write(&out.join("index.html"), page::html(&overview)?.as_bytes())?;
    }
    Ok(overview)
}

fn measured(experiment: &dyn Experiment, plan: &Plan, resume: Resume, watch: &mut dyn Watch) -> Result<Part> {
    let started = Instant::now();
    let outcome = run(experiment, plan, resume, watch);
    if matches!(outcome, Err(Error::Interrupted)) {
        return Err(Error::Interrupted);
    }
    Ok(Part::of(experiment, outcome, started.elapsed().as_secs_f64()))
}

/// Refuses what cannot be run as a whole; makes nothing.
fn check(planned: &[(&dyn Experiment, choice::Choice)], request: &Request, resume: Resume) -> Result<()> {
    check_root(planned, &request.out_dir, resume)?;
    let reasons: Vec<&str> =
        planned.iter().filter_map(|(_, choice)| choice.as_ref().err().map(String::as_str)).collect();
    if reasons.len() == planned.len() {
        return Err(Error::Usage(format!("nothing to measure: {}", reasons.join("; "))));
    }
    for (experiment, plan) in planned.iter().filter_map(|(one, choice)| Some((*one, choice.as_ref().ok()?))) {
        Folder::look(experiment, plan, resume)?;
    }
    Ok(())
}

fn check_root(planned: &[(&dyn Experiment, choice::Choice)], out: &Path, resume: Resume) -> Result<()> {
    let entries = match std::fs::read_dir(out) {
        Ok(entries) => entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(usage(Error::file(out, e))),
    };
    let refused = |reason: &str| Err(Error::Usage(format!("{} {reason}", out.display())));
    let is_ours = |name: &String| planned.iter().any(|(one, _)| one.about().name == name);
    match (entries.is_empty(), entries.iter().any(is_ours), resume) {
        (true, ..) => Ok(()),
        (_, false, _) => refused("is not empty and holds no run of all experiments; take another folder"),
        (_, true, Resume::No) => {
            refused("holds a run of all experiments already; continue with it (--resume) or take another folder")
        }
        (_, true, _) => Ok(()),
    }
}

#[cfg(test)]
mod all_test;
