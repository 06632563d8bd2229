//! `journal-power-cut`: does data journaling make InnoDB's doublewrite buffer unnecessary? MySQL 5.6 under load, its power cut again and again.
//!
//! Source: the `stream-journal` document says that it does; Percona, who had advised so, withdrew the advice after corruptions. A cut is chosen by a
//! seed among what the device's promises allow ([`cycle`]).

mod cycle;
mod pages;

use super::journaled::Mode;
use super::{
    Cell, Claim, DeviceChoice, Experiment, Figure, Measured, Plan, Row, Scale, SubjectKind, Table, Workspace, setting,
};
use cycle::{Aftermath, Site};
use highwater_bench::Result;
use std::collections::BTreeMap;

const MODES: [Mode; 3] = [Mode::OrderedDoublewrite, Mode::Ordered, Mode::Data];
const ATOMIC_BYTES: [&str; 3] = ["512", "4096", "16384"];

/// The experiment.
#[derive(Debug)]
pub struct JournalPowerCut;

fn cuts(scale: Scale) -> u64 {
    scale.pick(1, 4, 100, 300)
}

impl Experiment for JournalPowerCut {
    fn name(&self) -> &'static str {
        "journal-power-cut"
    }

    fn about(&self) -> &'static str {
        "Databases damaged by power cuts: ordered journaling with and without doublewrite, data journaling without"
    }

    fn source(&self) -> &'static str {
        "Choi, Kang, Kim, Seo, Lee, Eom; and Percona's withdrawn advice on data journaling"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &[SubjectKind::Mysql]
    }

    fn devices(&self) -> &'static [&'static str] {
        &["samsung-850-pro-256gb", "samsung-960-pro-512gb"]
    }

    fn repetitions(&self, _: Scale, _: &DeviceChoice) -> u32 {
        1
    }

    fn mounts(&self, _: &Plan) -> bool {
        true
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let (modes, sizes) = match plan.scale {
            Scale::Smoke => (&MODES[..1], &ATOMIC_BYTES[1..2]),
            Scale::Quick => (&MODES[..], &ATOMIC_BYTES[1..2]),
            Scale::Standard | Scale::Full => (&MODES[..], &ATOMIC_BYTES[..]),
        };
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for size in sizes {
                for mode in modes {
                    let setting = setting([("mode", mode.name().to_string()), ("atomic_bytes", size.to_string())]);
                    cells.push(Cell::new(SubjectKind::Mysql, plan.device.name(), setting, repetition));
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
        workspace.step("mounting a device")?;
        let mut site = Site::new(plan, cell, workspace)?;
        let all = cuts(plan.scale);
        let mut found = Vec::new();
        for n in 0..all {
            workspace.step(&format!("cut {} of {all}", n + 1))?;
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(cell.repetition) * 10_007 + n);
            let aftermath = site.cut(seed)?;
            if let Some(text) = aftermath.damage.as_ref().or(aftermath.lost.first()) {
                workspace.line(&format!("{}, seed {seed}: {text}", cell.describe()));
            }
            found.push(aftermath);
        }
        site.close()?;
        Ok(measured(&found))
    }

    fn paper(&self, _: &Cell) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn claims(&self, _: &Plan, rows: &[Row]) -> Vec<Claim> {
        let mut claims = Vec::new();
        for size in ATOMIC_BYTES.iter().filter(|size| rows.iter().any(|row| row.get("atomic_bytes") == **size)) {
            let row =
                |mode: Mode| rows.iter().find(|row| row.get("mode") == mode.name() && row.get("atomic_bytes") == *size);
            let on = format!("on a device with atomic writes of {size} bytes");
            claims.push(none_damaged(
                row(Mode::OrderedDoublewrite),
                format!("Ordered journaling with doublewrite keeps every database, {on}"),
            ));
            claims.extend(row(Mode::Data).map(|row| {
                let text = format!("The document: data journaling keeps every database without doublewrite, {on}");
                none_damaged(Some(row), text)
            }));
            if *size != "16384" {
                claims.extend(row(Mode::Ordered).map(|row| damaged(row, &on)));
            }
        }
        claims.push(no_commit_lost(rows));
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        vec![Figure::Table(table(rows))]
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        vec![
            format!(
                "MySQL 5.6.24 with one warehouse of TPC-C, 4 clients, pool 16 MiB, redo log 8 MiB, O_DIRECT, every commit synced, on ext4 with a \
                 journal of 16 MiB; {} cuts a setting, each at a write a seed chooses within about a second of load.",
                cuts(plan.scale)
            ),
            "The device has a volatile cache, keeps its word about flushes and promises no order; 16 KiB are atomic wherever they begin, \
             smaller units where they are aligned. A longer request may tear between units."
                .into(),
            "A database is damaged when its file system cannot be mounted, the server does not start, or its CHECK TABLE EXTENDED of any table finds \
             something. Torn pages are those whose checksum fails before recovery; doublewrite may repair them. A sound database goes on to the next \
             cut, a damaged one is replaced by the loaded one."
                .into(),
        ]
    }
}

