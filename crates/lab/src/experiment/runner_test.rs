//! A made-up experiment through the runner.

use super::*;
use crate::experiment::{
    About, Axis, Claim, DeviceChoice, Figure, Row, Scale, SubjectKind, figures_of, has_cells, metric, read_outcome,
    setting,
};
use crate::measure::Quiet;
use parking_lot::Mutex;

/// Two sizes; each measurement says how many there were before it. Fails at the cell that `fail_at` names.
#[derive(Default)]
struct MadeUp {
    measured: Mutex<Vec<String>>,
    fail_at: Option<&'static str>,
    renamed: bool,
    programs: Vec<PathBuf>,
}

const SIZE: Axis = Axis::new("size");

const MADE_UP: About = About {
    name: "made-up",
    summary: "sizes",
    source: "nobody",
    subjects: &[SubjectKind::Highwater],
    devices: &["local"],
    repetitions: [1, 1, 3, 3],
    server_repetitions: None,
    required: &[metric::TPS],
};
const RENAMED: About = About { name: "renamed", ..MADE_UP };

impl Experiment for MadeUp {
    fn about(&self) -> &About {
        if self.renamed { &RENAMED } else { &MADE_UP }
    }
    fn programs(&self) -> Vec<PathBuf> {
        self.programs.clone()
    }
    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan.cells(&["1", "2"], |size, _| vec![setting([(SIZE, size)])])
    }
    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        assert_eq!(workspace.work_dir(), plan.work_dir);
        std::fs::write(plan.work_dir.join("data"), "bytes").unwrap();
        if self.fail_at.is_some_and(|id| cell.id.contains(id)) {
            return Err(Error::Data("the disk fell off".into()));
        }
        self.measured.lock().push(cell.id.clone());
        let mut measured = CellResult::default();
        let size: f64 = cell.get(SIZE).parse().unwrap();
        measured.put(metric::TPS, size * 100.0 + f64::from(cell.repetition));
        Ok(measured)
    }
    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        if cell.get(SIZE) == "1" { figures_of(&[(metric::TPS, 7.0)]) } else { BTreeMap::new() }
    }
    fn claims(&self, _plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let holds = rows[0].value(metric::TPS) < rows[1].value(metric::TPS);
        vec![Claim {
            text: "larger is faster".into(),
            subject: "highwater".into(),
            verdict: holds.into(),
            detail: String::new(),
        }]
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
        workloads: Vec::new(),
        clients: Vec::new(),
        only: Vec::new(),
        highwater_options: Vec::new(),
        device: DeviceChoice::Local,
        repetitions: 3,
        server_repetitions: 3,
        seed: 1,
        work_dir: folder.join("work"),
        out_dir: folder.join("out"),
        traces: None,
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
    let outcome = run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    let row = &outcome.rows[1];
    assert_eq!((row.value(metric::TPS), row.spread(metric::TPS), row.repetitions), (201.0, Some([200.0, 202.0]), 3));
    assert_eq!((outcome.rows[0].paper(metric::TPS), row.paper.len()), (Some(7.0), 0));
    assert!(!outcome.has_lost());
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
    let error = run(&failing, &plan, Resume::No, &mut Quiet).unwrap_err().to_string();
    assert!(error.contains("size=1-2") && error.contains("fell off"), "{error}");
    assert!(is_empty(&plan.work_dir));
    let second = MadeUp::default();
    let outcome = run(&second, &plan, Resume::SameBuild, &mut Quiet).unwrap();
    assert_eq!(failing.measured.lock().len(), 2);
    assert_eq!(second.measured.lock().len(), 4);
    assert_eq!(outcome.rows[0].repetitions, 3);
    // A third one has nothing left to do.
    let third = MadeUp::default();
    run(&third, &plan, Resume::SameBuild, &mut Quiet).unwrap();
    assert!(third.measured.lock().is_empty());
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    let refused = |experiment: &MadeUp, plan: &Plan, resume: Resume, reason: &str| {
        let error = run(experiment, plan, resume, &mut Quiet).unwrap_err();
        assert!(matches!(error, Error::Usage(_)) && error.to_string().contains(reason), "{error}");
    };
    let same = MadeUp::default();
    refused(&same, &plan, Resume::No, "--resume");
    refused(&MadeUp { renamed: true, ..MadeUp::default() }, &plan, Resume::SameBuild, "its experiment is made-up");
    refused(&same, &Plan { seed: 2, ..plan.clone() }, Resume::SameBuild, "its seed is 1, this run's is 2");
    refused(&same, &Plan { scale: Scale::Full, ..plan.clone() }, Resume::SameBuild, "its scale is smoke");
    refused(&same, &Plan { repetitions: 9, ..plan.clone() }, Resume::SameBuild, "its repetitions is 3");
    let foreign = folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    refused(&same, &Plan { out_dir: foreign.clone(), ..plan.clone() }, Resume::SameBuild, "is not empty");
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1, "nothing was made in it");
}

