//! The engine's public interface and its table of options, read from the source, against what is played.

use super::options::OPTIONS;
use crate::simulation::{MAX_STEPS, Simulation};
use highwater::config::OPTION_TABLE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::{ImplItem, Item, Type, UseTree, Visibility};

/// Methods (`Type::method`, or `Type::*` for all of a type) that are exempt, each with a reason.
const EXEMPT: &[(&str, &str)] = &[
    ("Row::*", "reads of a row that was already delivered; the rows of every answer are read with some of them"),
    ("RowRef::*", "as Row"),
    ("Value::*", "values, without a database; tested beside their code"),
    ("ValueRef::*", "as Value"),
    ("Type::*", "as Value"),
    ("Decimal::*", "as Value"),
    ("DateTime::*", "as Value"),
    ("Date::*", "as Value"),
    ("Time::*", "as Value"),
    ("Uuid::*", "as Value"),
    ("TableChange::*", "what is to be changed, without a database"),
    ("TableDefinition::*", "what a table is, without a database"),
    ("Collations::*", "what a program gives when it opens a database; crates/engine/tests/public/collations.rs"),
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
         crates/engine/tests/public/raw.rs play all of the raw door",
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
    ("WriteTxn::watch", "what other threads see; crates/engine/tests/public/lock_list.rs"),
    ("TxnWatch::*", "as WriteTxn::watch"),
    ("Database::row_locks", "as WriteTxn::watch"),
    ("Database::lock_waiters", "as WriteTxn::watch"),
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

/// Every public method of an exported type as `Type::method`, and every exported function.
fn public_calls() -> BTreeSet<String> {
    let (exported, mut paths, mut calls) = (exported(), Vec::new(), BTreeSet::new());
    sources(&engine(), &mut paths);
    for path in &paths {
        for item in parsed(path).items {
            match item {
                Item::Fn(function) if matches!(function.vis, Visibility::Public(_)) => {
                    let name = function.sig.ident.to_string();
                    calls.extend(exported.contains(&name).then_some(name));
                }
                Item::Impl(item) if item.trait_.is_none() => {
                    let Type::Path(path) = &*item.self_ty else { continue };
                    let of = path.path.segments.last().unwrap().ident.to_string();
                    if !exported.contains(&of) {
                        continue;
                    }
                    let public = item.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(method) => Some(method),
                        _ => None,
                    });
                    let public = public.filter(|method| matches!(method.vis, Visibility::Public(_)));
                    let public = public.filter(|method| !is_for_tests(&method.attrs));
                    calls.extend(public.map(|method| format!("{of}::{}", method.sig.ident)));
                }
                _ => {}
            }
        }
    }
    calls
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
