//! A case-insensitive index: users sign in by a name that they may write as they like.
//!
//! Run with: `cargo run -p highwater --example case_insensitive`

use highwater::{Collations, Database, Error, Index, Options, Schema, Type, values};

/// German as a phone book sorts it: umlauts as two letters, upper case as lower case. A collation is such a function;
/// it is pure, and the same each time the database is opened.
fn phone_book(name: &str, weights: &mut Vec<u8>) {
    for letter in name.chars().flat_map(char::to_lowercase) {
        match letter {
            'ä' => weights.extend(b"ae"),
            'ö' => weights.extend(b"oe"),
            'ü' => weights.extend(b"ue"),
            'ß' => weights.extend(b"ss"),
            letter => weights.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

fn main() -> highwater::Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let collations = Collations::new().with("phone_book", phone_book);
    let db = Database::open(folder.path(), Options { collations, ..Options::default() })?;
    let users = db.create_table(
        "users",
        Schema::new()
            .column("id", Type::U64)
            .auto_increment("id")
            .column("name", Type::Text(64))
            .collation("name", "phone_book")
            .column("seen", Type::U64)
            .primary_key(&["id"])
            // No two users whose names differ in case alone; a list of names needs no rows.
            .index_with("by_name", Index::new(&["name"]).unique().covering(&["seen"])),
    )?;
    let names = ["Müller", "Mueck", "Zeiß", "Abel"];
    db.transact(|txn| names.iter().try_for_each(|name| txn.insert(&users, &values![null, *name, 0u64]).map(drop)))?;

    // Found however it is written; what was stored comes back as it was.
    let mut read = db.snapshot()?;
    let found = read.get_by(&users, "by_name", &values!["MUELLER"])?.expect("the user is there");
    println!("MUELLER is {}", found.str(1));
    let taken = db.transact(|txn| txn.insert(&users, &values![null, "zeiss", 0u64]).map(drop));
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })));

    // In the order of a phone book, out of the index alone.
    for user in read.scan(&users).index("by_name").select(&["name", "seen"])? {
        let user = user?;
        println!("{} was seen {} times", user.str("name"), user.u64("seen"));
    }
    drop(read);
    db.close()
}
