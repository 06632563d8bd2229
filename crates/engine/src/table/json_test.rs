//! What is JSON is taken, and of what is not the place of the mistake is named.

use super::*;
use proptest::prelude::*;

#[test]
fn a_mistake_has_its_place() {
    for (text, reason) in [
        ("", "no JSON: EOF while parsing a value at byte 0"),
        ("{\"a\": [1, 2", "no JSON: EOF while parsing a list at byte 11"),
        ("{\"a\" 1}", "no JSON: expected `:` at byte 5"),
        ("{a: 1}", "no JSON: key must be a string at byte 1"),
        ("[1 2]", "no JSON: expected `,` or `]` at byte 3"),
        ("[1,]", "no JSON: expected value at byte 3"),
        ("tru", "no JSON: EOF while parsing a value at byte 3"),
        ("nope", "no JSON: expected ident at byte 1"),
        ("'x'", "no JSON: expected value at byte 0"),
        ("01", "no JSON: invalid number at byte 1"),
        ("NaN", "no JSON: expected value at byte 0"),
        ("1 2", "no JSON: trailing characters at byte 2"),
        ("\"a\\x\"", "no JSON: invalid escape at byte 3"),
        ("{\n \"a\": \"b\",\n \"\u{e9}\": x}", "no JSON: expected value at byte 20"),
        ("\"two\nlines\"", "no JSON: control character (\\u0000-\\u001F) found while parsing a string at byte 4"),
    ] {
        assert_eq!(check(text), Err(reason.to_string()), "{text}");
    }
}

#[test]
fn all_of_the_grammar_is_taken() {
    let texts = ["null", " true ", "-0.5e+3", "1e999", "\"\\ud800\"", "{}", "[]", "{\"a\":1,\"a\":2}", "\t[\r\n{}]"];
    texts.iter().for_each(|text| assert_eq!(check(text), Ok(()), "{text}"));
}

#[test]
fn what_is_nested_deep_is_refused_without_a_deep_stack() {
    let nested = |depth: usize, open: &str, close: &str| open.repeat(depth) + "0" + &close.repeat(depth);
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        assert_eq!(check(&nested(MAX_DEPTH, open, close)), Ok(()));
        let refused = check(&nested(MAX_DEPTH + 1, open, close)).unwrap_err();
        assert_eq!(refused, format!("lists and objects are nested more than 100 deep at byte {}", 100 * open.len()));
        assert!(check(&open.repeat(1 << 20)).is_err());
    }
    // What is in a text nests nothing.
    assert_eq!(check(&format!("[\"{}\", \"\\\"{}\"]", "[".repeat(200), "{".repeat(200))), Ok(()));
    assert_eq!(check(&format!("[{}[]]", "[],".repeat(1000))), Ok(()));
}

proptest! {
    #[test]
    fn it_agrees_with_a_parser(text in "[\\[\\]{}:,\" 0-9a\\\\ntrue.eE+-]{0,24}") {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&text);
        // A number beyond f64 is one that the grammar takes.
        if parsed.as_ref().err().is_none_or(|error| !error.to_string().contains("out of range")) {
            prop_assert_eq!(check(&text).is_ok(), parsed.is_ok(), "{}", text);
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,60}") {
        let _ = check(&text);
    }
}
