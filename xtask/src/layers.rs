//! The engine's layers, bottom to top, and which of them a file uses.
//!
//! Rules
//! 1. A layer uses itself and the layers before it in [`LAYERS`]; layers of one row may use each other. What counts is
//!    where a path leads, whether it begins at the crate's root (`crate`) or climbs to it (`super`).
//! 2. Code at the foot of a file under `#[cfg(test)]`, and files that hold only tests, may use any layer.
//! 3. A module that is in no row is a finding too: the list must stay whole.

use crate::source::{code_without_comments, paths};
use std::collections::BTreeSet;

/// Bottom first.
pub(crate) const LAYERS: &[&[&str]] = &[
    &["types", "error", "config", "stats", "sync"],
    &["page"],
    &["probe"],
    &["log"],
    &["store"],
    &["pool"],
    &["context"],
    &["mtr"],
    &["recovery"],
    &["space"],
    &["btree"],
    &["change_buffer"],
    &["row"],
    &["undo"],
    &["lock"],
    &["txn"],
    &["table"],
    &["check"],
    &["backup"],
    &["inspect"],
    &["db"],
    &["salvage", "dump"],
    &["internals"],
];

/// Modules that only tests use.
const TEST_MODULES: &[&str] = &["testing", "models"];

/// The row of a module.
pub(crate) fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

/// The layer of a file under `crates/engine/src`: its first folder, or its own name. `None` for the crate's root.
pub(crate) fn layer_of(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then_some(name)
}

/// The path of a file's module: `pool::evict` of `pool/evict.rs`.
fn module_of(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = path.strip_suffix(".rs").unwrap_or(path).split('/').collect();
    if parts.last().is_some_and(|last| matches!(*last, "mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// The module below the crate's root that a path leads to from a file: one that begins with `crate`, or with as many
/// `super` as it takes. None for a path that stays in the file's own, or leads elsewhere.
fn reached(own: &[&str], path: &str) -> Option<String> {
    let mut words = path.split("::").skip_while(|word| *word == "self").peekable();
    let mut above = own.len();
    while words.next_if_eq(&"super").is_some() {
        above = above.checked_sub(1)?;
    }
    let from_root = words.next_if_eq(&"crate").is_some() || (path.contains("super::") && above == 0);
    from_root.then(|| words.next()).flatten().map(Into::into)
}

/// Every layer that the code before a file's tests leads to, with its line.
fn uses(path: &str, text: &str) -> Vec<(usize, String)> {
    let own = module_of(path);
    let in_line = |(number, line): (usize, String)| {
        let modules: BTreeSet<String> = paths(&line).iter().filter_map(|path| reached(&own, path)).collect();
        modules.into_iter().map(move |module| (number, module))
    };
    code_without_comments(text).into_iter().flat_map(in_line).collect()
}

/// What is wrong with the layers of one file of the engine.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    let Some(layer) = layer_of(path).filter(|layer| !TEST_MODULES.contains(layer)) else { return Vec::new() };
    let Some(own) = rank(layer) else {
        return vec![format!("crates/engine/src/{path}: {layer} is in no layer (xtask/src/layers.rs)")];
    };
    let above = |(line, module): (usize, String)| {
        let reached = rank(&module)?;
        let finding = format!("crates/engine/src/{path}:{line}: layer {layer} uses {module}, which is above it");
        (reached > own).then_some(finding)
    };
    uses(path, text).into_iter().filter_map(above).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_of_a_layer_above_is_found() {
        for line in [
            "use crate::btree::Tree;",
            "    crate::db::Database::open();",
            "use crate::{page::Op, txn::{Txn, TxnId}};",
            "pub(crate) fn f(tree: &crate::btree::Tree) {}",
            "use super::super::btree::Tree;",
            "    super::super::db::Database::open();",
            "pub(super) use super::{frame::Frame, super::{page::Op, txn::Txn}};",
            "pub use crate::{page::Op, txn::Txn};",
        ] {
            let text = format!("//! Pool.\nuse crate::types::Lsn;\n{line}\n");
            assert_eq!(check("pool/evict.rs", &text).len(), 1, "{line}");
        }
    }

    #[test]
    fn layers_below_tests_and_comments_are_fine() {
        let text = "//! Trees; see crate::db.\nuse crate::{page, pool::Pool};\n// crate::txn\n\
                    #[cfg(test)]\nmod tests {\n    use crate::db::Database;\n}\n";
        assert_eq!(check("btree/insert.rs", text), Vec::<String>::new());
        assert_eq!(check("lib.rs", "pub use crate::db::Database;"), Vec::<String>::new());
        let within = "//! X.\nuse super::super::types::Lsn;\nuse super::db::Frame;\nuse self::db::X;\n\
                      use super::super::super::db;\n";
        assert_eq!(check("pool/evict.rs", within), Vec::<String>::new(), "a module db of the pool, and no path at all");
        assert_eq!(check("pool/mod.rs", "//! X.\nuse super::db::Database;\n").len(), 1, "the layer db");
    }

    #[test]
    fn an_unknown_module_is_found() {
        assert_eq!(check("magic.rs", "//! Magic.\n").len(), 1);
        assert_eq!(check("magic/spell.rs", "//! Magic.\n").len(), 1);
    }

    #[test]
    fn groups_over_lines_are_read() {
        let text = "use crate::{\n    page::Op,\n    db::Database,\n};\n";
        assert_eq!(check("log/mod.rs", text).len(), 1);
    }
}
