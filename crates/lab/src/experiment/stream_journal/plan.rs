//! Modes, journals and spare flash, and the document's figures.

use super::own;
use crate::experiment::journaled::Mode;
use crate::experiment::metric::{self, Axis};
use crate::experiment::{Cell, Plan, Scale, SubjectKind, figures_of, setting};
use std::collections::BTreeMap;

pub(super) const MODE: Axis = Axis::new("mode");
pub(super) const JOURNAL: Axis = Axis::new("journal");
pub(super) const SPARE: Axis = Axis::new("spare");

pub(super) const MODES: [Mode; 3] = [Mode::OrderedDoublewrite, Mode::Data, Mode::DataStreams];
pub(super) const SMALL: &str = "small";
pub(super) const LARGE: &str = "large";
pub(super) const JOURNALS: [&str; 2] = [SMALL, LARGE];
/// The device's own spare flash.
pub(super) const OWN_SPARE: &str = "as the device";
/// Other spare flash, percent.
pub(super) const OTHER_SPARES: [&str; 2] = ["7", "28"];

/// The document's write amplification of each mode, with the small and with the large journal.
const PAPER: [[f64; 2]; 3] = [[2.681, 2.681], [1.827, 1.789], [1.662, 1.525]];

/// Whether a real server runs.
pub(super) fn is_live(scale: Scale) -> bool {
    scale >= Scale::Standard
}

pub(super) fn cells(plan: &Plan) -> Vec<Cell> {
    let spares: &[&str] = match plan.scale {
        Scale::Quick => &[OWN_SPARE, OTHER_SPARES[0], OTHER_SPARES[1]],
        _ => &[OWN_SPARE],
    };
    plan.cells(spares, |spare, subject| {
        if subject == SubjectKind::Highwater {
            return if spare == OWN_SPARE { own::settings() } else { Vec::new() };
        }
        let all = JOURNALS.iter().flat_map(|journal| MODES.map(|mode| (*journal, mode)));
        let is_there =
            |(journal, mode): &(&str, Mode)| is_live(plan.scale) || mode.journals_data() || *journal == SMALL;
        let setting =
            |(journal, mode): (&str, Mode)| setting([(MODE, mode.name()), (JOURNAL, journal), (SPARE, spare)]);
        all.filter(is_there).map(setting).collect()
    })
}

pub(super) fn paper(cell: &Cell) -> BTreeMap<String, f64> {
    let mode = MODES.iter().position(|mode| mode.name() == cell.get(MODE));
    let Some(mode) = mode.filter(|_| cell.get(SPARE) == OWN_SPARE) else { return BTreeMap::new() };
    let journal = usize::from(cell.get(JOURNAL) != SMALL);
    figures_of(&[(metric::WRITE_AMPLIFICATION, PAPER[mode][journal])])
}

/// Stretches of equal size as points (GiB, writes of a block).
pub(super) fn places(heat: &[u64], capacity_bytes: u64) -> Vec<[f64; 2]> {
    let gib = capacity_bytes as f64 / f64::from(1 << 30);
    let blocks = capacity_bytes as f64 / 4096.0 / heat.len().max(1) as f64;
    let point = |(n, writes): (usize, &u64)| [gib * n as f64 / heat.len() as f64, *writes as f64 / blocks];
    heat.iter().enumerate().map(point).collect()
}
