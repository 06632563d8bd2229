//! What a damaged page costs is what docs/design/damage.md says: pages of every owner and type are damaged, each alone.

use highwater_torture::corruption::{DECLARED, Whole, costs_what_is_declared, table};

/// Damages this many pages of each kind.
fn compare_costs(store: &str, tried: usize) {
    let whole = Whole::new(&[("change_buffering", "disk"), ("page_store", store)]).unwrap();
    let pages = whole.pages().unwrap();
    let mut wrong = Vec::new();
    for row in DECLARED {
        let of_kind = pages.get(&row.kind).cloned().unwrap_or_default();
        assert!(!of_kind.is_empty(), "the database has no page of this kind: {}", row.page);
        let every = of_kind.len().div_ceil(tried);
        for page in of_kind.iter().step_by(every) {
            wrong.extend(costs_what_is_declared(&whole, row.kind, *page).unwrap());
        }
        println!("{}: {} pages", row.page, of_kind.len());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_damaged_page_of_every_owner_and_type_costs_what_is_declared() {
    compare_costs("in-place", 3);
}

#[test]
fn so_does_a_damaged_image_out_of_place() {
    compare_costs("out-of-place", 1);
}

#[test]
fn the_document_has_the_table() {
    let text = include_str!("../../../docs/design/damage.md");
    assert!(text.contains(&table()), "docs/design/damage.md should have:\n{}", table());
}
