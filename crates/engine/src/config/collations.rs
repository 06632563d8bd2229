//! Collations: functions that define how texts of a column compare.
//!
//! Rules
//! 1. The definition of a column has the name of its collation. The program passes the function at each opening
//!    ([`Options::collations`](super::Options::collations)).
//! 2. The function is pure: the same text has the same weights at all times. It runs while a page is latched, and in
//!    rollback and purge.
//! 3. A panic in the function is an error of the call ([`Error::Collation`]), with no other effect.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Name of the collation that every database has: `A` to `Z` compare as `a` to `z`, all else as bytes.
pub const ASCII_CI: &str = "ascii_ci";

/// Appends the weights of a text.
type Weights = dyn Fn(&str, &mut Vec<u8>) + Send + Sync;

/// The collations that a program knows, by name.
///
/// A collation is a function that appends the *weights* of a text: bytes that compare as the texts shall. Texts with
/// the same weights are equal, to a unique index too. The function must be pure, and must stay the same as long as a
/// column has its name: an index is in the order of the weights that it was made with.
///
/// A text is UTF-8, in both APIs, so the function gets a `&str`. Text in another encoding is kept in a `Binary`
/// column, which has no collation; an index that is to compare it as text is made of a second `Binary` column, with the
/// weights that the program makes. (The plugin for MariaDB does so with all collations of the server.)
///
/// [`ASCII_CI`] is always there. (There is none for all of Unicode: its tables grow with each version, and an index
/// would be in the order of an older one.)
///
/// ```
/// use highwater::{Collations, Database, Options, Schema, Type, values};
///
/// # let dir = tempfile::tempdir().unwrap();
/// // Dashes do not count.
/// let no_dashes = |text: &str, weights: &mut Vec<u8>| weights.extend(text.bytes().filter(|byte| *byte != b'-'));
/// let options = Options { collations: Collations::new().with("no_dashes", no_dashes), ..Options::default() };
/// let db = Database::open(dir.path(), options)?;
/// let schema = Schema::new()
///     .column("id", Type::U64)
///     .column("isbn", Type::Text(17))
///     .collation("isbn", "no_dashes")
///     .primary_key(&["id"])
///     .unique_index("by_isbn", &["isbn"]);
/// let books = db.create_table("books", schema)?;
/// db.transact(|txn| txn.insert(&books, &values![1u64, "978-3-16-148410-0"]).map(drop))?;
/// let found = db.snapshot()?.get_by(&books, "by_isbn", &values!["9783161484100"])?.unwrap();
/// assert_eq!(found.str(1), "978-3-16-148410-0");
/// # Ok::<(), highwater::Error>(())
/// ```
#[derive(Clone)]
pub struct Collations(BTreeMap<Arc<str>, Arc<Weights>>);

impl Default for Collations {
    fn default() -> Collations {
        Collations(BTreeMap::new()).with(ASCII_CI, |text, weights| weights.extend(text.bytes().map(fold)))
    }
}

#[inline]
fn fold(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

impl Collations {
    /// The collations that are always available.
    pub fn new() -> Collations {
        Collations::default()
    }

    /// Adds a collation, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, weights: impl Fn(&str, &mut Vec<u8>) + Send + Sync + 'static) -> Collations {
        self.0.insert(name.into(), Arc::new(weights));
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// The collation of a name; it may be unknown.
    pub(crate) fn get(&self, name: &str) -> Collation {
        match self.0.get_key_value(name) {
            Some((name, weights)) => Collation { name: Arc::clone(name), weights: Some(Arc::clone(weights)) },
            None => Collation { name: name.into(), weights: None },
        }
    }
}

impl fmt::Debug for Collations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// By their names.
impl PartialEq for Collations {
    fn eq(&self, other: &Collations) -> bool {
        self.names().eq(other.names())
    }
}

/// The collation of a column, as this program knows it.
#[derive(Clone)]
pub struct Collation {
    name: Arc<str>,
    /// `None`: the program does not know it.
    weights: Option<Arc<Weights>>,
}

impl Collation {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the program has its function.
    pub fn is_known(&self) -> bool {
        self.weights.is_some()
    }

    /// Appends the weights of a text.
    ///
    /// # Errors
    /// [`Error::Collation`]: the function is unknown, or has panicked.
    pub(crate) fn append_weights(&self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some(weights) = &self.weights else { return Err(self.unknown()) };
        let Ok(text) = std::str::from_utf8(text) else {
            // A damaged row: it compares by its bytes.
            out.extend_from_slice(text);
            return Ok(());
        };
        let ran = catch_unwind(AssertUnwindSafe(|| weights(text, out)));
        ran.map_err(|_| self.failed("its function has panicked; the call was not made"))
    }

    /// The error of a collation whose function the program does not have.
    pub(crate) fn unknown(&self) -> Error {
        self.failed("its function is needed, and was not given when the database was opened (Options::collations)")
    }

    #[cold]
    fn failed(&self, reason: &str) -> Error {
        Error::Collation { collation: self.name.to_string(), reason: reason.to_string() }
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// By their names.
impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.name == other.name
    }
}

impl Eq for Collation {}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(collation: &Collation, text: &str) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        collation.append_weights(text.as_bytes(), &mut out).map(|()| out)
    }

    #[test]
    fn the_collation_that_is_always_there_folds_ascii_alone() {
        let found = Collations::new().get(ASCII_CI);
        assert_eq!(weights(&found, "AzÄ@[").unwrap(), "azÄ@[".as_bytes());
        assert!(found.is_known() && found.name() == ASCII_CI);
    }

    #[test]
    fn an_unknown_collation_and_one_that_panics_are_errors() {
        let all = Collations::new().with("bad", |text, _| assert!(text.is_empty(), "no"));
        assert_eq!(all.names().collect::<Vec<_>>(), [ASCII_CI, "bad"]);
        assert!(weights(&all.get("bad"), "").is_ok());
        let error = weights(&all.get("bad"), "x").unwrap_err().to_string();
        assert!(error.starts_with("collation bad: its function has panicked"), "{error}");
        let error = weights(&all.get("other"), "x").unwrap_err().to_string();
        assert!(error.starts_with("collation other: its function is needed"), "{error}");
    }
}
