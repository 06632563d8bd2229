//! An index over a case-insensitive collation, through the raw API: as a server's handler would keep a table of its
//! own. Rows are the bytes of columns, keys are byte strings.
//!
//! ```text
//! cargo run --example raw_table
//! ```

use highwater::raw::{RawColumn, RawRead, RawRow, RawSeek, RawTable};
use highwater::{Collations, Database, Error, LockMode, Options, Schema, Type};

/// The front end's collation: upper case as lower case. It is pure, and the same each time the database is opened.
fn ignore_case(text: &str, weights: &mut Vec<u8>) {
    text.chars().flat_map(char::to_lowercase).for_each(|letter| {
        weights.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    });
}

/// A row: a MEDIUMINT, a date in three bytes that compare as they are, a VARCHAR.
fn row<'r>(id: &'r [u8; 3], day: &'r [u8; 3], name: &'r str) -> [RawColumn<'r>; 3] {
    [Some(id), Some(day), Some(name.as_bytes())]
}

fn main() -> highwater::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for the database");
    let collations = Collations::new().with("ignore_case", ignore_case);
    let db = Database::open(folder.path(), Options { collations, ..Options::default() })?;
    let schema = Schema::new()
        .column("id", Type::U24)
        .column("day", Type::Fixed(3))
        .column("name", Type::Text(200))
        .collation("name", "ignore_case")
        .primary_key(&["id"])
        .unique_index("by_name", &["name"])
        .attachment(b"what the server has to know about the table");
    let guests = RawTable::create(&db, "hotel/guests", schema)?;

    let mut session = db.session();
    let rows = [(1, "Öberg"), (2, "abel"), (3, "Zeta")].map(|(id, name)| ([id, 0, 0], name));
    guests.insert_many(session.txn()?, rows.iter().map(|(id, name)| row(id, &[0x0f, 0xd5, 0x7a], name)))?;

    // REPLACE: a duplicate names its index and its row, which is locked.
    let new = row(&[4, 0, 0], &[0x0f, 0xd5, 0x7b], "ÖBERG");
    while let Err(error) = guests.insert(session.txn()?, &new) {
        let Error::DuplicateKey { .. } = error else { return Err(error) };
        if let Some(other) = guests.duplicate_of(session.txn()?, &new, LockMode::Exclusive)? {
            println!("the name is taken in index {:?}", other.index);
            guests.delete(session.txn()?, &other.key)?;
        }
    }

    // A look-up by the index, whatever the case; then the rows around it, in the order of the collation.
    let (mut key, mut found) = (Vec::new(), RawRow::default());
    guests.append_key("by_name", &[Some("ABEL".as_bytes())], &mut key)?;
    let mut cursor = guests.cursor("by_name", RawRead::default());
    let mut is_there = cursor.seek(&mut session, RawSeek::AtLeast, &key)?;
    while is_there {
        cursor.read_row(&mut found)?;
        println!("{:?} {}", found.column(0), String::from_utf8_lossy(found.column(2).unwrap_or_default()));
        is_there = cursor.next(&mut session)?;
    }
    session.commit()?;
    drop(session);
    db.close()
}
