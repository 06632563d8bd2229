//! Cells into rows: medians and spread over the repetitions.

use super::{Cell, CellResult, Experiment, Row};
use std::collections::BTreeMap;

/// The rows of measured cells, in the order in which settings first come.
pub(super) fn rows(experiment: &dyn Experiment, cells: &[(Cell, CellResult)]) -> Vec<Row> {
    let mut groups: Vec<Vec<&(Cell, CellResult)>> = Vec::new();
    for one in cells {
        let same = |group: &&mut Vec<&(Cell, CellResult)>| is_same_setting(&group[0].0, &one.0);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let mut rows: Vec<Row> = groups.into_iter().map(|group| row(experiment, &group)).collect();
    let order = super::outcome::subjects(&rows).into_iter().map(String::from).collect::<Vec<_>>();
    rows.sort_by_key(|row| order.iter().position(|name| *name == row.subject));
    rows
}

fn is_same_setting(a: &Cell, b: &Cell) -> bool {
    (&a.subject, &a.device, &a.setting) == (&b.subject, &b.device, &b.setting)
}

fn row(experiment: &dyn Experiment, group: &[&(Cell, CellResult)]) -> Row {
    let (cell, first) = group[0];
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (_, measured) in group {
        for (name, value) in &measured.values {
            values.entry(name.clone()).or_default().push(*value);
        }
    }
    let is_whole = |(_, list): &(&String, &Vec<f64>)| list.len() == group.len();
    let runs = values.iter().filter(is_whole).map(|(name, list)| (name.clone(), list.clone())).collect();
    values.values_mut().for_each(|list| list.sort_by(f64::total_cmp));
    Row {
        subject: cell.subject.clone(),
        device: cell.device.clone(),
        setting: cell.setting.clone(),
        measured: values.iter().map(|(name, list)| (name.clone(), median(list))).collect(),
        spread: values.iter().map(|(name, list)| (name.clone(), [list[0], list[list.len() - 1]])).collect(),
        repetitions: group.len() as u32,
        runs,
        paper: experiment.paper(cell),
        series: first.series.clone(),
        info: first.info.clone(),
    }
}

/// The median of an ascending list; 0 of none.
pub(super) fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        assert_eq!(median(&[]), 0.0);
    }
}
