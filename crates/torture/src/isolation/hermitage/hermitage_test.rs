//! The Hermitage schedules on Highwater: each level of isolation prevents what it promises, in the way that the table
//! of docs/design/isolation.md says. The page shows of InnoDB's table the rows that differ.

use crate::isolation::hermitage::{self, Highwater};

#[test]
fn every_cell_is_as_promised() {
    let lines = hermitage::play_all(&mut Highwater::open().unwrap()).unwrap();
    let differences = hermitage::differences(&lines, |script| script.highwater);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_tables_in_the_docs_are_those_that_are_tested() {
    let page = include_str!("../../../../../docs/design/isolation.md");
    let highwater = hermitage::promised_table(|script| script.highwater);
    let innodb = hermitage::promised_table(|script| script.innodb);
    let head = innodb.lines().take(2);
    let differing = innodb.lines().filter(|line| !highwater.contains(line));
    let differing: String = head.chain(differing).map(|line| format!("{line}\n")).collect();
    for table in [highwater, differing] {
        assert!(page.contains(&table), "docs/design/isolation.md lacks\n{table}");
    }
}
