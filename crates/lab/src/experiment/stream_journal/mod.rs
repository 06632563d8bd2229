//! `stream-journal`: write amplification of ordered journaling with doublewrite, of data journaling, and of data journaling whose journal has a
//! stream of its own, with a small and a large journal.
//!
//! Source: Choi, Kang, Kim, Seo, Lee, Eom, "Multi-streaming data journaling" (see the document's section 5): Samsung PM953, ext4, tpcc-mysql.
//!
//! Choices
//! 1. Up to `quick`, recorded traces of such runs are replayed ([`replay`]); from `standard` on a real MySQL runs on a mounted device ([`live`]).
//! 2. Ordered journaling was recorded with the small journal only. Where it is missing with the large one, the small one's figure stands for it, as
//!    one figure does in the document.
//! 3. Replays are repeated with more and with less spare flash than the device has, because what the order of the modes depends on is worth knowing.

mod live;
mod replay;

use super::journaled::Mode;
use super::{Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, Table, Workspace};
use super::{SubjectKind, setting};
use highwater_bench::Result;
use std::collections::BTreeMap;

const MODES: [Mode; 3] = [Mode::OrderedDoublewrite, Mode::Data, Mode::DataStreams];
const JOURNALS: [&str; 2] = ["small", "large"];
/// The device's own spare flash.
const OWN_SPARE: &str = "as the device";
/// Other spare flash, percent.
const OTHER_SPARES: [&str; 2] = ["7", "28"];
/// A difference of new orders per minute below this share is none.
const NOPM_TOLERANCE: f64 = 0.03;

/// The experiment.
#[derive(Debug)]
pub struct StreamJournal;

/// Whether a real server runs.
fn is_live(scale: Scale) -> bool {
    scale >= Scale::Standard
}

impl Experiment for StreamJournal {
    fn name(&self) -> &'static str {
        "stream-journal"
    }

    fn about(&self) -> &'static str {
        "Write amplification of ordered journaling with doublewrite, data journaling, and data journaling in a stream of its own"
    }

    fn source(&self) -> &'static str {
        "Choi, Kang, Kim, Seo, Lee, Eom: data journaling on a multi-stream SSD"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &[SubjectKind::Mysql]
    }

    fn devices(&self) -> &'static [&'static str] {
        &["samsung-pm953-960gb", "simple-2gb", "datacenter-nvme"]
    }

    fn repetitions(&self, _: Scale, _: &DeviceChoice) -> u32 {
        1
    }

    fn runs_subjects(&self, scale: Scale) -> bool {
        is_live(scale)
    }

    fn mounts(&self, plan: &Plan) -> bool {
        is_live(plan.scale)
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let spares = match plan.scale {
            Scale::Quick => [OWN_SPARE].iter().chain(&OTHER_SPARES).copied().collect(),
            _ => vec![OWN_SPARE],
        };
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for spare in &spares {
                for journal in JOURNALS {
                    for mode in MODES {
                        let recorded = mode.journals_data() || journal == "small";
                        if is_live(plan.scale) || recorded {
                            cells.push(cell(plan, mode, journal, spare, repetition));
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
        if is_live(plan.scale) { live::measure(plan, cell, workspace) } else { replay::measure(plan, cell, workspace) }
    }

    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        let waf = match (cell.get("mode"), cell.get("journal")) {
            ("OJ+DWB", _) => 2.681,
            ("DJ", "small") => 1.827,
            ("DJ", _) => 1.789,
            ("MS-DJ", "small") => 1.662,
            ("MS-DJ", _) => 1.525,
            _ => return BTreeMap::new(),
        };
        let own = cell.get("spare") == OWN_SPARE;
        if own { BTreeMap::from([("write_amplification".into(), waf)]) } else { BTreeMap::new() }
    }

    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let found = Found { rows, spare: OWN_SPARE };
        let mut claims: Vec<Claim> = JOURNALS.iter().map(|journal| found.waf_in_order(journal)).collect();
        claims.extend(JOURNALS.iter().map(|journal| found.always_lowest(journal)));
        claims.push(found.large_is_better());
        claims.push(found.journal_is_hot());
        if is_live(plan.scale) {
            claims.extend(JOURNALS.iter().map(|journal| found.nopm_in_order(journal)));
        }
        for spare in OTHER_SPARES.iter().filter(|spare| rows.iter().any(|row| row.get("spare") == **spare)) {
            let found = Found { rows, spare };
            claims.extend(JOURNALS.iter().map(|journal| found.waf_in_order(journal)));
        }
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let mut figures = vec![Figure::Table(waf_table(rows))];
        figures.extend(JOURNALS.iter().map(|journal| Figure::Chart(waf_over_time(rows, journal))));
        figures.extend(rows.iter().filter(|row| row.get("spare") == OWN_SPARE).map(|row| Figure::Chart(heat(row))));
        if rows.iter().any(|row| row.measured.contains_key("nopm")) {
            figures.push(Figure::Table(nopm_table(rows)));
        }
        figures
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let mut notes = if is_live(plan.scale) { live::notes(plan) } else { replay::notes() };
        notes.push(format!(
            "The document: journals of 128 MB and 5 GB to a database of 150 GB (1 : 1,170 and 1 : 30) on a PM953. jbd2 takes no journal below 4 MiB, so \
             the small journal is larger here in proportion. Device: {}.",
            match &plan.device {
                DeviceChoice::Local => "local",
                DeviceChoice::Preset(name) => name,
            }
        ));
        notes.push(
            "Why OJ+DWB and DJ may lie close together here: both write every page twice, once into a small ring that is overwritten all the time (the \
             doublewrite area of 2 MiB, or the journal) and once to its place, in one stream. What the device collects is nearly the same mixture. DJ gains \
             where pages change again before the journal is checkpointed, so more with a larger journal; MS-DJ gains by taking the ring out of the mixture."
                .into(),
        );
        notes.push(
            "Ordered journaling has one figure in the document; where it was not measured with the large journal, the small one's stands for it.".into(),
        );
        notes
    }
}

fn cell(plan: &Plan, mode: Mode, journal: &str, spare: &str, repetition: u32) -> Cell {
    let setting =
        setting([("mode", mode.name().to_string()), ("journal", journal.to_string()), ("spare", spare.to_string())]);
    Cell::new(SubjectKind::Mysql, plan.device.name(), setting, repetition)
}

/// The rows at one share of spare flash.
struct Found<'r> {
    rows: &'r [Row],
    spare: &'r str,
}

