//! Claims, pools and sizes of flush-method, on made-up rows.

use super::figures::table;
use super::plan::{DISKS, FSYNC, METHOD, METHODS, O_DIRECT, POOL, POOLS, divisor, pool_bytes, put_sizes};
use super::*;
use crate::experiment::testing::{self, row};
use crate::experiment::{Verdict, setting};

fn rows(fsync: [f64; 5], direct: [f64; 5]) -> Vec<Row> {
    let row = |n: usize, method: &str, rate: f64| {
        row("mysql", setting([(POOL, POOLS[n]), (METHOD, method)]), &[(metric::LOAD_MB_PER_S, rate)])
    };
    (0..5).flat_map(|n| [row(n, FSYNC, fsync[n]), row(n, O_DIRECT, direct[n])]).collect()
}

fn plan(scale: Scale, device: &str, subject: SubjectKind) -> Plan {
    testing::plan(scale, device, &[subject])
}

fn verdicts(rows: &[Row]) -> Vec<bool> {
    verdicts_at(Scale::Standard, rows)
}

fn verdicts_at(scale: Scale, rows: &[Row]) -> Vec<bool> {
    let plan = plan(scale, "local", SubjectKind::Mysql);
    testing::holding(&FlushMethods.claims(&plan, rows))
}

#[test]
fn claims_follow_the_rows() {
    let fsync = [5.0, 6.0, 7.0, 8.0, 9.0];
    assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 6.0, 9.0, 12.0])), [true; 3]);
    assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 7.5, 9.0, 12.0])), [false, true, true]);
    assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 6.0, 7.0, 12.0])), [true, false, true]);
    assert_eq!(verdicts(&rows(fsync, [4.7, 3.0, 6.0, 7.0, 8.0])), [true, false, false]);
    assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 6.0, 9.0, 12.0])[..2]), [false; 3]);
    let plan = plan(Scale::Standard, "local", SubjectKind::Mysql);
    let close = FlushMethods.claims(&plan, &rows(fsync, [1.0, 3.0, 6.0, 8.1, 12.0]));
    assert_eq!(close[1].verdict, Verdict::Undecided);
}

#[test]
fn no_two_pools_of_a_subject_are_the_same() {
    let disk = DISKS[0];
    for (scale, device, subject, measured) in [
        (Scale::Quick, "local", SubjectKind::Mysql, &POOLS[2..]),
        (Scale::Standard, disk, SubjectKind::Mariadb, &POOLS[2..]),
        (Scale::Quick, disk, SubjectKind::Mariadb, &POOLS[4..]),
        (Scale::Quick, disk, SubjectKind::Highwater, &POOLS[1..]),
        (Scale::Standard, "local", SubjectKind::Mysql, &POOLS[..]),
        (Scale::Full, disk, SubjectKind::Mysql, &POOLS[..]),
    ] {
        let plan = plan(scale, device, subject);
        let cells = FlushMethods.cells(&plan);
        let mut pools: Vec<&str> = cells.iter().map(|cell| cell.get(POOL)).collect();
        pools.dedup();
        assert_eq!(pools, measured, "{scale} {device} {subject}");
        let mut bytes: Vec<u64> = pools.iter().map(|pool| pool_bytes(pool, divisor(&plan), subject)).collect();
        bytes.dedup();
        assert_eq!(bytes.len(), measured.len(), "{bytes:?}");
        // Both ends are measured with every method, and what is left out is said.
        assert!(cells.iter().filter(|cell| cell.get(POOL) == measured[0]).count() >= METHODS.len());
        let left_out = POOLS[..POOLS.len() - measured.len()].join(", ");
        let says = FlushMethods.notes(&plan).iter().any(|note| note.contains(&format!("the same pool: {left_out}.")));
        assert_eq!(says, !left_out.is_empty(), "{scale} {device} {subject}");
    }
}

#[test]
fn claims_are_of_the_pools_that_are_measured() {
    let all = rows([5.0, 6.0, 7.0, 8.0, 9.0], [9.0, 9.0, 6.0, 9.0, 12.0]);
    assert_eq!((verdicts(&all)[0], verdicts_at(Scale::Quick, &all[4..])), (false, vec![true; 3]));
    let plan = plan(Scale::Quick, DISKS[0], SubjectKind::Mysql);
    let claims = FlushMethods.claims(&plan, &all[8..]);
    assert_eq!(testing::holding(&claims), [false, true, false]);
    assert!(claims[0].detail.contains("no such pool"), "{claims:?}");
}

#[test]
fn rows_have_the_sizes_they_really_had() {
    let mut measured = CellResult::default();
    put_sizes(&mut measured, 6 << 20, 8 << 20, 32 << 20);
    assert_eq!((measured.value(metric::POOL_BYTES), measured.value(metric::POOL_TO_DATA_PCT)), (6_291_456.0, 18.75));
    let row = Row { measured: measured.values, ..rows([1.0; 5], [1.0; 5]).remove(0) };
    assert_eq!(table(&[row]).rows[0][2..7], ["32.0", "6.00", "8.00", "18.8", "25.0"]);
}
