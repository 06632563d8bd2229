//! Pages, templates and data together.

use super::*;

const DATA: &str = "subject,pool,tps,peer\nhighwater,15 %,12000,\nhighwater,30 %,24000,lmdb\nmysql,15 %,3000,\n";

const TEMPLATE: &str = r#"{"speed": {"head": ["", "pool"], "cells": {"data": "rows.csv", "cell": "{tps}"},
    "rows": [{"label": ["transactions/s"], "each": ["pool"]}],
    "columns": [{"each": ["subject"], "bold": "greatest"},
                {"label": ["against 15 %"], "where": {"subject": "highwater"}, "base": {"pool": "15 %"},
                 "cell": "{tps/base}"}]}}"#;

const TABLE: &str = "\n\n| | pool | Highwater | MySQL 5.6.24 | against 15 % |\n|---|---|---|---|---|\n\
                     | transactions/s | 15 % | **12,000** | 3,000 | 1.00 |\n| | 30 % | **24,000** | – | 2.00 |\n\n";

/// A tree with one page, its template and its data.
fn tree(page: &str, template: &str, data: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(PAGES);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [("page.md", page), ("page.json", template), ("rows.csv", data)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    root
}

fn page(table: &str) -> String {
    format!("Before.\n\n<!-- table: speed -->{table}<!-- end -->\n\nAfter.\n")
}

#[test]
fn a_block_is_filled_and_then_agrees() {
    let root = tree(&page("\n"), TEMPLATE, DATA);
    assert_eq!(check(root.path()).len(), 1);
    write(root.path()).unwrap();
    assert_eq!(std::fs::read_to_string(root.path().join(PAGES).join("page.md")).unwrap(), page(TABLE));
    assert_eq!(check(root.path()), Vec::<String>::new());
    std::fs::remove_file(root.path().join(PAGES).join("page.json")).unwrap();
    assert_eq!(check(root.path()).len(), 1, "a block without a template");
    std::fs::write(root.path().join(PAGES).join("gone.json"), TEMPLATE).unwrap();
    assert_eq!(check(root.path()).len(), 2, "a template without a page");
}

#[test]
fn a_changed_figure_is_found_in_the_page_and_in_the_data() {
    let changed = tree(&page(&TABLE.replace("3,000", "3,001")), TEMPLATE, DATA);
    assert_eq!(
        check(changed.path()),
        ["docs/results/page.md:7: a table differs from its data; cargo xtask results writes it"]
    );
    assert_eq!(check(tree(&page(TABLE), TEMPLATE, &DATA.replace("3000", "3001")).path()).len(), 1);
}

#[test]
fn templates_that_fit_no_page_or_no_data_are_found() {
    let data_twice = format!("{DATA}mysql,15 %,1,\n");
    for (page, template, data, what) in [
        ("No block.\n", TEMPLATE, DATA, "no block for the table speed"),
        (&*page("\n").replace(END, ""), TEMPLATE, DATA, "no <!-- end --> behind the table speed"),
        (&page("\n"), &TEMPLATE.replace("speed", "size"), DATA, "no template for the table speed, or a second block"),
        (&page("\n").repeat(2), TEMPLATE, DATA, "no template for the table speed, or a second block"),
        (&page("\n"), &TEMPLATE.replace("highwater", "lowwater"), DATA, "no row has subject \"lowwater\""),
        (&page("\n"), &TEMPLATE.replace("{tps}", "{tpm}"), DATA, "the data has no column tpm"),
        (&page("\n"), &TEMPLATE.replace("[\"pool\"]", "[\"log\"]"), DATA, "rows.csv has no column log"),
        (&page("\n"), &TEMPLATE.replace("\"base\"", "\"bass\""), DATA, "unknown field `bass`"),
        (&page("\n"), &TEMPLATE.replace("[\"\", \"pool\"]", "[]"), DATA, "0 headings for the labels"),
        (&page("\n"), TEMPLATE, &data_twice, "more than one row has"),
        (&page("\n"), &TEMPLATE.replace("rows.csv", "gone.csv"), DATA, "gone.csv: "),
    ] {
        let found = check(tree(page, template, data).path()).concat();
        assert!(found.contains(what), "{what:?} is not in {found:?}");
    }
}
