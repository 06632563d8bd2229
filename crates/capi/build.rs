//! Sets the library's SONAME, the name by which programs load it. An incompatible change of the functions increments
//! its number, so that programs built for the old functions do not load the new library.

const SONAME: &str = "libhighwater.so.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    }
}
