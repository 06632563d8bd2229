//! The mutants, by layer. A row says what is broken and which tests are to notice it.
//!
//! To add one: choose a line whose absence or change would hurt, write the row so that `MUTANT` decides between the
//! wrong code and the right one, and run `cargo xtask mutants NAME`. If it is missed, write the test that catches it.

mod backup;
mod change_buffer;
mod changes;
mod concurrency;
mod cuts;
mod durability;
mod encryption;
mod entries;
mod isolation;
mod journal;
mod locks;
mod raw;
mod readers;
mod store;
mod structures;
mod tables;
mod two_phases;

/// A bug.
pub(super) struct Mutant {
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
pub(super) struct Edit {
    pub file: &'static str,
    /// Stands in the file once.
    pub find: &'static str,
    /// What takes its place; `MUTANT` is true if the bug is in force.
    pub replace: &'static str,
}

/// The package of the engine.
pub(super) const ENGINE: &str = "highwater";

/// Caught by tests of the engine.
const fn of_engine(
    name: &'static str,
    breaks: &'static str,
    edits: &'static [Edit],
    tests: &'static [&'static str],
) -> Mutant {
    Mutant { name, breaks, package: ENGINE, edits, tests }
}

/// Caught by the tortures.
const fn of_torture(
    name: &'static str,
    breaks: &'static str,
    edits: &'static [Edit],
    tests: &'static [&'static str],
) -> Mutant {
    Mutant { package: "highwater-torture", ..of_engine(name, breaks, edits, tests) }
}

const fn edit(file: &'static str, find: &'static str, replace: &'static str) -> Edit {
    Edit { file, find, replace }
}

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Mutant> {
    let engine =
        durability::MUTANTS.iter().chain(structures::MUTANTS).chain(change_buffer::MUTANTS).chain(cuts::MUTANTS);
    let engine = store::MUTANTS.iter().chain(journal::MUTANTS).chain(engine);
    let engine =
        engine.chain(tables::MUTANTS).chain(entries::MUTANTS).chain(two_phases::MUTANTS).chain(isolation::MUTANTS);
    engine
        .chain(concurrency::MUTANTS)
        .chain(locks::MUTANTS)
        .chain(backup::MUTANTS)
        .chain(raw::MUTANTS)
        .chain(readers::MUTANTS)
        .chain(changes::MUTANTS)
        .chain(encryption::MUTANTS)
}
