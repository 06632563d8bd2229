//! Invented rows and plans for the tests of claims, which depend on rows only.

use super::metric::Metric;
use super::{Claim, DeviceChoice, Experiment, Plan, Row, Scale, Setting, SubjectKind, Verdict};

/// A plan of one repetition.
pub(super) fn plan(scale: Scale, device: &str, subjects: &[SubjectKind]) -> Plan {
    Plan {
        scale,
        subjects: subjects.to_vec(),
        workloads: Vec::new(),
        clients: Vec::new(),
        only: Vec::new(),
        highwater_options: Vec::new(),
        device: DeviceChoice::from(device.to_string()),
        repetitions: 1,
        server_repetitions: 1,
        seed: 1,
        work_dir: "work".into(),
        out_dir: "out".into(),
        traces: None,
        skipped: Vec::new(),
    }
}

/// A row of one repetition with these values.
pub(super) fn row(subject: &str, setting: Setting, values: &[(Metric, f64)]) -> Row {
    Row {
        subject: subject.into(),
        setting,
        measured: values.iter().map(|(metric, value)| (metric.name().to_string(), *value)).collect(),
        repetitions: 1,
        ..Row::default()
    }
}

/// Whether each claim of the rows holds, at the quick scale on this machine's disk.
pub(super) fn verdicts(experiment: &dyn Experiment, rows: &[Row]) -> Vec<bool> {
    let plan = plan(Scale::Quick, "local", &[SubjectKind::Highwater]);
    holding(&experiment.claims(&plan, rows))
}

/// Whether each of the claims holds.
pub(super) fn holding(claims: &[Claim]) -> Vec<bool> {
    claims.iter().map(|claim| claim.verdict == Verdict::Holds).collect()
}
