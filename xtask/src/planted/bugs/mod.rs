//! The planted bugs, by layer. A row says what is broken and which tests are to notice it.
//!
//! To add one: choose a line whose absence or change would hurt, write the row so that `PLANTED` decides between the
//! wrong code and the right one, and run `cargo xtask planted NAME`. If it is missed, write the test that catches it.

mod backup;
mod concurrency;
mod durability;
mod isolation;
mod journal;
mod store;
mod structures;

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

/// The package of the engine.
pub const ENGINE: &str = "highwater";

/// Caught by tests of the engine.
const fn of_engine(
    name: &'static str,
    breaks: &'static str,
    edits: &'static [Edit],
    tests: &'static [&'static str],
) -> Bug {
    Bug { name, breaks, package: ENGINE, edits, tests }
}

/// Caught by tests of the bench.
const fn of_bench(
    name: &'static str,
    breaks: &'static str,
    edits: &'static [Edit],
    tests: &'static [&'static str],
) -> Bug {
    Bug { package: "highwater-bench", ..of_engine(name, breaks, edits, tests) }
}

const fn edit(file: &'static str, find: &'static str, replace: &'static str) -> Edit {
    Edit { file, find, replace }
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Bug> {
    let engine = durability::BUGS.iter().chain(structures::BUGS);
    let engine = store::BUGS.iter().chain(journal::BUGS).chain(engine);
    engine.chain(isolation::BUGS).chain(concurrency::BUGS).chain(backup::BUGS)
}
