//! Claims of page-store: made-up rows of both outcomes; what is set for each cell, and what is made of counters.

use super::plan::{
    ATOMIC, BASE, DEVICE_CLOCK, DOUBLEWRITE, HALF_FULL, JOURNAL, LZ4, MACHINE_CLOCK, PAGE_COMPRESSION, PLAIN, Point,
    STORES, VARIED, WITH, WITHOUT, ZSTD, load_options, points, settings, sized_device,
};
use super::values::{page_streams, put_levels, stream_amplification};
use super::*;
use crate::experiment::metric::Metric;
use crate::experiment::testing::{self, row};
use crate::experiment::{Scale, Verdict};
use crate::measure::Streams;
use highwater_device::ssd::counters::{Counters, StreamCounters};

const OWN: &str = "highwater";

fn plan(scale: Scale, subjects: &[SubjectKind]) -> Plan {
    testing::plan(scale, ABOUT.devices[0], subjects)
}

/// Flash bytes a transaction, engine and page streams' write amplification, transactions per second.
fn values(store: &str) -> [f64; 4] {
    match store {
        DOUBLEWRITE => [260e3, 2.0, 1.9, 1000.0],
        JOURNAL => [250e3, 2.0, 1.9, 1000.0],
        ATOMIC => [160e3, 1.0, 2.0, 1100.0],
        PLAIN => [170e3, 2.1, 1.01, 1200.0],
        LZ4 => [85e3, 1.0, 1.01, 1600.0],
        _ => [60e3, 0.7, 1.01, 1800.0],
    }
}

/// Rows of every setting with which all claims hold.
fn rows(subject: &str) -> Vec<Row> {
    let row = |point: &Point<'_>| {
        let [flash, engine, streams, tps] = values(point.store);
        let engine = if point.fill == HALF_FULL { engine / 2.0 } else { engine };
        let values = [
            (metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, flash),
            (metric::DEVICE_HOST_BYTES_PER_TRANSACTION, flash / 1.1),
            (metric::PAGE_BYTES_PER_TRANSACTION, flash / 2.0),
            (metric::REDO_BYTES_PER_TRANSACTION, flash / 4.0),
            (metric::ENGINE_WRITE_AMPLIFICATION, engine),
            (metric::PAGE_STREAMS_WRITE_AMPLIFICATION, streams),
            (metric::CAPACITIES_WRITTEN, 1.3),
            (metric::TPS, if point.clock == MACHINE_CLOCK { tps } else { 77.0 }),
        ];
        row(subject, point.setting(), &values)
    };
    points(Scale::Standard, SubjectKind::Highwater).iter().map(row).collect()
}

fn change(rows: &mut [Row], point: &Point<'_>, metric: Metric, value: f64) {
    let row = rows.iter_mut().find(|row| row.setting == point.setting()).unwrap();
    row.measured.insert(metric.name().into(), value);
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let plan = plan(Scale::Standard, &[SubjectKind::Highwater]);
    PageStores.claims(&plan, rows).into_iter().map(|claim| claim.verdict).collect()
}

fn with(point: &Point<'_>, metric: Metric, value: f64, wanted: Verdict) -> Vec<usize> {
    let mut rows = rows(OWN);
    change(&mut rows, point, metric, value);
    verdicts(&rows).iter().enumerate().filter(|(_, verdict)| **verdict == wanted).map(|(n, _)| n).collect()
}

const fn stored(store: &str) -> Point<'_> {
    Point { store, ..BASE }
}

#[test]
fn the_aims_are_claimed_of_highwater_only() {
    assert_eq!(verdicts(&rows(OWN)), [Verdict::Holds; 8]);
    assert!(verdicts(&rows("mariadb")).is_empty());
    // At the scale quick the rows are enough.
    let quick = points(Scale::Quick, SubjectKind::Highwater);
    let is_quick = |row: &Row| quick.iter().any(|point| point.setting() == row.setting);
    let quick: Vec<Row> = rows(OWN).into_iter().filter(is_quick).collect();
    assert_eq!((quick.len(), verdicts(&quick)), (9, vec![Verdict::Holds; 8]));
}

