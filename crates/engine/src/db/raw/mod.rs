//! The raw API, for front ends: a server's storage handler, a language binding. Applications use the typed API, which
//! is the rest of this crate.
//!
//! A front end has rows and keys as bytes of its own and does not need [`Value`](crate::Value)s. Here a row is a slice
//! of columns, each in the bytes that the column stores, `None` for NULL; a key is a byte string that compares as its
//! columns do. Both APIs use the same tables: a [`RawTable`] is a [`Table`] with other calls, in the same transactions
//! ([`WriteTxn`](crate::WriteTxn)), with the same locks, indexes, backups, checks and repairs.
//!
//! # What is stable
//! Only the bytes that a column stores, by its type: no call takes or returns the layout of a row.
//!
//! | type | bytes | compare as |
//! |---|---|---|
//! | `I8` to `I64`, `U8` to `U64` | 1, 2, 3, 4 or 8, little-endian | numbers |
//! | `F32`, `F64` | 4 or 8, little-endian IEEE 754; `-0.0` is kept as `0.0`, every NaN as one | numbers, NaN last |
//! | `Decimal(p, s)` | the unscaled number in 8 (p ≤ 18) or 16 bytes, little-endian | numbers |
//! | `DateTime` | microseconds since 1970 in 8 bytes, little-endian | numbers |
//! | `Fixed(n)` | n bytes as they are | bytes |
//! | `Text(max)` | UTF-8, at most `max` bytes | bytes, or as the column's collation says |
//! | `Binary(max)` | any bytes, at most `max` | bytes |
//!
//! An encoded key is made by [`RawTable::append_key`] and comes from [`RawCursor::entry`], [`RawCursor::key`] and
//! [`RawTable::duplicate_of`]. It is valid as long as the table and the index exist, and can be kept (as a row's
//! reference, as the end of a range). Any bytes may be passed as a key: bytes that are not the key of a row find no
//! row. Stored keys and rows are always made by the engine, from columns whose lengths and contents it has checked.
//!
//! ```
//! use highwater::raw::{RawRead, RawRow, RawSeek, RawTable};
//! use highwater::{Database, Options, Schema, Type};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! let db = Database::open(dir.path(), Options::default())?;
//! let schema = Schema::new()
//!     .column("id", Type::U24)
//!     .column("day", Type::Fixed(3))
//!     .nullable("note", Type::Binary(500))
//!     .primary_key(&["id"])
//!     .index("by_day", &["day"])
//!     .attachment(b"what the front end knows about the table");
//! let days = RawTable::create(&db, "days", schema)?;
//!
//! let mut txn = db.begin()?;
//! days.insert(&mut txn, &[Some(&[7, 0, 0]), Some(&[0x0f, 0xd5, 0x7a]), None])?;
//! days.insert(&mut txn, &[Some(&[8, 0, 0]), Some(&[0x0f, 0xd5, 0x21]), Some(b"rain")])?;
//!
//! let (mut key, mut row) = (Vec::new(), RawRow::default());
//! days.append_key("PRIMARY", &[Some(&[8, 0, 0])], &mut key)?;
//! assert!(days.get(&mut txn, &key, &RawRead::default(), &mut row)?);
//! assert_eq!(row.column(2), Some(&b"rain"[..]));
//!
//! let mut cursor = days.cursor("by_day", RawRead::default());
//! assert!(cursor.seek(&mut txn, RawSeek::AtLeast, &[])?);
//! assert_eq!(cursor.key(), Some(&key[..]));
//! assert!(cursor.next(&mut txn)? && !cursor.next(&mut txn)?);
//! txn.commit()?;
//! # Ok::<(), highwater::Error>(())
//! ```

mod ahead;
mod cursor;
mod entry;
mod filter;
mod read;
mod row;
mod rows;
mod table;

#[cfg(doc)]
use crate::table::Table;
pub use cursor::{RawCursor, RawSeek};
pub use filter::RawVerdict;
pub use read::RawRead;
pub use row::{RawColumn, RawRow};
pub use rows::RawDuplicate;
pub use table::RawTable;
