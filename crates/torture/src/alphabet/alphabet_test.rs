//! The engine's public interface and its table of options, read from the source, against what is played.

use super::options::OPTIONS;
use crate::simulation::{MAX_STEPS, Simulation};
use highwater::config::OPTION_TABLE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::{GenericArgument, ImplItem, Item, PathArguments, ReturnType, Type, UseTree, Visibility};

/// Methods (`Type::method`, or `Type::*` for all of a type) that are exempt, each with a reason.
const EXEMPT: &[(&str, &str)] = &[
    ("Row::*", "reads of a row that was already delivered; the rows of every answer are read with some of them"),
    ("RowRef::*", "as Row"),
    ("Value::*", "values, without a database; tested next to their code"),
    ("ValueRef::*", "as Value"),
    ("Type::*", "as Value"),
    ("Decimal::*", "as Value"),
    ("DateTime::*", "as Value"),
    ("Date::*", "as Value"),
    ("Time::*", "as Value"),
    ("Uuid::*", "as Value"),
    ("TableChange::*", "what is to be changed, without a database"),
    ("TableDefinition::*", "what a table is, without a database"),
    ("PageSize::*", "a value of an option, without a database"),
    ("MergeAtClose::*", "as PageSize"),
    ("ProbeRecord::*", "what was measured of a device, without a database"),
    ("Collations::*", "what a program gives when it opens a database; crates/engine/tests/public/collations.rs"),
    ("Collation::*", "as Collations"),
    ("Index::of", "how an index that is there would be written, without a database; salvage calls it"),
    ("Schema::of", "as Index::of"),
    (
        "Database::in_memory",
        "the simulation has databases in memory that can lose their power (Database::open_storage)",
    ),
    ("Database::in_memory_with", "as Database::in_memory"),
    ("Database::is_encrypted", "what its set is; one simulated database of eight is encrypted (`Setting::over`)"),
    ("Database::rotate_key", "a file in a folder; crates/engine/tests/public/encryption.rs"),
    ("rotate_key", "as Database::rotate_key"),
    ("Schema::check", "judges a schema without a database; `create_table` calls it"),
    (
        "Database::open_reader",
        "through a socket in a folder, of which there is none in a simulation; crates/engine/tests/public/readers.rs \
         and `torture crash`",
    ),
    ("Reader::*", "as Database::open_reader"),
    ("ReaderSnapshot::*", "as Database::open_reader"),
    ("ReaderScan::*", "as Database::open_reader"),
    ("ReaderChanges::*", "as Database::open_reader"),
    ("StatsSnapshot::*", "sums of counters that were already read"),
    ("LatencySnapshot::*", "sums of a histogram that was already read"),
    ("CheckReport::*", "a report that was already made"),
    ("CheckCounts::*", "as CheckReport"),
    ("Error::*", "what an error is"),
    ("MetricsFormat::*", "names of formats, without a database"),
    ("Database::recovery_report", "what its opening did; crates/engine/tests/public/opening.rs"),
    ("RecoveryReport::*", "sums of a report that was already made"),
    ("DumpReport::*", "sums of a report that was already made"),
    ("Dump::tables", "what was already read; crates/engine/tests/public/dump.rs"),
    ("Dump::page_bytes", "as Dump::tables"),
    ("Dump::program", "as Dump::tables"),
    ("Table::warnings", "words about a definition; crates/engine/tests/public/long_keys.rs"),
    ("Table::values_of", "values of a struct, by serde; crates/engine/src/table/serde_rows"),
    ("WriteTxn::insert_from", "WriteTxn::insert of such values"),
    ("WriteTxn::upsert_from", "WriteTxn::upsert of such values"),
    ("Xid::*", "names, without a database"),
    ("Session::prepare", "as WriteTxn::prepare"),
    (
        "RawTable::create",
        "Database::create_table; the fuzzing target `raw` (internals/raw_calls.rs) and \
         crates/engine/tests/public/raw.rs play all of the raw API",
    ),
    ("RawTable::open", "Database::table"),
    ("RawTable::open_by_create_id", "as RawTable::create"),
    ("RawTable::table", "what it was made of"),
    ("RawTable::create_id", "as RawTable::create"),
    ("RawTable::definition", "Table::definition"),
    ("RawTable::approximate_entries", "an estimate; as RawTable::create"),
    ("RawTable::unlock", "as RawTable::create"),
    ("RawTable::duplicate_of", "as RawTable::create"),
    ("RawCursor::set_range", "as RawTable::create"),
    ("RawCursor::values", "a test walks along with a cursor that reads row by row"),
    ("WriteTxn::watch", "what other threads see; crates/engine/tests/public/lock_list.rs"),
    ("TxnWatch::*", "as WriteTxn::watch"),
    ("Database::row_locks", "as WriteTxn::watch"),
    ("Database::lock_waiters", "as WriteTxn::watch"),
    ("Database::observe_lock_waits", "as WriteTxn::watch; its example waits"),
];