#[test]
fn each_claim_can_be_lost() {
    let lost = |point: &Point<'_>, metric: Metric, value: f64| with(point, metric, value, Verdict::Lost);
    let flash = metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION;
    assert_eq!(lost(&stored(ZSTD), flash, 80e3), [0, 3]);
    assert_eq!(lost(&stored(LZ4), flash, 100e3), [1]);
    assert_eq!(lost(&stored(PLAIN), flash, 200e3), [2]);
    assert_eq!(lost(&stored(ATOMIC), flash, 100e3), [3]);
    for store in [PLAIN, LZ4, ZSTD] {
        assert_eq!(lost(&stored(store), metric::PAGE_STREAMS_WRITE_AMPLIFICATION, 1.03), [4]);
    }
    let half_full = Point { fill: HALF_FULL, ..stored(PLAIN) };
    assert_eq!(lost(&half_full, metric::ENGINE_WRITE_AMPLIFICATION, 1.3), [5]);
    assert_eq!(lost(&stored(PLAIN), metric::ENGINE_WRITE_AMPLIFICATION, 2.3), [6]);
    let timed = Point { clock: MACHINE_CLOCK, ..stored(ZSTD) };
    assert_eq!(lost(&timed, metric::TPS, 1300.0), [7]);
    // Speed on the device's clock, and an in-place store's amplification, are no matter of a claim.
    assert!(lost(&stored(ZSTD), metric::TPS, 1.0).is_empty());
    assert!(lost(&stored(ATOMIC), metric::PAGE_STREAMS_WRITE_AMPLIFICATION, 5.0).is_empty());
}

#[test]
fn what_is_near_or_was_too_short_decides_nothing() {
    let undecided = |point: &Point<'_>, metric: Metric, value: f64| with(point, metric, value, Verdict::Undecided);
    assert_eq!(undecided(&stored(ZSTD), metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, 64.5e3), [0, 3]);
    assert_eq!(undecided(&Point { clock: MACHINE_CLOCK, ..stored(ZSTD) }, metric::TPS, 1550.0), [7]);
    assert_eq!(undecided(&stored(ZSTD), metric::CAPACITIES_WRITTEN, 0.4), [0, 3, 4]);
    assert_eq!(undecided(&stored(PLAIN), metric::CAPACITIES_WRITTEN, 0.4), [2, 4, 6]);
    // Other programs took half of the processors.
    assert_eq!(undecided(&Point { clock: MACHINE_CLOCK, ..BASE }, metric::CPU_OTHERS_PCT, 50.0), [7]);
}

#[test]
fn what_was_not_measured_is_lost() {
    let rows: Vec<Row> = rows(OWN).into_iter().filter(|row| row.get(plan::STORE) != ZSTD).collect();
    let verdicts = verdicts(&rows);
    assert_eq!([0, 3, 7].map(|n| verdicts[n]), [Verdict::Lost; 3]);
    assert_eq!([1, 2, 4, 5, 6].map(|n| verdicts[n]), [Verdict::Holds; 5]);
}

#[test]
fn cells_differ_and_vary_one_thing_at_a_time() {
    let number = |scale, subject| {
        let cells = PageStores.cells(&plan(scale, &[subject]));
        let ids: std::collections::BTreeSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids.len(), cells.len(), "{scale} {subject}");
        assert!(cells.iter().all(|cell| Point::of(cell).setting() == cell.setting));
        ids.len()
    };
    let of = |subject| Scale::ALL.map(|scale| number(scale, subject));
    assert_eq!(of(SubjectKind::Highwater), [4, 9, 41, 41]);
    assert_eq!((of(SubjectKind::Mysql), of(SubjectKind::Mariadb)), ([1, 1, 1, 2], [2, 2, 2, 4]));
    assert_eq!(of(SubjectKind::MariadbHighwater), [5, 5, 5, 10]);
    for point in points(Scale::Standard, SubjectKind::Highwater) {
        let (setting, base) = (point.setting(), stored(point.store).setting());
        let varied = setting.iter().filter(|(axis, value)| base[*axis] != **value).count();
        assert!(varied <= 1, "{point:?}");
        assert!(
            varied == 0
                || point.page != BASE.page
                || point.clock != BASE.clock
                || VARIED.contains(&point.store)
                || point.store == PLAIN,
            "{point:?}"
        );
    }
    let servers = points(Scale::Full, SubjectKind::Mariadb);
    assert!(servers.iter().all(|point| (point.streams, point.clock) == (WITHOUT, MACHINE_CLOCK)));
}

