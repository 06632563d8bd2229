//! The crates, bottom to top: what each may depend on. `crates/peers` is a workspace of its own.
//!
//! Rules
//! 1. A crate uses the crates of this workspace that its row of [`CRATES`] names, and no other; dependencies of tests
//!    count too.
//! 2. A crate that has no row is a finding: the table must stay whole.

/// Folder of a crate, the crates of the workspace it may use. Bottom first.
const CRATES: &[(&str, &[&str])] = &[
    ("crates/storage", &[]),
    ("crates/report", &["highwater-storage"]),
    ("crates/device", &["highwater-storage", "highwater-report"]),
    ("crates/engine", &["highwater-storage"]),
    ("crates/models", &["highwater-storage"]),
    ("crates/bench", &["highwater", "highwater-device", "highwater-report", "highwater-storage"]),
    ("crates/torture", &["highwater", "highwater-bench", "highwater-device", "highwater-storage"]),
    ("crates/peers", &["highwater", "highwater-bench"]),
    ("crates/lab", &["highwater", "highwater-bench", "highwater-device", "highwater-report", "highwater-storage"]),
    (
        "crates/cli",
        &[
            "highwater",
            "highwater-bench",
            "highwater-device",
            "highwater-lab",
            "highwater-report",
            "highwater-storage",
            "highwater-torture",
        ],
    ),
    ("crates/mariadb", &["highwater"]),
    ("crates/capi", &["highwater"]),
    ("python", &["highwater"]),
    ("fuzz", &["highwater", "highwater-bench", "highwater-device", "highwater-storage", "highwater-torture"]),
    ("xtask", &[]),
];

/// What is wrong with the dependencies in the manifest at `path`.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    let folder = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    let Some((_, allowed)) = CRATES.iter().find(|(name, _)| *name == folder) else {
        return vec![format!("{path}: {folder} is in no row of CRATES (xtask/src/crates.rs)")];
    };
    let wrong = |(_, name): &(usize, &str)| name.starts_with("highwater") && !allowed.contains(name);
    let found = dependencies(text).into_iter().filter(wrong);
    found.map(|(line, name)| format!("{path}:{line}: {folder} uses {name}, which is not below it")).collect()
}

/// The dependencies that a manifest names, with their lines: as keys, as tables of their own, and under another name
/// (`package`).
fn dependencies(text: &str) -> Vec<(usize, &str)> {
    let (mut in_dependencies, mut found) = (false, Vec::new());
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        let mut names = Vec::new();
        if let Some(head) = line.strip_prefix('[') {
            in_dependencies = head.contains("dependencies");
            names.extend(head.rsplit_once("dependencies.").map(|(_, name)| word(name)));
        } else {
            names.push(word(line));
            names.extend(package(line));
        }
        names.dedup();
        found.extend(names.into_iter().filter(|_| in_dependencies).map(|name| (n + 1, name)));
    }
    found
}

/// The name that a text begins with, in quotes or not.
fn word(text: &str) -> &str {
    let text = text.trim_start_matches(['"', '\'']);
    text.split(['.', ' ', '=', ']', '"', '\'']).next().unwrap_or("")
}

/// The value of the key `package` in a line.
fn package(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("package")?;
    let is_key = before.is_empty() || before.ends_with([' ', '{', ',']);
    let value = rest.trim_start().strip_prefix('=').filter(|_| is_key)?;
    Some(word(value.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_looks_up_is_found() {
        let uses =
            |name: &str| format!("[package]\nname = \"highwater-device\"\n[dependencies]\n{name}.workspace = true\n");
        assert_eq!(check("crates/device/Cargo.toml", &uses("highwater")).len(), 1);
        assert_eq!(check("crates/device/Cargo.toml", &uses("highwater-storage")).len(), 0);
        assert_eq!(check("crates/bench/Cargo.toml", &uses("highwater-lab")).len(), 1);
        assert_eq!(check("crates/new/Cargo.toml", "").len(), 1);
        for text in [
            "[dependencies.highwater-lab]\nworkspace = true\n",
            "[dev-dependencies.\"highwater-lab\"]\nworkspace = true\n",
            "[dependencies]\nlab = { path = \"../lab\", package = \"highwater-lab\" }\n",
            "[target.'cfg(unix)'.dependencies.lab]\npackage = \"highwater-lab\"\n",
            "[build-dependencies]\n\"highwater-lab\" = { workspace = true }\n",
        ] {
            assert_eq!(check("crates/bench/Cargo.toml", text).len(), 1, "{text}");
        }
        let other = "[package]\nname = \"x\"\npackage = \"highwater-lab\"\n[dependencies.x]\nversion = \"1\"\n";
        assert_eq!(check("crates/bench/Cargo.toml", other).len(), 0);
    }
}
