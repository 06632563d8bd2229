//! The name by which programs load the library: it changes when the functions do so that old programs no longer fit.

/// Of the functions as they are.
const SONAME: &str = "libhighwater.so.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    }
}
