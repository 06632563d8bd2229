//! Schemas that are accepted, and what is wrong with others.

use super::*;

fn two_columns() -> Schema {
    Schema::new().column("id", Type::U64).nullable("name", Type::Text(10))
}

#[test]
fn a_good_schema_passes() {
    let schema = two_columns().auto_increment("id").primary_key(&["id"]).index("by_name", &["name", "id"]);
    let definition = schema.check("t").unwrap();
    assert_eq!(definition.primary_key, [0.into()]);
    assert_eq!(definition.auto_increment, Some(0));
    assert_eq!(definition.indexes[0].columns, [1.into(), 0.into()]);
    assert!(definition.is_key(0) && !definition.is_key(1));
}

#[test]
fn mistakes_are_named() {
    let keyed = || two_columns().primary_key(&["id"]);
    let cases = [
        (two_columns(), "there is no primary key"),
        (Schema::new().primary_key(&["id"]), "there is no column id"),
        (Schema::new(), "1 to 1017 columns"),
        (two_columns().primary_key(&["name"]), "column name is nullable"),
        (two_columns().primary_key(&["id", "id"]), "column id is named twice"),
        (keyed().column("id", Type::I8), "two columns id"),
        (keyed().column("x", Type::Decimal(40, 0)), "column x: decimal(40,0)"),
        (keyed().column("", Type::I8), "column name \"\" has 0 bytes"),
        (keyed().column("a\nb", Type::I8), "control character"),
        (keyed().auto_increment("name"), "auto-increment needs an integer column"),
        (keyed().index("i", &["nope"]), "index i: there is no column nope"),
        (keyed().index("i", &[]), "index i: an index has 1 to 16 columns"),
        (keyed().index("i", &["id"]).unique_index("i", &["name"]), "two indexes i"),
        (keyed().index("PRIMARY", &["id"]), "cannot be named PRIMARY"),
        (keyed().index_with("i", Index::new(&["name"]).descending("id")), "column id is described, and is not one of"),
        (keyed().index_with("i", Index::new(&["id"]).prefix("id", 3)), "only text and binary columns have a prefix"),
        (keyed().index_with("i", Index::new(&["name"]).prefix("name", 0)), "a prefix has 1 to 3072 bytes"),
        (keyed().index_with("i", Index::new(&["name"]).covering(&["id"])), "has column id without covering it"),
        (keyed().index_with("i", Index::new(&["name"]).covering(&["name"])), "has column name without covering it"),
        (keyed().collation("id", "ascii_ci"), "column id: only text has a collation"),
        (keyed().collation("name", ""), "collation name \"\" has 0 bytes"),
        (two_columns().primary_key_with(Index::new(&["id"]).covering(&["name"])), "a primary key covers no columns"),
        (keyed().column("key", Type::Text(9)).primary_key_with(Index::new(&["key"]).prefix("key", 3)), "is not whole"),
        (
            keyed().column("key", Type::Text(9)).collation("key", "c").primary_key(&["key"]),
            "column key has a collation",
        ),
    ];
    for (schema, expected) in cases {
        let found = schema.check("t").unwrap_err().to_string();
        assert!(found.contains(expected), "{found} / {expected}");
    }
    assert!(keyed().check("").is_err());
}
