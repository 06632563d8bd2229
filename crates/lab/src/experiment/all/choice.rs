//! The part of a request that an experiment can measure.

use crate::experiment::{Experiment, Plan, Request, SubjectKind};

/// The plan, or why the experiment is left out.
pub(super) type Choice = std::result::Result<Plan, String>;

/// The plan for the part of the request that the experiment covers. If its servers cannot be measured here, Highwater
/// is measured alone.
pub(super) fn plan(experiment: &dyn Experiment, request: &Request) -> Choice {
    let about = experiment.about();
    let subjects: Vec<SubjectKind> =
        request.subjects.iter().copied().filter(|kind| about.subjects.contains(kind)).collect();
    if subjects.is_empty() && !request.subjects.is_empty() {
        let names = |kinds: &[SubjectKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        return Err(format!("{} runs on {}, not on {}", about.name, names(about.subjects), names(&request.subjects)));
    }
    let own = Request { subjects, out_dir: request.out_dir.join(about.name), ..request.clone() };
    own.plan(experiment).or_else(|error| {
        let reason = error.to_string();
        let alone = Request { subjects: vec![SubjectKind::Highwater], ..own.clone() };
        let has_highwater = own.subjects.contains(&SubjectKind::Highwater)
            || own.subjects.is_empty() && about.subjects.contains(&SubjectKind::Highwater);
        let plan = if has_highwater { alone.plan(experiment).ok() } else { None };
        let plan = plan.map(|plan| Plan { skipped: vec![format!("Left out, all servers: {reason}")], ..plan });
        plan.ok_or(reason)
    })
}
