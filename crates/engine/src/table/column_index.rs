//! Columns of a row, by position or by name.

/// A column of a row: its position, from 0, or its name. A name is looked for among the table's columns at each call;
/// [`Table::column`](crate::Table::column) looks it up once, for all rows.
///
/// ```
/// # use highwater::{Database, Options, Schema, Type, values};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path(), Options::default())?;
/// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).column("age", Type::U8);
/// let people = db.create_table("people", schema.primary_key(&["id"]))?;
/// let mut txn = db.begin()?;
/// txn.insert(&people, &values![1u64, "Ada", 36u8])?;
/// txn.update(&people, &values![1u64], &[("name", "Ada King".into())])?;
/// txn.modify(&people, &values![1u64], |row, set| set.put("age", row.u64("age") + 1))?;
///
/// let age = people.column("age")?;
/// let ada = txn.get(&people, &values![1u64])?.unwrap();
/// assert_eq!((ada.str("name"), ada.u64(age), ada.u64(2)), ("Ada King", 37, 37));
/// # Ok::<(), highwater::Error>(())
/// ```
pub trait ColumnIndex: Copy + sealed::Sealed {}

pub(crate) mod sealed {
    /// The resolution of a column's position or name.
    pub trait Sealed: Copy {
        /// The position among columns of these names, whether it is one of theirs or not; `None`: none has the name.
        fn position(self, names: &[String]) -> Option<usize>;

        /// For messages.
        fn show(self) -> String;
    }
}

impl ColumnIndex for usize {}

impl sealed::Sealed for usize {
    #[inline(always)]
    fn position(self, _names: &[String]) -> Option<usize> {
        Some(self)
    }

    #[cold]
    fn show(self) -> String {
        format!("number {self}")
    }
}

impl ColumnIndex for &str {}

impl sealed::Sealed for &str {
    #[inline]
    fn position(self, names: &[String]) -> Option<usize> {
        names.iter().position(|name| name == self)
    }

    #[cold]
    fn show(self) -> String {
        self.to_string()
    }
}

impl ColumnIndex for &String {}

impl sealed::Sealed for &String {
    #[inline]
    fn position(self, names: &[String]) -> Option<usize> {
        self.as_str().position(names)
    }

    #[cold]
    fn show(self) -> String {
        self.clone()
    }
}
