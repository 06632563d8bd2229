//! A program whose tables change from version to version: each version says what it needs, and `migrate` makes it so.
//!
//! Run with `cargo run --example migration`.

use highwater::{Database, Error, Options, Schema, TableChange, Type, values};

/// What version 1 of the program needs.
fn first() -> Schema {
    Schema::new().column("id", Type::U64).auto_increment("id").column("mail", Type::Text(40)).primary_key(&["id"])
}

/// What version 2 needs: longer addresses, a column more, an index.
fn second() -> Schema {
    Schema::new()
        .column("id", Type::U64)
        .auto_increment("id")
        .column("mail", Type::Text(200))
        .column("active", Type::U8)
        .default_value("active", 1u8)
        .primary_key(&["id"])
        .unique_index("by_mail", &["mail"])
}

fn main() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("highwater-migration-{}", std::process::id()));
    let db = Database::open(&folder, Options::default())?;
    let people = db.migrate("people", first())?.table;
    db.transact(|txn| {
        (0..1000).try_for_each(|n| txn.insert(&people, &values![null, &format!("{n}@example.org")]).map(drop))
    })?;

    // Version 2 starts. No row is rewritten: those that are there have the default.
    let done = db.migrate("people", second())?;
    println!("changed: {:?}, indexes built: {:?}", done.changes, done.indexes);
    let ada = db.snapshot()?.get(&done.table, &values![1u64])?.ok_or(Error::Closed)?;
    println!("{ada:?}");

    // A column that goes, or gets another name, is named by hand: a schema does not say which it was.
    let people = db.alter_table("people", &[TableChange::rename_column("mail", "address")])?;
    assert_eq!(people.column("address")?, 1);
    // Handles from before do not know the new columns.
    assert!(matches!(db.snapshot()?.get(&done.table, &values![1u64]), Err(Error::TableChanged { .. })));

    // A change that is not supported is an error that says so, and changes nothing.
    match db.migrate("people", first()) {
        Err(Error::Schema(reason)) => println!("refused: {reason}"),
        other => println!("not refused: {other:?}"),
    }
    db.close()?;
    std::fs::remove_dir_all(folder).map_err(|error| Error::Usage(error.to_string()))
}