/// Options that are not drawn, and why.
const EXEMPT_OPTIONS: &[(&str, &str)] = &[
    ("max_readers", "as Database::open_reader"),
    ("log_dir", "a place of files; crates/cli/tests/program/log_device.rs and the tests of the storage's sets"),
    ("key_file", "a file; `Setting::over` encrypts sets in memory; crates/cli/tests/program/encryption.rs"),
    (
        "redo_archive",
        "a place of files; restores to any moment are tested in crates/engine/tests/public/point_in_time.rs",
    ),
];

/// Databases whose lives together play every letter.
const DATABASES: u64 = 36;
const LIVES: u32 = 6;

fn engine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src")
}

fn parsed(path: &Path) -> syn::File {
    let text = std::fs::read_to_string(path).unwrap();
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "models" => sources(&path, into),
            false if name.ends_with(".rs") && !name.ends_with("_test.rs") => into.push(path),
            _ => {}
        }
    }
}

fn names_of(tree: &UseTree, into: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => names_of(&path.tree, into),
        UseTree::Group(group) => group.items.iter().for_each(|tree| names_of(tree, into)),
        UseTree::Name(name) => drop(into.insert(name.ident.to_string())),
        UseTree::Rename(rename) => drop(into.insert(rename.rename.to_string())),
        UseTree::Glob(_) => panic!("lib.rs exports by names"),
    }
}

/// The names that `lib.rs` and its module `raw` export.
fn exported() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let files = ["lib.rs", "db/raw/mod.rs"].map(|file| parsed(&engine().join(file)).items);
    for item in files.into_iter().flatten() {
        match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => names_of(&item.tree, &mut names),
            _ => {}
        }
    }
    names
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// Every public method of an exported type as `Type::method`, and every exported function, with its signature.
fn public_signatures() -> Vec<(String, syn::Signature)> {
    let (exported, mut paths, mut calls) = (exported(), Vec::new(), Vec::new());
    sources(&engine(), &mut paths);
    // Nothing of the layer `store` is public; a type of its own has an option's name.
    for path in paths.iter().filter(|path| !path.starts_with(engine().join("store"))) {
        for item in parsed(path).items {
            match item {
                Item::Fn(function) if matches!(function.vis, Visibility::Public(_)) => {
                    let name = function.sig.ident.to_string();
                    calls.extend(exported.contains(&name).then_some((name, function.sig)));
                }
                Item::Impl(item) if item.trait_.is_none() => {
                    let Type::Path(path) = &*item.self_ty else { continue };
                    let of = path.path.segments.last().unwrap().ident.to_string();
                    if !exported.contains(&of) {
                        continue;
                    }
                    let public = item.items.into_iter().filter_map(|item| match item {
                        ImplItem::Fn(method) => Some(method),
                        _ => None,
                    });
                    let public = public.filter(|method| matches!(method.vis, Visibility::Public(_)));
                    let public = public.filter(|method| !is_for_tests(&method.attrs));
                    calls.extend(public.map(|method| (format!("{of}::{}", method.sig.ident), method.sig)));
                }
                _ => {}
            }
        }
    }
    calls
}

fn public_calls() -> BTreeSet<String> {
    public_signatures().into_iter().map(|(name, _)| name).collect()
}

fn fits(pattern: &str, call: &str) -> bool {
    pattern == call || pattern.strip_suffix('*').is_some_and(|start| call.starts_with(start))
}

/// What these databases play. A new public call needs a letter that plays it, or an exemption with a reason.
#[test]
fn every_public_call_is_played_or_exempt() {
    let calls = public_calls();
    assert!(calls.contains("WriteTxn::insert") && calls.contains("salvage") && calls.len() > 80, "{calls:?}");
    let mut played = BTreeSet::new();
    for seed in 0..DATABASES {
        let mut simulation = Simulation::new(seed, MAX_STEPS);
        simulation.run(LIVES).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        played.extend(simulation.played().names());
    }
    let is_exempt = |call: &str| EXEMPT.iter().any(|(pattern, _)| fits(pattern, call));
    let missing: Vec<&String> =
        calls.iter().filter(|call| !played.contains(call.as_str()) && !is_exempt(call)).collect();
    assert!(missing.is_empty(), "neither played nor exempt: {missing:?}");
    let unknown: Vec<_> = played.iter().filter(|name| !calls.contains(**name)).collect();
    assert!(unknown.is_empty(), "played, and not public: {unknown:?}");
    let idle: Vec<_> = EXEMPT.iter().filter(|(pattern, _)| !calls.iter().any(|call| fits(pattern, call))).collect();
    assert!(idle.is_empty(), "exempt, and not public: {idle:?}");
}

#[test]
fn every_option_is_drawn_or_exempt() {
    let drawn = OPTIONS.iter().map(|drawn| drawn.name).chain(EXEMPT_OPTIONS.iter().map(|(name, _)| *name));
    let known: BTreeSet<&str> = OPTION_TABLE.iter().map(|option| option.name).collect();
    assert_eq!(drawn.clone().count(), known.len(), "an option stands twice, or is missing");
    assert_eq!(drawn.collect::<BTreeSet<_>>(), known);
}

