//! Tests of `report`.

use super::*;
use crate::preset;
use crate::replay::{self, Pace, ReplayOptions};

fn result(pace: Pace, name: &str) -> ReplayResult {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("<b>trace.csv");
    let lines: String = (0..40_000u32).map(|i| format!("{},W,{},1\n", i * 10, (i * 7919) % 60_000)).collect();
    std::fs::write(&trace, lines + "9,F,0,0\n9,R,5,1\n").unwrap();
    let mut options = ReplayOptions::new(trace, preset::find(name).unwrap().config());
    options.capacity_bytes = Some(256 << 20);
    options.pace = pace;
    options.passes = 2;
    options.ranges = vec!["hot=0+100".parse().unwrap()];
    replay::run(&options, &mut |_| {}).unwrap()
}

#[test]
fn the_page_is_offline_and_whole() {
    let page = html(&result(Pace::QueueDepth(4), "samsung-850-pro-256gb")).unwrap();
    for outside in ["http://", "https://", "src=", "@import", "url(", "NaN", "{{"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for part in ["Write amplification", "Flush latency", "Wear", "IDEMA", "Ranges", "ssd.timing.program_ns"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("class=\"plot\"").count(), 4);
}

#[test]
fn text_from_outside_cannot_become_markup() {
    let result = result(Pace::Untimed, "simple-2gb");
    let page = html(&result).unwrap();
    assert!(!page.contains("<b>") && page.contains("&lt;b&gt;trace.csv"));
    assert_eq!(page.matches("</script>").count(), 2);
    let data = page.split("id=\"result\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
    assert_eq!(serde_json::from_str::<ReplayResult>(data).unwrap().totals, result.totals);
}

#[test]
fn a_hard_disk_has_a_report_too() {
    let result = result(Pace::AsRecorded, "wd10ezex-1tb");
    assert!(html(&result).unwrap().contains("wd10ezex-1tb"));
    assert!(!text(&result).contains("wear"));
}

#[test]
fn the_table_tells_the_essentials() {
    let table = text(&result(Pace::QueueDepth(1), "samsung-850-pro-256gb"));
    for part in [
        "write amplification",
        "hbmw",
        "by pass",
        "stream",
        "wear of",
        "flush",
        "device time",
        "absorbed in",
        "writes per written block",
    ] {
        assert!(table.contains(part), "{part} in\n{table}");
    }
    assert!(table.lines().all(|l| l.chars().count() <= 100));
}

#[test]
fn a_trace_without_requests_is_said_to_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    std::fs::write(&trace, "time_us,op,lba,blocks\n").unwrap();
    let options = ReplayOptions::new(trace, preset::find("simple-2gb").unwrap().config());
    let table = text(&replay::run(&options, &mut |_| {}).unwrap());
    assert!(table.contains("no requests") && !table.contains("writes/s"), "{table}");
}
