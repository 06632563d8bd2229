//! A program that depends on the packages as one that has them from the registry: it makes a database, closes it, opens
//! it again, and finds what it committed. Then the same with pages that are compressed, if the program can; if it was
//! built without compression, it must refuse such a database of another program.

use highwater::{Database, Options, Result, Schema, Type, values};
use std::path::Path;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("the arguments are a folder and one for compressed pages");
    let (plain, packed) = (next(), next());
    make_and_look(Path::new(&plain), Options::default())?;
    let mut options = Options::default();
    options.set("page-store", "out-of-place")?;
    match options.set("page-compression", "zstd") {
        Ok(()) => make_and_look(Path::new(&packed), options)?,
        Err(error) => {
            let opened = Database::open(&packed, Options::default());
            for error in [error, opened.err().expect("its pages are compressed")] {
                assert!(error.to_string().contains("the feature `zstd` of the crate highwater"), "{error}");
            }
        }
    }
    println!("a program over the packages works");
    Ok(())
}

fn make_and_look(folder: &Path, options: Options) -> Result<()> {
    let db = Database::open(folder, options)?;
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

    let db = Database::open(folder, Options::default())?;
    let rows = db.table("row")?;
    let mut read = db.snapshot()?;
    let found = read.scan(&rows).index("t").starts_with(&values!["row 99"]).iter()?.count();
    drop(read);
    db.close()?;
    assert_eq!(found, 11, "row 99 and row 990 to row 999");
    Ok(())
}
