//! The Hermitage schedules on Highwater: each level of isolation prevents what it promises, in the way that the table
//! of docs/design/isolation.md says.

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
    for table in
        [hermitage::promised_table(|script| script.highwater), hermitage::promised_table(|script| script.innodb)]
    {
        assert!(page.contains(&table), "docs/design/isolation.md lacks\n{table}");
    }
}
