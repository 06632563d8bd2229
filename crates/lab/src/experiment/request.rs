//! Makes a plan from a user's request: adds defaults, and refuses impossible requests before anything is done.

use super::{DeviceChoice, Experiment, Plan, Scale, SubjectKind};
use highwater::Options;
use highwater_bench::{Error, Result};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A user's request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Subjects; empty: the experiment's default.
    pub subjects: Vec<SubjectKind>,
    /// Workloads, of an experiment that has several; empty: all.
    pub workloads: Vec<String>,
    /// Numbers of clients, of an experiment that lets them be chosen; empty: the experiment's.
    pub clients: Vec<u32>,
    /// `NAME=VALUE` of the settings that are measured, of an experiment that lets them be chosen; empty: all.
    pub only: Vec<String>,
    /// `NAME=VALUE` of Highwater's options, of an experiment that lets settings be chosen; empty: its defaults.
    pub highwater_options: Vec<String>,
    /// `local` or a preset; `None`: the experiment's default.
    pub device: Option<String>,
    /// The scale.
    pub scale: Scale,
    /// Number of measurements of each cell; `None`: the experiment's default.
    pub repetitions: Option<u32>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Folder for databases during the run; `None`: the output folder.
    pub work_dir: Option<PathBuf>,
    /// Folder of recorded traces; `None`: from the environment, or the sampled traces in the program.
    pub traces: Option<PathBuf>,
    /// The output folder.
    pub out_dir: PathBuf,
}

impl Request {
    /// The plan; subjects that are not installed are left out with a line that says how to get them.
    ///
    /// # Errors
    /// [`Error::Usage`]: a subject, device, workload or setting that is not the experiment's, clients where the
    /// experiment decides, no subject left, no measurement of what is asked, mounts without root.
    pub fn plan(&self, experiment: &dyn Experiment) -> Result<Plan> {
        let device = device(experiment, self.device.as_deref())?;
        let (subjects, skipped) = subjects(experiment, &self.subjects, self.scale)?;
        let own = self.repetitions.unwrap_or_else(|| experiment.repetitions(self.scale, &device));
        let servers = self.repetitions.unwrap_or_else(|| experiment.server_repetitions(self.scale, &device));
        // A kind of subject that is not measured has no number of its own.
        let (own, servers) = match (subjects.iter().all(|s| s.is_server()), subjects.iter().any(|s| s.is_server())) {
            (true, _) => (servers, servers),
            (false, true) => (own, servers),
            (false, false) => (own, own),
        };
        let known = experiment.workloads();
        if let Some(foreign) = self.workloads.iter().find(|name| !known.contains(&name.as_str())) {
            let there = if known.is_empty() { "none to choose from".into() } else { known.join(", ") };
            return Err(Error::Usage(format!(
                "{} has no workload {foreign}; it has: {there}",
                experiment.about().name
            )));
        }
        if !self.clients.is_empty() && !experiment.lets_clients_be_chosen() {
            let reason = format!("{} decides how many clients there are", experiment.about().name);
            return Err(Error::Usage(reason));
        }
        let mut clients = self.clients.clone();
        clients.sort_unstable();
        clients.dedup();
        let plan = Plan {
            scale: self.scale,
            workloads: self.workloads.clone(),
            clients,
            only: choices("--only", &self.only)?,
            highwater_options: choices("--highwater-option", &self.highwater_options)?,
            repetitions: own,
            server_repetitions: servers,
            subjects,
            device,
            seed: self.seed,
            work_dir: self.work_dir.clone().unwrap_or_else(|| self.out_dir.clone()),
            out_dir: self.out_dir.clone(),
            traces: self.traces.clone(),
            skipped,
        };
        check_choices(experiment, &plan)?;
        if !plan.workloads.is_empty() && experiment.cells(&plan).is_empty() {
            let subjects = plan.subjects.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            let (name, workloads) = (experiment.about().name, plan.workloads.join(", "));
            return Err(Error::Usage(format!("{name} measures nothing of {workloads} on {subjects}")));
        }
        if experiment.mounts(&plan) && !is_root() {
            let reason = "this mounts an emulated device, which only root may do: run as root, or take --device local";
            return Err(Error::Usage(reason.into()));
        }
        Ok(plan)
    }
}

/// The two sides of each `NAME=VALUE`.
fn choices(option: &str, texts: &[String]) -> Result<Vec<(String, String)>> {
    let sides = |text: &String| {
        let wanted = || Error::Usage(format!("{option} {text}: it has no =, as in NAME=VALUE"));
        text.split_once('=').map(|(name, value)| (name.into(), value.into())).ok_or_else(wanted)
    };
    texts.iter().map(sides).collect()
}

