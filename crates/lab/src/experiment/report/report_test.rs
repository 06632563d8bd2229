//! The page of a made-up outcome.

use super::*;
use crate::experiment::{Claim, Row, Scale, Verdict};
use highwater_report::{Chart, Table};
use std::collections::BTreeMap;

fn outcome() -> Outcome {
    let claim = |subject: &str, verdict: Verdict| Claim {
        text: "0 < 1".into(),
        subject: subject.into(),
        verdict,
        detail: "</script><b>5".into(),
    };
    let row = |subject: &str| Row {
        subject: subject.into(),
        setting: BTreeMap::from([("size".into(), "1 GB".into())]),
        measured: BTreeMap::from([("tps".into(), 1234.5)]),
        spread: BTreeMap::from([("tps".into(), [1000.0, 1300.0])]),
        repetitions: 3,
        ..Row::default()
    };
    Outcome {
        experiment: "made-up".into(),
        about: "What is varied".into(),
        source: "nobody".into(),
        scale: Scale::Quick,
        config: BTreeMap::new(),
        claims: vec![claim("highwater", Verdict::Holds), claim("mysql", Verdict::Lost)],
        notes: vec!["kept: <all>".into()],
        rows: vec![row("highwater"), row("mysql")],
    }
}

#[test]
fn the_page_is_offline_whole_and_escaped() {
    let table = Table {
        title: "T".into(),
        texts: 1,
        head: vec!["a".into()],
        rows: vec![vec!["<i>".into()]],
        ..Table::default()
    };
    let page = html(&outcome(), &[Figure::Chart(Chart::default()), Figure::Table(table)]).unwrap();
    for outside in ["http://", "https://", "src=", "@import", "url(", "{{", "<b>", "<i>", "<all>"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("</script>").count(), 2);
    let data = page.split("id=\"result\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
    assert_eq!(serde_json::from_str::<Outcome>(data).unwrap(), outcome());
}

#[test]
fn a_claim_is_one_line_with_a_verdict_for_each_subject() {
    let page = html(&outcome(), &[]).unwrap();
    assert_eq!(page.matches("0 &lt; 1").count(), 1);
    assert_eq!(page.matches(">holds<").count(), 1);
    assert_eq!(page.matches(">does not hold<").count(), 1);
    assert!(
        page.contains("1 of 1") && page.contains("0 of 1") && page.contains("1\u{202f}000 to 1\u{202f}300"),
        "{page}"
    );
}
