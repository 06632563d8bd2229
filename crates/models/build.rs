//! Has the engine's source compiled with the primitives of the model checker (`crates/engine/src/sync/checked.rs`).

fn main() {
    println!("cargo::rustc-cfg=shuttle");
    println!("cargo::rerun-if-changed=build.rs");
}
