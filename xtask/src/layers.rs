//! The engine's layers, bottom to top, and which of them a file uses.
//!
//! Rules
//! 1. A layer uses itself and the layers before it in [`LAYERS`]; layers of one row may use each other.
//! 2. Code at the foot of a file under `#[cfg(test)]`, and files that hold only tests, may use any layer.
//! 3. A module that is in no row is a finding too: the list must stay whole.

use crate::source::code_without_comments;

/// Bottom first.
pub const LAYERS: &[&[&str]] = &[
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
    &["txn"],
    &["table"],
    &["check"],
    &["backup"],
    &["inspect"],
    &["db"],
    &["salvage"],
    &["internals"],
];

/// Modules that only tests use.
const TEST_MODULES: &[&str] = &["testing", "models"];

/// The row of a module.
pub fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

/// The layer of a file under `crates/engine/src`: its first folder, or its own name. `None` for the crate's root.
pub fn layer_of(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then_some(name)
}

/// Every module named by a `crate::` path in the code before its tests, with its line.
pub fn uses(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in code_without_comments(text) {
        for (at, _) in line.match_indices("crate::") {
            // `$crate::` in a macro and names that end in "crate" are something else.
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = &line[at + "crate::".len()..];
            found.extend(named_modules(rest).into_iter().map(|module| (number, module)));
        }
    }
    found
}

/// The modules that `rest` (after `crate::`) names: one, or each of a group in braces.
fn named_modules(rest: &str) -> Vec<String> {
    let word = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let mut depth = 0;
    let mut start = true;
    let mut modules = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if c.is_whitespace() => {}
            _ if start => {
                modules.push(word(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    modules
}

/// What is wrong with the layers of one file of the engine.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let Some(layer) = layer_of(path).filter(|layer| !TEST_MODULES.contains(layer)) else { return Vec::new() };
    let Some(own) = rank(layer) else {
        return vec![format!("crates/engine/src/{path}: {layer} is in no layer (xtask/src/layers.rs)")];
    };
    let above = |(line, module): (usize, String)| {
        let reached = rank(&module)?;
        let finding = format!("crates/engine/src/{path}:{line}: layer {layer} uses {module}, which is above it");
        (reached > own).then_some(finding)
    };
    uses(text).into_iter().filter_map(above).collect()
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