/// Refuses values that no setting has.
fn check_choices(experiment: &dyn Experiment, plan: &Plan) -> Result<()> {
    if plan.only.is_empty() && plan.highwater_options.is_empty() {
        return Ok(());
    }
    let about = experiment.about().name;
    let mut options = Options::default();
    for (name, value) in &plan.highwater_options {
        options.set(name, value).map_err(|error| Error::Usage(error.to_string()))?;
    }
    if !experiment.lets_settings_be_chosen() {
        let reason = format!("{about} lets neither settings nor options be chosen: its claims need all of them");
        return Err(Error::Usage(reason));
    }
    let all = experiment.cells(&Plan { only: Vec::new(), ..plan.clone() });
    for (name, value) in &plan.only {
        let values: BTreeSet<String> =
            all.iter().filter_map(|cell| cell.setting.get(name)).map(|v| v.replace(' ', "-")).collect();
        if !values.contains(value) {
            let there = if values.is_empty() {
                "nothing of that name".into()
            } else {
                values.into_iter().collect::<Vec<_>>().join(", ")
            };
            return Err(Error::Usage(format!("{about} has no setting {name}={value}; of {name} it has: {there}")));
        }
    }
    if experiment.cells(plan).is_empty() {
        return Err(Error::Usage(format!("{about} has no setting that is all of what --only says")));
    }
    Ok(())
}

fn device(experiment: &dyn Experiment, wanted: Option<&str>) -> Result<DeviceChoice> {
    let known = experiment.about().devices;
    let name = wanted.or(known.first().copied()).unwrap_or("local");
    if !known.contains(&name) {
        let name_of = experiment.about().name;
        let reason = format!("{name_of} does not run on the device {name:?}; it runs on: {}", known.join(", "));
        return Err(Error::Usage(reason));
    }
    Ok(DeviceChoice::from(name.to_string()))
}

/// The subjects to measure, and a line for each that is not installed.
fn subjects(
    experiment: &dyn Experiment,
    wanted: &[SubjectKind],
    scale: Scale,
) -> Result<(Vec<SubjectKind>, Vec<String>)> {
    let known = experiment.about().subjects;
    if let Some(foreign) = wanted.iter().find(|kind| !known.contains(kind)) {
        let names = known.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        return Err(Error::Usage(format!(
            "{} does not run on {foreign}; it runs on: {names}",
            experiment.about().name
        )));
    }
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for kind in if wanted.is_empty() { experiment.default_subjects() } else { wanted } {
        let is_there = if experiment.runs_subjects(scale) { kind.find().map(drop) } else { Ok(()) };
        match is_there {
            Ok(()) if found.contains(kind) => {}
            Ok(()) => found.push(*kind),
            Err(missing) => skipped.push(format!("Left out: {missing}")),
        }
    }
    if found.is_empty() {
        return Err(Error::Usage(format!("nothing to measure: {}", skipped.join("; "))));
    }
    Ok((found, skipped))
}

/// Whether this process is root's: `/proc/self` belongs to its effective user.
fn is_root() -> bool {
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|found| found.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::registry::find;
    use crate::experiment::testing::plan;

    /// The refusal of a choice of settings and options for an experiment; empty if the choice is possible.
    fn said(experiment: &str, only: &[&str], options: &[&str]) -> String {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_string()).collect::<Vec<_>>();
        let chosen = choices("--only", &texts(only))
            .and_then(|only| Ok((only, choices("--highwater-option", &texts(options))?)))
            .and_then(|(only, highwater_options)| {
                let plan = plan(Scale::Quick, "local", &[SubjectKind::Highwater]);
                check_choices(find(experiment)?, &Plan { only, highwater_options, ..plan })
            });
        chosen.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn choices_that_are_possible_are_taken() {
        assert_eq!(said("peers", &["data=in-memory", "commits=durable"], &["page-store=out-of-place"]), "");
        assert_eq!(said("stall", &[], &[]), "");
    }

    #[test]
    fn choices_that_no_setting_has_are_refused_with_what_there_is() {
        let cases: [(&str, &[&str], &[&str], &str); 6] = [
            ("peers", &["data"], &[], "--only data: it has no =, as in NAME=VALUE"),
            ("peers", &[], &["page-store"], "--highwater-option page-store: it has no ="),
            ("peers", &["data=on-tape"], &[], "no setting data=on-tape; of data it has: 10-x-memory, in-memory"),
            ("peers", &["colour=red"], &[], "of colour it has: nothing of that name"),
            ("peers", &["workload=ycsb-c", "commits=durable"], &[], "no setting that is all of what --only says"),
            ("stall", &["data=in-memory"], &[], "lets neither settings nor options be chosen"),
        ];
        for (experiment, only, options, reason) in cases {
            let said = said(experiment, only, options);
            assert!(said.contains(reason), "{only:?} {options:?}: {said}");
        }
        assert!(!said("peers", &[], &["page-store=on-tape"]).is_empty());
        assert!(!said("peers", &[], &["no-such-option=1"]).is_empty());
    }
}
