//! The header is that of the source.

use std::path::Path;

const SOURCES: [&str; 11] =
    ["failure", "value", "schema", "table", "database", "transaction", "rows", "query", "cursor", "changes", "upkeep"];

/// The header, in the order of its use.
fn made() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES.into_iter().chain(["handle"]) {
        builder = builder.with_src(root.join(format!("src/{source}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

#[test]
fn the_header_is_that_of_the_source() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/highwater.h");
    let made = made();
    if std::env::var_os("HIGHWATER_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "{} is another one; HIGHWATER_WRITE=1 writes it", path.display());
}

#[test]
fn the_header_has_every_function_of_the_source() {
    let (mut functions, header) = (0, made());
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for rest in source.split("pub extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name}");
            functions += 1;
        }
    }
    assert!(functions > 80, "{functions}");
}
