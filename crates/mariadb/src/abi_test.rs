//! The C++ half and the Rust half agree: the functions of the header, and the options.

use highwater::Options;
use highwater::config::OPTION_TABLE;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const SOURCES: [&str; 8] = [
    include_str!("cursor.rs"),
    include_str!("database.rs"),
    include_str!("failure.rs"),
    include_str!("information.rs"),
    include_str!("rows.rs"),
    include_str!("session.rs"),
    include_str!("table.rs"),
    include_str!("two_phases.rs"),
];

/// The functions that begin after `start`, with their numbers of parameters.
fn functions(text: &str, start: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (at, _) in text.match_indices(start) {
        let rest = &text[at + start.len()..];
        let Some(open) = rest.find('(') else { continue };
        let name = &rest[..open];
        if !name.starts_with("hw_") || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let (mut depth, mut commas, mut is_empty) = (0, 0, true);
        let mut last = ' ';
        for c in rest[open..].chars() {
            match c {
                '(' | '<' => depth += 1,
                ')' | '>' => depth -= 1,
                ',' if depth == 1 => commas += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth > 0 && !c.is_whitespace() && c != '(' {
                is_empty = false;
            }
            // Rust's trailing comma.
            if c == ')' && last == ',' {
                commas -= 1;
            }
            if !c.is_whitespace() {
                last = c;
            }
        }
        let trailing = usize::from(last == ',');
        let no_parameters = is_empty || rest[open..].starts_with("(void)");
        found.insert(name.to_string(), if no_parameters { 0 } else { commas + 1 - trailing });
    }
    found
}

#[test]
fn the_header_has_the_functions_of_the_source() {
    let header = include_str!("../include/highwater_server.h");
    let mut declared = BTreeMap::new();
    for start in ["int32_t ", "void ", "hw_bytes ", "uint64_t ", "hw_interrupt *"] {
        declared.extend(functions(header, &format!("\n{start}")));
    }
    let mut defined = BTreeMap::new();
    for source in SOURCES {
        defined.extend(functions(source, "pub extern \"C\" fn "));
    }
    assert!(defined.len() > 40, "{}", defined.len());
    assert_eq!(declared, defined);
}

/// The options as system variables: macros that `handlerton.cc` gives a meaning.
fn options_as_variables() -> String {
    let mut text = String::from(
        "/* The engine's options. Made from its table by src/abi_test.rs; HIGHWATER_WRITE=1 writes it. */\n",
    );
    let values = Options::default().values();
    for (option, (name, value)) in OPTION_TABLE.iter().zip(values) {
        // A server's rows are larger than a page of 4 KiB likes: what InnoDB has.
        let value = if name == "page_size" { "16KiB".to_string() } else { value };
        let is_number = !value.is_empty()
            && value.chars().all(|c| c.is_ascii_digit())
            && !option.accepts.contains("auto")
            && !option.accepts.contains('.');
        let doc = option.doc.replace('"', "'");
        let dynamic = u8::from(option.is_dynamic);
        match value.as_str() {
            _ if ["create_if_missing", "lock_wait_timeout_ms"].contains(&name) => continue,
            number if is_number => writeln!(text, "HIGHWATER_NUMBER({name}, {number}ULL, {dynamic}, \"{doc}\")"),
            "on" | "off" if option.accepts == "on or off" => {
                let value = if value == "on" { "TRUE" } else { "FALSE" };
                writeln!(text, "HIGHWATER_SWITCH({name}, {value}, {dynamic}, \"{doc}\")")
            }
            other => writeln!(text, "HIGHWATER_TEXT({name}, \"{other}\", {dynamic}, \"{doc}\")"),
        }
        .expect("writing to a string");
    }
    text
}

#[test]
fn the_system_variables_are_the_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp/highwater_options.inc");
    let made = options_as_variables();
    if std::env::var_os("HIGHWATER_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), made, "{}", path.display());
}
