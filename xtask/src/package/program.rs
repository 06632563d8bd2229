//! A program that depends on the packages as one that has them from the registry: it makes a database, closes it,
//! opens it again, and finds what it committed.

use highwater::{Database, Options, Result, Schema, Type, values};

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("the argument is a folder");
    let db = Database::open(&folder, Options::default())?;
    let rows = db.create_table(
        "row",
        Schema::new().column("id", Type::U64).column("text", Type::Text(64)).primary_key(&["id"]).index("t", &["text"]),
    )?;
    db.transact(|txn| {
        for id in 0..1000 {
            txn.insert(&rows, &values![id, format!("row {id}").as_str()])?;
        }
        Ok(())
    })?;
    db.close()?;

    let db = Database::open(&folder, Options::default())?;
    let rows = db.table("row")?;
    let mut read = db.snapshot()?;
    let found = read.scan(&rows).index("t").starts_with(&values!["row 99"]).iter()?.count();
    drop(read);
    db.close()?;
    assert_eq!(found, 11, "row 99 and row 990 to row 999");
    println!("a program over the packages works");
    Ok(())
}