#[test]
fn folders_that_cannot_be_made_are_wrong_use_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let file = folder.path().join("afile");
    std::fs::write(&file, "x").unwrap();
    for bad in [
        Plan { out_dir: file.clone(), ..plan.clone() },
        Plan { out_dir: "/proc/x1".into(), ..plan.clone() },
        Plan { work_dir: file.clone(), ..plan.clone() },
    ] {
        let error = run(&MadeUp::default(), &bad, Resume::No, &mut Quiet).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{error}");
        assert!(!has_cells(&bad.out_dir) && !plan.out_dir.join("plan.json").exists());
    }
    // The corrected command needs no --resume.
    run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    assert!(has_cells(&plan.out_dir));
}

#[test]
fn another_build_resumes_only_with_any_build() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    let path = plan.out_dir.join("cells/highwater-local-size=1-1.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let ours = text.lines().find(|line| line.contains("\"build\"")).unwrap();
    assert!(ours.contains(env!("CARGO_PKG_VERSION")) && !ours.contains("unknown"), "{ours}");
    std::fs::write(&path, text.replace(ours, "  \"build\": \"0.0.1-beef\"")).unwrap();
    let refused = || run(&MadeUp::default(), &plan, Resume::SameBuild, &mut Quiet).unwrap_err().to_string();
    assert!(refused().contains("its build is 0.0.1-beef") && refused().contains("--any-build"), "{}", refused());
    let outcome = run(&MadeUp::default(), &plan, Resume::AnyBuild, &mut Quiet).unwrap();
    assert!(outcome.config["builds"].starts_with("0.0.1-beef,"), "{:?}", outcome.config);
    assert!(outcome.notes.iter().any(|note| note.contains("2 builds")), "{:?}", outcome.notes);
    assert!(refused().contains("its build is 0.0.1-beef"), "mixed once is mixed for good: {}", refused());
}

#[test]
fn another_program_that_measures_is_another_build() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, program) = (plan(folder.path()), folder.path().join("program"));
    let again =
        |resume| run(&MadeUp { programs: vec![program.clone()], ..MadeUp::default() }, &plan, resume, &mut Quiet);
    std::fs::write(&program, "first").unwrap();
    again(Resume::No).unwrap();
    again(Resume::SameBuild).unwrap();
    std::fs::write(&program, "second").unwrap();
    let error = again(Resume::SameBuild).unwrap_err().to_string();
    assert!(error.contains("its build is"), "{error}");
    again(Resume::AnyBuild).unwrap();
}

#[test]
fn a_folder_of_old_is_resumed_only_with_any_build() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    let of_old = |path: &Path, name: &str| {
        let mut json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        json.as_object_mut().unwrap().remove(name).expect("it is there now");
        std::fs::write(path, json.to_string()).unwrap();
    };
    of_old(&plan.out_dir.join("plan.json"), "server_repetitions");
    of_old(&plan.out_dir.join("cells/highwater-local-size=1-1.json"), "build");
    let error = run(&MadeUp::default(), &plan, Resume::SameBuild, &mut Quiet).unwrap_err().to_string();
    assert!(error.contains("its build is unknown"), "{error}");
    let outcome = run(&MadeUp::default(), &plan, Resume::AnyBuild, &mut Quiet).unwrap();
    assert!(outcome.notes.iter().any(|note| note.contains("unknown")), "{:?}", outcome.notes);
}

/// Keeps the lines it gets.
#[derive(Default)]
struct Lines(Vec<String>);

impl Watch for Lines {
    fn line(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

#[test]
fn a_damaged_measurement_is_named_and_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    let path = plan.out_dir.join("cells/highwater-local-size=1-1.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let without_tps = whole.replace("\"tps\"", "\"other\"");
    let empty = {
        let mut json: serde_json::Value = serde_json::from_str(&whole).unwrap();
        json["measured"]["values"] = serde_json::json!({});
        json.to_string()
    };
    for (text, reason) in [("{", "cannot be read"), (&without_tps, "has no tps"), (&empty, "has no values")] {
        std::fs::write(&path, text).unwrap();
        let (experiment, mut lines) = (MadeUp::default(), Lines::default());
        run(&experiment, &plan, Resume::SameBuild, &mut lines).unwrap();
        assert_eq!(*experiment.measured.lock(), ["highwater-local-size=1-1"]);
        assert!(lines.0[0].contains("size=1-1.json") && lines.0[0].contains(reason), "{:?}", lines.0);
    }
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
    run(&MadeUp::default(), &plan, Resume::No, &mut Quiet).unwrap();
    assert!(!leftover.exists() && other.exists());
}
