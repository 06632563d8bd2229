//! Versions of the engines, and WiredTiger's methods as functions.
//!
//! Rule: versions are what the lock file says; that of a crate which brings a library in C ends with the library's.
//! WiredTiger says its own.

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    for name in ["redb", "fjall"] {
        println!("cargo:rustc-env=VERSION_{}={}", name.to_uppercase(), locked(&lock, name));
    }
    let rocksdb = locked(&lock, "librocksdb-sys");
    println!("cargo:rustc-env=VERSION_ROCKSDB={}", rocksdb.rsplit('+').next().unwrap_or(&rocksdb));
    #[cfg(feature = "wiredtiger")]
    wiredtiger();
}

/// A crate's version in the lock file.
fn locked(lock: &str, name: &str) -> String {
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("\nname = \"{name}\"\n")));
    let line = package.and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")));
    line.unwrap_or("unknown").trim_matches('"').into()
}

#[cfg(feature = "wiredtiger")]
fn wiredtiger() {
    let shim = "src/peer/wiredtiger/shim.c";
    println!("cargo:rerun-if-changed={shim}");
    println!("cargo:rerun-if-env-changed=WIREDTIGER_DIR");
    let library = std::env::var("WIREDTIGER_DIR").unwrap_or_default();
    let is_made = std::path::Path::new(&library).join("libwiredtiger.a").exists();
    assert!(is_made, "no libwiredtiger.a in {library:?} (WIREDTIGER_DIR); cargo xtask peers-build makes it");
    println!("cargo:rerun-if-changed={library}/libwiredtiger.a");
    let include = std::path::Path::new(&library).join("include");
    cc::Build::new().file(shim).include(include).opt_level(2).compile("highwater_wiredtiger");
    println!("cargo:rustc-link-search=native={library}");
    println!("cargo:rustc-link-lib=static=wiredtiger");
}
