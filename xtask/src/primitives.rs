//! Where the engine's mutexes, condition variables, atomics and threads come from: `crates/engine/src/sync`, so that a
//! model checker can put its own in their place.
//!
//! Rules
//! 1. Engine code names no other source of them. Tests may.
//! 2. Left out is what decides nothing ([`FREE`]); and threads, which some code waits for by itself.

use crate::source::{code_without_comments, paths};

/// What of `std::sync` a model checker has to replace. The module itself counts too: what is taken from it later is
/// not seen.
const OF_STD: [&str; 7] = ["atomic", "Mutex", "Condvar", "RwLock", "Barrier", "self", "*"];

/// The primitives themselves, and counters.
const FREE: [&str; 2] = ["sync/", "stats/"];

/// What is wrong with one file of the engine.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    if FREE.iter().any(|free| path.starts_with(free)) {
        return Vec::new();
    }
    let code = code_without_comments(text).into_iter();
    code.filter(|(_, line)| paths(line).iter().any(|path| is_foreign(path)))
        .map(|(number, line)| format!("crates/engine/src/{path}:{number}: `{}`: take it from crate::sync", line.trim()))
        .collect()
}

fn is_foreign(path: &str) -> bool {
    let of_std = |rest: &str| rest.is_empty() || OF_STD.contains(&rest.split("::").nth(1).unwrap_or_default());
    let path = path.trim_start_matches("::");
    path.split("::").next() == Some("parking_lot") || path.strip_prefix("std::sync").is_some_and(of_std)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_that_no_checker_can_replace_are_found() {
        let text = "//! X.\nuse std::sync::atomic::AtomicBool;\nuse parking_lot::Mutex;\nuse std::sync::Arc;\n";
        assert_eq!(check("pool/mod.rs", text).len(), 2);
        assert!(check("stats/mod.rs", text).is_empty());
        for line in [
            "use std::sync::Mutex;",
            "use std::sync::{Arc, Mutex};",
            "use std::{mem, sync::{Arc, Condvar}};",
            "pub use std::sync::RwLock as Lock;",
            "use std::sync;",
            "    static X: std::sync::Mutex<u32> = std::sync::Mutex::new(0);",
            "    let lock = parking_lot::Mutex::new(0);",
        ] {
            assert_eq!(check("pool/mod.rs", &format!("//! X.\n{line}\n")).len(), 1, "{line}");
        }
        let others = "//! X.\nuse std::sync::{Arc, OnceLock, Weak};\nuse crate::sync::{Condvar, Mutex};\n";
        assert!(check("pool/mod.rs", others).is_empty());
        assert!(
            check(
                "pool/mod.rs",
                "//! X.\nuse crate::sync::Mutex;\n#[cfg(test)]\nmod tests {\n    use parking_lot::Mutex;\n}\n"
            )
            .is_empty()
        );
    }
}
