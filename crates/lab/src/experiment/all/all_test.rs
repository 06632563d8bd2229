//! Made-up experiments, run one after another.

use super::*;
use crate::experiment::{About, Cell, CellResult, Claim, Figure, Row, Scale, SubjectKind, Verdict, Workspace};
use crate::experiment::{metric, setting};
use std::sync::atomic::{AtomicBool, Ordering};

/// One cell; its claims and failures are parameters.
struct MadeUp {
    about: About,
    fails: AtomicBool,
    verdict: Verdict,
}

fn made_up(name: &'static str, subjects: &'static [SubjectKind]) -> MadeUp {
    let about = About {
        name,
        summary: "sizes",
        source: "nobody",
        subjects,
        devices: &["local"],
        repetitions: [1; 4],
        server_repetitions: None,
        required: &[],
    };
    MadeUp { about, fails: AtomicBool::new(false), verdict: Verdict::Holds }
}

impl Experiment for MadeUp {
    fn about(&self) -> &About {
        &self.about
    }
    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan.cells(&["1"], |_, _| vec![setting([])])
    }
    fn measure(&self, _: &Plan, _: &Cell, _: &mut Workspace<'_>) -> Result<CellResult> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::Data("the disk fell off".into()));
        }
        let mut measured = CellResult::default();
        measured.put(metric::TPS, 1.0);
        Ok(measured)
    }
    fn claims(&self, _: &Plan, _: &[Row]) -> Vec<Claim> {
        let detail = "1".into();
        vec![Claim { text: "one is one".into(), subject: "highwater".into(), verdict: self.verdict, detail }]
    }
    fn figures(&self, _: &[Row]) -> Vec<Figure> {
        Vec::new()
    }
    fn notes(&self, _: &Plan) -> Vec<String> {
        Vec::new()
    }
}

fn request(out: &Path) -> Request {
    Request {
        subjects: vec![SubjectKind::Highwater],
        workloads: Vec::new(),
        clients: Vec::new(),
        only: Vec::new(),
        highwater_options: Vec::new(),
        device: None,
        scale: Scale::Smoke,
        repetitions: None,
        seed: 1,
        work_dir: None,
        traces: None,
        out_dir: out.into(),
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Lines(Vec<String>);

impl Watch for Lines {
    fn experiment(&mut self, number: usize, all: usize, name: &str) {
        self.0.push(format!("{number} of {all}: {name}"));
    }
    fn line(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

const HIGHWATER: &[SubjectKind] = &[SubjectKind::Highwater];

#[test]
fn a_failure_ends_one_experiment_and_is_made_good_by_a_resumed_run() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (made_up("first", HIGHWATER), made_up("second", HIGHWATER));
    let (third, foreign) = (made_up("third", HIGHWATER), made_up("foreign", &[SubjectKind::Mysql]));
    second.fails.store(true, Ordering::Relaxed);
    let all: [&dyn Experiment; 4] = [&first, &foreign, &second, &third];
    let (request, mut lines) = (request(&folder.path().join("out")), Lines::default());
    let overview = run_all(&all, &request, Resume::No, &mut lines).unwrap();
    let states: Vec<State> = overview.experiments.iter().map(|part| part.state).collect();
    assert_eq!(states, [State::Finished, State::LeftOut, State::Failed, State::Finished]);
    assert_eq!(overview.failed(), ["second"]);
    assert!(lines.0.contains(&"2 of 3: second".to_string()), "{:?}", lines.0);
    assert!(
        lines.0.iter().any(|line| line.starts_with("second failed: ") && line.contains("fell off")),
        "{:?}",
        lines.0
    );
    assert!(lines.0.iter().any(|line| line.contains("foreign runs on mysql, not on highwater")), "{:?}", lines.0);
    let page = std::fs::read_to_string(request.out_dir.join("index.html")).unwrap();
    assert!(page.contains("href=\"third/report.html\"") && !page.contains("href=\"second/report.html\""), "{page}");
    assert!(page.contains("3 of 4") || page.contains("2 of 4"), "{page}");

    second.fails.store(false, Ordering::Relaxed);
    let again = run_all(&all, &request, Resume::SameBuild, &mut lines).unwrap();
    assert!(again.failed().is_empty() && !again.has_lost());
    let kept = std::fs::read_to_string(request.out_dir.join("result.json")).unwrap();
    assert_eq!(serde_json::from_str::<Overview>(&kept).unwrap(), again);
}

#[test]
fn the_page_counts_each_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let mut both = [made_up("first", HIGHWATER), made_up("second", HIGHWATER)];
    (both[0].verdict, both[1].verdict) = (Verdict::Undecided, Verdict::Lost);
    let request = request(&folder.path().join("out"));
    let overview = run_all(&[&both[0], &both[1]], &request, Resume::No, &mut Lines::default()).unwrap();
    assert!(overview.has_lost());
    let page = page::html(&overview).unwrap();
    for text in ["claims hold, 1 too small to tell", ">too small to tell<", ">does not hold<", "2 of 2", "0 of 2"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn folders_that_cannot_be_used_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (made_up("first", HIGHWATER), made_up("second", HIGHWATER));
    let all: [&dyn Experiment; 2] = [&first, &second];
    let refused = |request: &Request, resume: Resume, reason: &str| {
        let error = run_all(&all, request, resume, &mut Lines::default()).unwrap_err();
        assert!(matches!(error, Error::Usage(_)) && error.to_string().contains(reason), "{error}");
    };
    let foreign = folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    refused(&request(&foreign), Resume::SameBuild, "holds no run of all");
    let out = folder.path().join("out");
    refused(&Request { subjects: vec![SubjectKind::Mysql], ..request(&out) }, Resume::No, "nothing to measure");
    assert!(!out.exists());
    run_all(&all, &request(&out), Resume::No, &mut Lines::default()).unwrap();
    refused(&request(&out), Resume::No, "--resume");
    refused(&Request { seed: 2, ..request(&out) }, Resume::SameBuild, "its seed is 1, this run's is 2");
}
