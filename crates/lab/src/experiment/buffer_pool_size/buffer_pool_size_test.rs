//! Claims of buffer-pool-size: made-up rows of both outcomes.

use super::*;

/// Rows of the claimed shape; `change` may bend one value.
fn rows(change: impl Fn(usize, &str) -> Option<f64>) -> Vec<Row> {
    let values: [(&str, [f64; 5]); 7] = [
        ("lru_list_pct", [98.0, 90.0, 80.0, 66.0, 54.0]),
        ("data_reads_per_s", [2683.0, 2400.0, 2200.0, 1900.0, 1725.0]),
        ("data_writes_per_s", [2470.0, 2700.0, 2900.0, 3100.0, 3363.0]),
        ("log_writes_per_s", PAPER_LOG),
        ("log_bytes_per_s", [1e6, 2e6, 3e6, 4e6, 5e6]),
        ("pages_read", [50.0, 40.0, 30.0, 20.0, 10.0]),
        ("transactions", [10.0, 11.0, 12.0, 13.0, 14.0]),
    ];
    let row = |n: usize| Row {
        subject: "highwater".into(),
        setting: setting([("pool", SHARES[n].into())]),
        measured: values.iter().map(|(name, v)| (name.to_string(), change(n, name).unwrap_or(v[n]))).collect(),
        ..Row::default()
    };
    (0..5).map(row).collect()
}

fn verdicts(rows: &[Row]) -> Vec<bool> {
    let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Highwater]);
    BufferPoolSize.claims(&plan, rows).iter().map(|claim| claim.holds).collect()
}

#[test]
fn the_papers_shape_shows_every_claim() {
    assert_eq!(verdicts(&rows(|_, _| None)), [true; 7]);
}

#[test]
fn each_claim_can_be_lost() {
    let bent = |at: usize, which: &'static str, value: f64| {
        verdicts(&rows(move |n, name| (n == at && name == which).then_some(value)))
    };
    assert_eq!(bent(4, "lru_list_pct", 99.0), [false, true, true, true, true, true, true]);
    assert_eq!(bent(0, "lru_list_pct", 85.0), [true, false, true, true, true, true, true]);
    assert_eq!(bent(4, "pages_read", 900.0), [true, true, false, true, true, true, true]);
    assert_eq!(bent(4, "data_reads_per_s", 9000.0), [true, true, true, false, true, true, true]);
    assert_eq!(bent(4, "data_writes_per_s", 100.0), [true, true, true, true, false, true, true]);
    assert_eq!(bent(4, "log_writes_per_s", 1.0), [true, true, true, true, true, false, true]);
    assert_eq!(bent(4, "log_bytes_per_s", 1.0), [true, true, true, true, true, true, false]);
    assert!(!bent(1, "lru_list_pct", f64::NAN)[0]);
}

#[test]
fn processors_explain_lost_claims_only_where_they_were_busy() {
    // The percentage at 75 %, data writes there, log writes there: what the explanation must say, if there is one.
    let data = "Data writes a second are";
    let log = "A log write is a group";
    for (busy, data_writes, log_writes, expected) in [
        (97.0, 3363.0, 43.0, None),
        (50.0, 100.0, 1.0, None),
        (f64::NAN, 100.0, 1.0, None),
        (97.0, 100.0, 43.0, Some((true, false))),
        (97.0, 3363.0, 1.0, Some((false, true))),
        (97.0, 100.0, 1.0, Some((true, true))),
    ] {
        let mut rows = rows(|n, name| match name {
            "data_writes_per_s" if n == 4 => Some(data_writes),
            "log_writes_per_s" if n == 4 => Some(log_writes),
            _ => None,
        });
        for (n, row) in rows.iter_mut().enumerate() {
            row.measured.insert("cpu_pct".into(), if n == 4 { busy } else { 40.0 });
        }
        let found = BufferPoolSize.explanations(&rows);
        assert_eq!(found.first().map(|text| (text.contains(data), text.contains(log))), expected, "{found:?}");
        assert!(found.iter().all(|text| text.contains("40.0, 40.0, 40.0, 40.0, 97.0 %")), "{found:?}");
    }
    let notes = BufferPoolSize.notes(&Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Highwater]));
    assert!(notes.iter().all(|note| !note.contains("processors")), "{notes:?}");
}

#[test]
fn ratios_are_the_papers() {
    let settings = |share: &str, scale: Scale| {
        settings(&Cell::new(SubjectKind::Mysql, "local", setting([("pool", share.into())]), 0), scale)
    };
    assert_eq!(settings("15 %", Scale::Full).buffer_pool_bytes, 1_500_000_000);
    assert_eq!(settings("75 %", Scale::Standard).buffer_pool_bytes, 375_000_000);
    assert_eq!(
        (settings("15 %", Scale::Full).log_bytes, settings("15 %", Scale::Full).lru_scan_depth),
        (96 << 20, 1024)
    );
}