/// Types of the standard library, and names that a signature declares itself.
const STD: &[&str] = &[
    "Self",
    "Option",
    "Result",
    "Vec",
    "String",
    "str",
    "bool",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "usize",
    "i32",
    "i64",
    "i128",
    "f64",
    "Path",
    "PathBuf",
    "Duration",
    "Arc",
    "Into",
    "AsRef",
    "From",
    "Iterator",
    "IntoIterator",
    "Item",
    "FnMut",
    "FnOnce",
    "Fn",
    "ControlFlow",
    "Range",
    "Read",
    "Write",
    "Send",
    "Sync",
    "Error",
    "Display",
    "Sized",
    "Serialize",
    "Deserialize",
];

/// The names in a type, with those of its parameters.
fn names_in(ty: &Type, into: &mut BTreeSet<String>) {
    match ty {
        Type::Path(path) => names_in_path(&path.path, into),
        Type::Reference(one) => names_in(&one.elem, into),
        Type::Slice(one) => names_in(&one.elem, into),
        Type::Array(one) => names_in(&one.elem, into),
        Type::Paren(one) => names_in(&one.elem, into),
        Type::Tuple(all) => all.elems.iter().for_each(|one| names_in(one, into)),
        Type::ImplTrait(one) => names_in_bounds(one.bounds.iter(), into),
        Type::TraitObject(one) => names_in_bounds(one.bounds.iter(), into),
        _ => {}
    }
}

fn names_in_bounds<'t>(bounds: impl Iterator<Item = &'t syn::TypeParamBound>, into: &mut BTreeSet<String>) {
    for bound in bounds {
        if let syn::TypeParamBound::Trait(bound) = bound {
            names_in_path(&bound.path, into);
        }
    }
}

fn names_in_path(path: &syn::Path, into: &mut BTreeSet<String>) {
    let last = path.segments.last().unwrap();
    into.insert(last.ident.to_string());
    match &last.arguments {
        PathArguments::None => {}
        PathArguments::AngleBracketed(all) => all.args.iter().for_each(|one| match one {
            GenericArgument::Type(ty) => names_in(ty, into),
            GenericArgument::AssocType(bound) => names_in(&bound.ty, into),
            _ => {}
        }),
        PathArguments::Parenthesized(call) => {
            call.inputs.iter().for_each(|one| names_in(&one.ty, into));
            names_in_output(&call.output, into);
        }
    }
}

fn names_in_output(output: &ReturnType, into: &mut BTreeSet<String>) {
    if let ReturnType::Type(_, ty) = output {
        names_in(ty, into);
    }
}

/// What a program has to name when it keeps what a call returns, or makes what it takes.
fn names_of_call(signature: &syn::Signature) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for input in &signature.inputs {
        if let syn::FnArg::Typed(input) = input {
            names_in(&input.ty, &mut names);
        }
    }
    names_in_output(&signature.output, &mut names);
    for parameter in signature.generics.type_params() {
        names_in_bounds(parameter.bounds.iter(), &mut names);
    }
    for parameter in signature.generics.type_params() {
        names.remove(&parameter.ident.to_string());
    }
    names
}

/// A program can write down what a call takes and returns, and every value of an option, with names of the root.
#[test]
fn every_type_that_a_program_needs_is_at_the_root() {
    let exported = exported();
    // Parameters of types have one letter. What a probe measured is in the module `inspect`.
    let is_named = |name: &String| {
        exported.contains(name) || STD.contains(&name.as_str()) || name.len() == 1 || name == "Evidence"
    };
    let mut missing = Vec::new();
    for (call, signature) in public_signatures() {
        let names = names_of_call(&signature);
        missing.extend(names.into_iter().filter(|name| !is_named(name)).map(|name| format!("{call}: {name}")));
    }
    let config = std::fs::read_to_string(engine().join("config/mod.rs")).unwrap();
    let table = config.split("\noptions! {").nth(1).and_then(|table| table.split("\n}\n").next()).unwrap();
    let is_option = |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase());
    let fields = table.lines().filter_map(|line| line.strip_prefix("    ")).filter(is_option);
    let types =
        fields.filter_map(|line| line.split_once("): ").or_else(|| line.split_once(": "))?.1.split(" = ").next());
    let bare = |ty: &str| ty.trim_start_matches("Option<").trim_end_matches('>').to_string();
    let types: Vec<String> = types.map(bare).collect();
    assert!(types.len() == OPTION_TABLE.len(), "{types:?}");
    let is_plain = |name: &String| ["f32", "PathBuf"].contains(&name.as_str());
    missing.extend(
        types.into_iter().filter(|name| !is_named(name) && !is_plain(name)).map(|name| format!("Options: {name}")),
    );
    assert!(missing.is_empty(), "not at the root: {missing:#?}");
}
