//! Where the engine's mutexes, condition variables, atomics and threads come from: `crates/engine/src/sync`, so that a
//! model checker can put its own in their place.
//!
//! Rules
//! 1. Engine code names no other source of them. Tests may.
//! 2. Left out is what decides nothing ([`FREE`]); and threads, which some code waits for by itself.

use crate::source::code_without_comments;

const SOURCES: [&str; 3] = ["parking_lot", "std::sync::atomic", "std::sync::{Mutex"];

/// The primitives themselves, and counters.
const FREE: [&str; 2] = ["sync/", "stats/"];

/// What is wrong with one file of the engine.
pub fn check(path: &str, text: &str) -> Vec<String> {
    if FREE.iter().any(|free| path.starts_with(free)) {
        return Vec::new();
    }
    let code = code_without_comments(text).into_iter();
    code.filter(|(_, line)| SOURCES.iter().any(|source| line.contains(source)))
        .map(|(number, line)| format!("crates/engine/src/{path}:{number}: `{}`: take it from crate::sync", line.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_that_no_checker_can_replace_are_found() {
        let text = "//! X.\nuse std::sync::atomic::AtomicBool;\nuse parking_lot::Mutex;\nuse std::sync::Arc;\n";
        assert_eq!(check("pool/mod.rs", text).len(), 2);
        assert!(check("stats/mod.rs", text).is_empty());
        assert!(
            check(
                "pool/mod.rs",
                "//! X.\nuse crate::sync::Mutex;\n#[cfg(test)]\nmod tests {\n    use parking_lot::Mutex;\n}\n"
            )
            .is_empty()
        );
    }
}
