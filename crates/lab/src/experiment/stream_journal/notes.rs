//! Notes: the parts of the document's setup that are kept, and the differences.

use super::plan::is_live;
use super::{live, own, replay};
use crate::experiment::{Plan, SubjectKind};

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let has = |kind| plan.subjects.contains(&kind);
    let mut notes = if has(SubjectKind::Mysql) { of_server(plan) } else { Vec::new() };
    if has(SubjectKind::Highwater) {
        notes.extend(own::notes(plan));
    }
    notes
}

fn of_server(plan: &Plan) -> Vec<String> {
    let mut notes = if is_live(plan.scale) { live::notes(plan) } else { replay::notes(plan) };
    notes.push(format!(
        "The document: journals of 128 MB and 5 GB to a database of 150 GB (1 : 1,170 and 1 : 30) on a PM953. jbd2 \
         takes no journal below 4 MiB, so the small journal is larger here in proportion. Device: {}.",
        plan.device.name()
    ));
    notes.push(
        "Why OJ+DWB and DJ may lie close together here: both write every page twice, once into a small ring that is \
         overwritten all the time (the doublewrite area of 2 MiB, or the journal) and once to its place, in one \
         stream. So garbage collection meets nearly the same mixture of data. DJ gains where pages change again before \
         the \
         journal is checkpointed, so more with a larger journal; MS-DJ gains by taking the ring out of the mixture."
            .into(),
    );
    notes.push(
        "Ordered journaling has one figure in the document; where it was not measured with the large journal, the \
         small one's stands for it."
            .into(),
    );
    notes
}