#[test]
fn each_store_has_its_options() {
    let own = |store: &'static str| settings(SubjectKind::Highwater, &stored(store), Scale::Quick).unwrap();
    for store in [DOUBLEWRITE, JOURNAL, ATOMIC] {
        let settings = own(store);
        assert_eq!((settings.doublewrite, settings.page_bytes), (store == DOUBLEWRITE, 8192));
        let options: std::collections::BTreeMap<_, _> = settings.options(None).unwrap().values().into_iter().collect();
        let protection = if store == DOUBLEWRITE { "on" } else { store };
        assert_eq!((options["doublewrite"].as_str(), options["page_store"].as_str()), (protection, "in-place"));
        assert_eq!(load_options(SubjectKind::Highwater, &stored(store), Scale::Quick).is_empty(), store != JOURNAL);
    }
    for (store, compression) in [(PLAIN, "off"), (LZ4, "lz4"), (ZSTD, "zstd")] {
        let (settings, load) = (own(store), load_options(SubjectKind::Highwater, &stored(store), Scale::Quick));
        assert!(!settings.doublewrite);
        for options in [&settings.extra, &load] {
            assert_eq!((options["page_store"].as_str(), options["page_compression"].as_str()), (PLAIN, compression));
        }
        assert!(settings.options(None).is_ok());
    }
    let plugin = |store| settings(SubjectKind::MariadbHighwater, &stored(store), Scale::Quick).unwrap().extra;
    assert_eq!(plugin(DOUBLEWRITE), std::collections::BTreeMap::new());
    assert_eq!(plugin(JOURNAL)["highwater_doublewrite"], JOURNAL);
    let names: Vec<String> = plugin(ZSTD).into_keys().collect();
    let expected = ["page_compression", "page_store", "segment_fill_pct", "segment_size"];
    assert_eq!(names, expected.map(|name| format!("highwater_{name}")));
    let compressed = settings(SubjectKind::Mariadb, &stored(PAGE_COMPRESSION), Scale::Quick).unwrap();
    assert!(compressed.doublewrite && compressed.extra["innodb_compression_default"] == "ON");
    assert_eq!(load_options(SubjectKind::Mariadb, &stored(PAGE_COMPRESSION), Scale::Quick), compressed.extra);
}

#[test]
fn every_store_gets_the_same_device() {
    let plan = plan(Scale::Standard, &[SubjectKind::Highwater]);
    let all = STORES.map(|store| sized_device(SubjectKind::Highwater, &stored(store), &plan).unwrap());
    assert!(all.iter().all(|one| one.sized_by == all[0].sized_by && one.sized_by.doublewrite));
    assert!(all.iter().all(|one| (one.fill, one.spare, one.streams) == (0.8, 0.15, Streams::Each)));
    let other = Point { fill: HALF_FULL, spare: "28", streams: WITHOUT, ..stored(ZSTD) };
    let other = sized_device(SubjectKind::Highwater, &other, &plan).unwrap();
    assert_eq!((other.fill, other.spare, other.streams), (0.5, 0.28, Streams::One));
    assert_eq!(BASE.streams, WITH);
    assert!(sized_device(SubjectKind::Highwater, &Point { fill: "full", ..BASE }, &plan).is_err());
}

/// A hundred pages of 8 KiB in ten transactions, and these counters.
fn levels(store: &str, counters: &[(Metric, f64)]) -> CellResult {
    let mut measured = CellResult::default();
    let common = [(metric::PAGES_FLUSHED, 100.0), (metric::TRANSACTIONS, 10.0), (metric::REDO_BYTES_WRITTEN, 4096.0)];
    for (metric, value) in common.iter().chain(counters) {
        measured.put(*metric, *value);
    }
    put_levels(&mut measured, &stored(store), 8192.0);
    measured
}

