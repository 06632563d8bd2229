//! Versions of the engines, and WiredTiger's methods as functions.
//!
//! Rule: a crate's version is what the lock file says, a library's what its header says.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    for name in ["redb", "fjall"] {
        println!("cargo:rustc-env=VERSION_{}={}", name.to_uppercase(), locked(&lock, name));
    }
    println!("cargo:rustc-env=VERSION_ROCKSDB={}", rocksdb());
    #[cfg(feature = "wiredtiger")]
    wiredtiger();
}

/// A crate's version in the lock file.
fn locked(lock: &str, name: &str) -> String {
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("\nname = \"{name}\"\n")));
    let line = package.and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")));
    line.unwrap_or("unknown").trim_matches('"').into()
}

fn rocksdb() -> String {
    let include = std::env::var("ROCKSDB_INCLUDE_DIR").unwrap_or_else(|_| "/usr/include".into());
    let header = std::fs::read_to_string(Path::new(&include).join("rocksdb/version.h")).unwrap_or_default();
    let number = |name: &str| {
        let line = header.lines().find(|line| line.contains(&format!("#define {name} ")));
        line.and_then(|line| line.split_whitespace().nth(2)).unwrap_or("?").to_string()
    };
    ["ROCKSDB_MAJOR", "ROCKSDB_MINOR", "ROCKSDB_PATCH"].map(number).join(".")
}

#[cfg(feature = "wiredtiger")]
fn wiredtiger() {
    let shim = "src/peer/wiredtiger/shim.c";
    println!("cargo:rerun-if-changed={shim}");
    cc::Build::new().file(shim).opt_level(2).compile("highwater_wiredtiger");
    println!("cargo:rustc-link-lib=wiredtiger");
}
