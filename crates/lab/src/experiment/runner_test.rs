//! A made-up experiment through the runner.

use super::*;
use crate::experiment::{Claim, DeviceChoice, Figure, Quiet, Row, Scale, SubjectKind, read_outcome, setting};
use parking_lot::Mutex;

/// Two sizes; each measurement says how many there were before it. Fails where it is told to.
#[derive(Default)]
struct MadeUp {
    measured: Mutex<Vec<String>>,
    fail_at: Option<&'static str>,
    renamed: bool,
}

impl Experiment for MadeUp {
    fn name(&self) -> &'static str {
        if self.renamed { "renamed" } else { "made-up" }
    }
    fn about(&self) -> &'static str {
        "sizes"
    }
    fn source(&self) -> &'static str {
        "nobody"
    }
    fn subjects(&self) -> &'static [SubjectKind] {
        &[SubjectKind::Highwater]
    }
    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let sizes = ["1", "2"].map(|size| setting([("size", size.to_string())]));
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            cells.extend(sizes.iter().map(|s| Cell::new(SubjectKind::Highwater, "local", s.clone(), repetition)));
        }
        Ok(cells)
    }
    fn measure(&self, plan: &Plan, cell: &Cell, lab: &mut Bench<'_>) -> Result<Measured> {
        assert_eq!(lab.work_dir(), plan.work_dir);
        std::fs::write(plan.work_dir.join("data"), "bytes").unwrap();
        if self.fail_at.is_some_and(|id| cell.id.contains(id)) {
            return Err(Error::Data("the disk fell off".into()));
        }
        self.measured.lock().push(cell.id.clone());
        let mut measured = Measured::default();
        let size: f64 = cell.get("size").parse().unwrap();
        measured.put("tps", size * 100.0 + f64::from(cell.repetition));
        Ok(measured)
    }
    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        if cell.get("size") == "1" { BTreeMap::from([("tps".into(), 7.0)]) } else { BTreeMap::new() }
    }
    fn claims(&self, _plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let holds = rows[0].value("tps") < rows[1].value("tps");
        vec![Claim { text: "larger is faster".into(), subject: "highwater".into(), holds, detail: String::new() }]
    }
    fn figures(&self, _rows: &[Row]) -> Vec<Figure> {
        Vec::new()
    }
    fn notes(&self, _plan: &Plan) -> Vec<String> {
        vec!["a note".into()]
    }
    fn explanations(&self, rows: &[Row]) -> Vec<String> {
        vec![format!("of {} rows", rows.len())]
    }
}

fn plan(folder: &Path) -> Plan {
    Plan {
        scale: Scale::Smoke,
        subjects: vec![SubjectKind::Highwater],
        device: DeviceChoice::Local,
        repetitions: 3,
        server_repetitions: 3,
        seed: 1,
        work_dir: folder.join("work"),
        out_dir: folder.join("out"),
        skipped: vec!["mysql: not installed".into()],
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn rows_are_medians_and_everything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let outcome = run(&MadeUp::default(), &plan, false, &mut Quiet).unwrap();
    let row = &outcome.rows[1];
    assert_eq!((row.value("tps"), row.spread["tps"], row.repetitions), (201.0, [200.0, 202.0], 3));
    assert_eq!((outcome.rows[0].paper["tps"], row.paper.len()), (7.0, 0));
    assert!(outcome.all_hold());
    assert_eq!(outcome.notes, ["a note", "of 2 rows", "mysql: not installed"]);
    assert_eq!(read_outcome(&plan.out_dir.join("result.json")).unwrap(), outcome);
    let csv = std::fs::read_to_string(plan.out_dir.join("rows.csv")).unwrap();
    assert_eq!(csv.lines().next().unwrap(), "subject,device,size,repetitions,tps,tps least,tps greatest,tps paper");
    assert_eq!(csv.lines().nth(1).unwrap(), "highwater,local,1,3,101,100,102,7");
    assert!(plan.out_dir.join("report.html").exists());
    assert!(is_empty(&plan.work_dir));
}

#[test]
fn a_failed_run_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let failing = MadeUp { fail_at: Some("size=1-2"), ..MadeUp::default() };
    let error = run(&failing, &plan, false, &mut Quiet).unwrap_err().to_string();
    assert!(error.contains("size=1-2") && error.contains("fell off"), "{error}");
    assert!(is_empty(&plan.work_dir));
    let second = MadeUp::default();
    let outcome = run(&second, &plan, true, &mut Quiet).unwrap();
    assert_eq!(failing.measured.lock().len(), 2);
    assert_eq!(second.measured.lock().len(), 4);
    assert_eq!(outcome.rows[0].repetitions, 3);
    // A third one has nothing left to do.
    let third = MadeUp::default();
    run(&third, &plan, true, &mut Quiet).unwrap();
    assert!(third.measured.lock().is_empty());
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    run(&MadeUp::default(), &plan, false, &mut Quiet).unwrap();
    let refused = |experiment: &MadeUp, plan: &Plan, resume: bool, reason: &str| {
        let error = run(experiment, plan, resume, &mut Quiet).unwrap_err();
        assert!(matches!(error, Error::Usage(_)) && error.to_string().contains(reason), "{error}");
    };
    let same = MadeUp::default();
    refused(&same, &plan, false, "--resume");
    refused(&MadeUp { renamed: true, ..MadeUp::default() }, &plan, true, "its experiment is made-up");
    refused(&same, &Plan { seed: 2, ..plan.clone() }, true, "its seed is 1, this run's is 2");
    refused(&same, &Plan { scale: Scale::Full, ..plan.clone() }, true, "its scale is smoke");
    refused(&same, &Plan { repetitions: 9, ..plan.clone() }, true, "its repetitions is 3");
    let foreign = folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    refused(&same, &Plan { out_dir: foreign.clone(), ..plan.clone() }, true, "is not empty");
    assert!(!foreign.join("plan.json").exists());
}

#[test]
fn a_damaged_measurement_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    run(&MadeUp::default(), &plan, false, &mut Quiet).unwrap();
    let cell = plan.out_dir.join("cells/highwater-local-size=1-1.json");
    std::fs::write(&cell, "{").unwrap();
    let error = run(&MadeUp::default(), &plan, true, &mut Quiet).unwrap_err().to_string();
    assert!(error.contains("size=1-1.json"), "{error}");
}

#[test]
fn leftovers_of_killed_runs_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    // No process has this number: the kernel's limit is 4,194,304.
    let leftover = plan.work_dir.join(format!("{WORK_PREFIX}99999999"));
    let other = plan.work_dir.join("mine");
    std::fs::create_dir_all(&leftover).unwrap();
    std::fs::create_dir_all(&other).unwrap();
    run(&MadeUp::default(), &plan, false, &mut Quiet).unwrap();
    assert!(!leftover.exists() && other.exists());
}