#[test]
fn levels_come_from_what_each_store_counts() {
    let page = 8192.0;
    let in_place = [
        (metric::INDEX_LEAF_BYTES_WRITTEN, 90.0 * page),
        (metric::UNDO_BYTES_WRITTEN, 10.0 * page),
        (metric::DOUBLEWRITE_BYTES_WRITTEN, 104.0 * page),
        // A store that is not out-of-place counts none of this.
        (metric::STORE_BYTES_USER, 7.0),
    ];
    let found = levels(DOUBLEWRITE, &in_place);
    assert_eq!(found.value(metric::ENGINE_WRITE_AMPLIFICATION), 2.04);
    assert_eq!(found.value(metric::FLUSHED_BYTES_PER_TRANSACTION), 10.0 * page);
    assert_eq!(found.value(metric::DOUBLEWRITE_BYTES_PER_TRANSACTION), 104.0 * page / 10.0);
    assert_eq!(found.value(metric::REDO_BYTES_PER_TRANSACTION), 409.6);
    assert!(found.value(metric::COMPRESSION_RATIO).is_nan());

    let out_of_place = [
        (metric::STORE_BYTES_USER, 50.0 * page),
        (metric::STORE_BYTES_CLEANED, 10.0 * page),
        (metric::DOUBLEWRITE_BYTES_WRITTEN, 0.0),
        (metric::INDEX_LEAF_BYTES_WRITTEN, 100.0 * page),
        (metric::COMPRESSED_BYTES_IN, 200.0),
        (metric::COMPRESSED_BYTES_OUT, 125.0),
    ];
    let found = levels(ZSTD, &out_of_place);
    assert_eq!(found.value(metric::ENGINE_WRITE_AMPLIFICATION), 0.6);
    assert_eq!(found.value(metric::CLEANED_BYTES_PER_TRANSACTION), page);
    assert_eq!(found.value(metric::COMPRESSION_RATIO), 1.6);

    let found = levels(PAGE_COMPRESSION, &in_place);
    assert!(found.value(metric::ENGINE_WRITE_AMPLIFICATION).is_nan());
    assert_eq!(found.value(metric::FLUSHED_BYTES_PER_TRANSACTION), 10.0 * page);
}

#[test]
fn the_logs_stream_is_no_stream_of_pages() {
    let mut device = Counters::default();
    device.streams[0] = StreamCounters { host_blocks: 100, copied_blocks: 3, padded_blocks: 1, ..Default::default() };
    device.streams[1] = StreamCounters { host_blocks: 100, copied_blocks: 90, ..Default::default() };
    device.streams[5] = StreamCounters { host_blocks: 100, ..Default::default() };
    assert_eq!(stream_amplification(&device, &page_streams()), 1.02);
    assert!(stream_amplification(&Counters::default(), &page_streams()).is_nan());
}

#[test]
fn figures_show_each_row_and_stack_to_the_flash() {
    let mut rows = rows(OWN);
    let server = Point { streams: WITHOUT, clock: MACHINE_CLOCK, ..BASE };
    rows.push(row("mysql", server.setting(), &[(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, 1e6)]));
    let figures = PageStores.figures(&rows);
    let tables: Vec<_> = figures.iter().filter(|figure| matches!(figure, Figure::Table(_))).collect();
    let bars: Vec<_> =
        figures.iter().filter_map(|f| if let Figure::Bars(bars) = f { Some(bars) } else { None }).collect();
    let Figure::Table(table) = tables[0] else { panic!("a table") };
    // No row has segments, so there is no table of them.
    assert_eq!((table.rows.len(), tables.len()), (42, 2));
    assert_eq!(bars.iter().map(|bars| bars.bars.len()).collect::<Vec<_>>(), [6, 7, 6]);
    let sum: f64 = bars[1].bars[5].parts.iter().sum();
    assert!((sum - 60e3 / 1024.0).abs() < 0.01, "{sum}");
    let charts = figures.iter().filter(|figure| matches!(figure, Figure::Chart(_))).count();
    assert_eq!(charts, 3 + 2);
    // With the base setting alone there is nothing along any axis.
    let base: Vec<Row> = rows.into_iter().filter(|row| row.setting == BASE.setting()).collect();
    assert_eq!(PageStores.figures(&base).iter().filter(|figure| matches!(figure, Figure::Chart(_))).count(), 2);
    assert_eq!(BASE.clock, DEVICE_CLOCK);
}