impl Found<'_> {
    fn row(&self, mode: Mode, journal: &str) -> Option<&Row> {
        let fits = |journal: &str| {
            self.rows.iter().find(|row| {
                row.get("mode") == mode.name() && row.get("journal") == journal && row.get("spare") == self.spare
            })
        };
        // Choice 2.
        fits(journal).or_else(|| if mode.journals_data() { None } else { fits("small") })
    }

    /// A value of the three modes; not a number where there is no row, so that no comparison holds.
    fn three(&self, journal: &str, name: &str) -> [f64; 3] {
        MODES.map(|mode| self.row(mode, journal).map_or(f64::NAN, |row| row.value(name)))
    }

    fn claim(&self, text: String, holds: bool, detail: String) -> Claim {
        let spare = if self.spare == OWN_SPARE { String::new() } else { format!(" ({} % spare flash)", self.spare) };
        let subject = SubjectKind::Mysql.to_string();
        Claim { text: format!("{text}{spare}"), subject, holds, detail }
    }

    fn waf_in_order(&self, journal: &str) -> Claim {
        let [ordered, data, streams] = self.three(journal, "write_amplification");
        let text = format!("Write amplification, {journal} journal: OJ+DWB > DJ > MS-DJ");
        let detail = format!("{ordered:.3}, {data:.3}, {streams:.3}");
        self.claim(text, ordered > data && data > streams, detail)
    }

    /// At every sample of MS-DJ after the first third (before it there is little to collect).
    fn always_lowest(&self, journal: &str) -> Claim {
        let series = MODES.map(|mode| self.row(mode, journal).and_then(|row| row.series.get("waf_over_time")));
        let [Some(ordered), Some(data), Some(streams)] = series else {
            return self.claim(lowest_text(journal), false, "not measured".into());
        };
        let late = &streams[streams.len() / 3..];
        let above = |line: &[[f64; 2]], [x, waf]: &[f64; 2]| at(line, *x).is_none_or(|other| other > *waf);
        let lowest = late.iter().filter(|point| above(ordered, point) && above(data, point)).count();
        let detail = format!("at {lowest} of {} points after the first third", late.len());
        self.claim(lowest_text(journal), lowest == late.len() && lowest > 0, detail)
    }

    fn large_is_better(&self) -> Claim {
        let (small, large) = (self.three("small", "write_amplification"), self.three("large", "write_amplification"));
        let holds = large[1] < small[1] && large[2] < small[2];
        let detail = format!("DJ {:.3} and {:.3}, MS-DJ {:.3} and {:.3}", small[1], large[1], small[2], large[2]);
        self.claim("A larger journal lowers the write amplification of DJ and of MS-DJ".into(), holds, detail)
    }

    fn journal_is_hot(&self) -> Claim {
        let of = |name: &str| self.row(Mode::Data, "small").map_or(f64::NAN, |row| row.value(name));
        let (journal, others) = (of("journal_writes_per_block"), of("other_writes_per_block"));
        let text =
            "A block of the journal is written more often than another block that is written (DJ, small journal)";
        self.claim(text.into(), journal > others, format!("{journal:.1} and {others:.1} times (document: about twice)"))
    }

    fn nopm_in_order(&self, journal: &str) -> Claim {
        let [ordered, data, streams] = self.three(journal, "nopm");
        let at_least = |a: f64, b: f64| a >= b * (1.0 - NOPM_TOLERANCE);
        let holds = at_least(streams, data) && at_least(data, ordered) && streams > ordered;
        let text = format!("New orders per minute, {journal} journal: MS-DJ ≥ DJ ≥ OJ+DWB");
        let relative = |a: f64, b: f64| (a / b - 1.0) * 100.0;
        let detail = format!(
            "{streams:.0}, {data:.0}, {ordered:.0} (MS-DJ over DJ {:+.1} %, over OJ+DWB {:+.1} %)",
            relative(streams, data),
            relative(streams, ordered)
        );
        self.claim(text, holds, detail)
    }
}