fn measured(found: &[Aftermath]) -> Measured {
    let mut measured = Measured::default();
    let count = |fits: &dyn Fn(&Aftermath) -> bool| found.iter().filter(|a| fits(a)).count() as f64;
    measured.put("cuts", found.len() as f64);
    measured.put("damaged_databases", count(&|a| a.damage.is_some()));
    measured.put("databases_with_torn_pages", count(&|a| a.torn_pages > 0));
    measured.put("torn_pages", found.iter().map(|a| a.torn_pages).sum::<u64>() as f64);
    measured.put("databases_with_lost_commits", count(&|a| !a.lost.is_empty()));
    let first = found.iter().find_map(|a| a.damage.as_ref().or(a.lost.first()));
    measured.info.extend(first.map(|text| ("first_finding".to_string(), text.clone())));
    measured
}

fn claim(text: String, holds: bool, detail: String) -> Claim {
    Claim { text, subject: SubjectKind::Mysql.to_string(), holds, detail }
}

fn detail(row: &Row) -> String {
    let (damaged, cuts) = (row.value("damaged_databases"), row.value("cuts"));
    let first = row.info.get("first_finding").map_or(String::new(), |text| format!("; first: {text}"));
    format!("{damaged:.0} of {cuts:.0} damaged, {:.0} with torn pages{first}", row.value("databases_with_torn_pages"))
}

fn none_damaged(row: Option<&Row>, text: String) -> Claim {
    match row {
        Some(row) => claim(text, row.value("damaged_databases") == 0.0, detail(row)),
        None => claim(text, false, "not measured".into()),
    }
}

fn damaged(row: &Row, on: &str) -> Claim {
    let text = format!("Without doublewrite ordered journaling damages databases, {on}");
    claim(text, row.value("damaged_databases") > 0.0, detail(row))
}

fn no_commit_lost(rows: &[Row]) -> Claim {
    let lost: f64 = rows.iter().map(|row| row.value("databases_with_lost_commits")).sum();
    let cuts: f64 = rows.iter().map(|row| row.value("cuts")).sum();
    let text = "No acknowledged commit is missing from a sound database".into();
    claim(text, lost == 0.0, format!("{lost:.0} of {cuts:.0} cuts"))
}

fn table(rows: &[Row]) -> Table {
    let whole = |row: &Row, name: &str| format!("{:.0}", row.value(name));
    let names = ["cuts", "damaged_databases", "databases_with_torn_pages", "torn_pages", "databases_with_lost_commits"];
    let line = |row: &Row| {
        let mut cells = vec![row.get("mode").to_string(), row.get("atomic_bytes").to_string()];
        cells.extend(names.map(|name| whole(row, name)));
        cells
    };
    let head = ["Mode", "Atomic bytes", "Cuts", "Damaged", "With torn pages", "Torn pages", "With lost commits"];
    Table {
        title: "Databases after power cuts".into(),
        caption: "OJ: ordered journaling, DJ: data journaling, DWB: doublewrite buffer. Torn pages: before recovery."
            .into(),
        texts: 2,
        head: head.map(String::from).to_vec(),
        rows: rows.iter().map(line).collect(),
    }
}

#[cfg(test)]
#[path = "journal_power_cut_test.rs"]
mod tests;
