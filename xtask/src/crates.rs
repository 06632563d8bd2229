//! The crates, bottom to top: what each may depend on. `crates/compare` is a workspace of its own.
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
    ("crates/compare", &["highwater", "highwater-bench"]),
    ("crates/lab", &["highwater", "highwater-bench", "highwater-device", "highwater-report", "highwater-storage"]),
    (
        "crates/cli",
        &["highwater", "highwater-bench", "highwater-device", "highwater-lab", "highwater-report", "highwater-storage"],
    ),
    ("fuzz", &["highwater", "highwater-bench", "highwater-device", "highwater-storage"]),
    ("xtask", &[]),
];

/// What is wrong with the dependencies in the manifest at `path`.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let folder = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    let Some((_, allowed)) = CRATES.iter().find(|(name, _)| *name == folder) else {
        return vec![format!("{path}: {folder} is in no row of CRATES (xtask/src/crates.rs)")];
    };
    let mut in_dependencies = false;
    let mut findings = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies");
        }
        let name: &str = line.split(['.', ' ', '=']).next().unwrap_or("");
        if in_dependencies && name.starts_with("highwater") && !allowed.contains(&name) {
            findings.push(format!("{path}:{}: {folder} uses {name}, which is not below it", n + 1));
        }
    }
    findings
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
    }
}
