//! The planted bugs, by layer. A row says what is broken and which tests are to notice it.
//!
//! To add one: choose a line whose absence or change would hurt, write the row so that `PLANTED` decides between the
//! wrong code and the right one, and run `cargo xtask planted NAME`. If it is missed, write the test that catches it.

mod backup;
mod concurrency;
mod isolation;
mod journal;
mod store;

/// A bug.
pub struct Bug {
    pub name: &'static str,
    /// What goes wrong with it.
    pub breaks: &'static str,
    /// The package with the tests.
    pub package: &'static str,
    pub edits: &'static [Edit],
    /// The tests that are to catch it: parts of their names.
    pub tests: &'static [&'static str],
}

/// A change of a source file.
pub struct Edit {
    pub file: &'static str,
    /// Stands in the file once.
    pub find: &'static str,
    /// What takes its place; `PLANTED` is true if the bug is in force.
    pub replace: &'static str,
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Bug> {
    store::BUGS.iter().chain(journal::BUGS).chain(isolation::BUGS).chain(concurrency::BUGS).chain(backup::BUGS)
}