fn lowest_text(journal: &str) -> String {
    format!("Write amplification over time, {journal} journal: MS-DJ always lowest")
}

/// The value of a line at `x`: that of the last point not after it; none before the first.
fn at(line: &[[f64; 2]], x: f64) -> Option<f64> {
    line.iter().take_while(|point| point[0] <= x).last().map(|point| point[1])
}

fn of_journal<'r>(rows: &'r [Row], journal: &'r str) -> impl Iterator<Item = &'r Row> {
    rows.iter().filter(move |row| row.get("journal") == journal && row.get("spare") == OWN_SPARE)
}

/// The document's table 1 beside ours.
fn waf_table(rows: &[Row]) -> Table {
    let number = |value: Option<&f64>| value.map_or("–".to_string(), |v| format!("{v:.3}"));
    let percent = |row: &Row, name: &str| row.measured.get(name).map_or("–".into(), |v| format!("{:.1}", v * 100.0));
    let line = |row: &Row| {
        vec![
            row.get("mode").to_string(),
            row.get("journal").to_string(),
            row.get("spare").to_string(),
            number(row.measured.get("write_amplification")),
            number(row.paper.get("write_amplification")),
            percent(row, "journal_share"),
            row.measured.get("host_written_bytes").map_or("–".into(), |v| format!("{:.1}", v / f64::from(1 << 30))),
        ]
    };
    let head = ["Mode", "Journal", "Spare flash, %", "WAF", "WAF in the document", "Journal, % of writes", "Host GiB"];
    Table {
        title: "Write amplification".into(),
        caption: "The document's table 1 beside what was measured here.".into(),
        texts: 3,
        head: head.map(String::from).to_vec(),
        rows: rows.iter().map(line).collect(),
    }
}

fn nopm_table(rows: &[Row]) -> Table {
    let reference = |row: &Row| {
        let same =
            |r: &&Row| r.get("journal") == row.get("journal") && r.get("mode") == Mode::OrderedDoublewrite.name();
        rows.iter().find(same).map_or(f64::NAN, |r| r.value("nopm"))
    };
    let line = |row: &Row| {
        let relative = (row.value("nopm") / reference(row) - 1.0) * 100.0;
        let nopm = format!("{:.0}", row.value("nopm"));
        vec![row.get("mode").to_string(), row.get("journal").to_string(), nopm, format!("{relative:+.1}")]
    };
    Table {
        title: "New orders per minute".into(),
        caption:
            "The document: MS-DJ 7 % over DJ with the small journal, 2 % with the large one, 30 % and more over OJ+DWB."
                .into(),
        texts: 2,
        head: ["Mode", "Journal", "New orders per minute", "Over OJ+DWB, %"].map(String::from).to_vec(),
        rows: rows.iter().map(line).collect(),
    }
}

fn waf_over_time(rows: &[Row], journal: &str) -> Chart {
    let line = |row: &Row| Line {
        name: row.get("mode").to_string(),
        points: row.series.get("waf_over_time").cloned().unwrap_or_default(),
        paper: false,
    };
    Chart {
        title: format!("Write amplification over time, {journal} journal"),
        caption: "The document's figures 3 and 4: MS-DJ always lowest.".into(),
        x_label: "host writes, GiB".into(),
        y_label: "media writes : host writes, so far".into(),
        y_from: Some(1.0),
        lines: of_journal(rows, journal).map(line).collect(),
        ..Chart::default()
    }
}

fn heat(row: &Row) -> Chart {
    let points = row.series.get("writes_by_place").cloned().unwrap_or_default();
    Chart {
        title: format!("{}, {} journal: writes by place", row.get("mode"), row.get("journal")),
        caption: "The document's figure 1: the journal's blocks are written more often than any others.".into(),
        x_label: "place on the device, GiB".into(),
        y_label: "writes of a block, mean over a stretch".into(),
        lines: vec![Line { name: "writes of a block".into(), points, paper: false }],
        ..Chart::default()
    }
}

/// Stretches of equal size as points (GiB, writes of a block).
fn places(heat: &[u64], capacity_bytes: u64) -> Vec<[f64; 2]> {
    let gib = capacity_bytes as f64 / f64::from(1 << 30);
    let blocks = capacity_bytes as f64 / 4096.0 / heat.len().max(1) as f64;
    let point = |(n, writes): (usize, &u64)| [gib * n as f64 / heat.len() as f64, *writes as f64 / blocks];
    heat.iter().enumerate().map(point).collect()
}

#[cfg(test)]
#[path = "stream_journal_test.rs"]
mod tests;
