//! Files of a layer that use each other, the order of the rooms inside a layer, and types whose methods are in many
//! files.
//!
//! Rules
//! 1. A *circle* is a largest set of files of one layer each of which uses each other one, directly or through others.
//!    There is none.
//! 2. A layer in [`ROOMS`] has its rooms in order: a room uses itself and those before it. A room is a file, or a
//!    folder without those of its files and folders that are rooms of their own. All files but `mod.rs` are in a room.
//! 3. The methods of a type are in at most [`MAX_FILES`] files; those of [`SPREAD`] in as many as it says.
//!
//! File A uses file B if a path in A's code leads to a name that B defines. A name that a `mod.rs` brings in or
//! re-exports is the file's that defines it; naming a module alone is no use of it.

use crate::layers::layer_of;
use crate::source::{code_without_comments, paths, use_tree};
use std::collections::{BTreeMap, BTreeSet};

/// The rooms of a layer, bottom first.
const ROOMS: &[(&str, &[&str])] = &[
    ("backup", &["files", "archive", "manifest", "maps", "pages", "until", "chain", "plan", "restore", "take"]),
    (
        "btree",
        &[
            "seek",
            "fill",
            "leaf",
            "hint",
            "restarts",
            "found",
            "parent_check",
            "search",
            "sibling",
            "estimate",
            "read_ahead",
            "non_resident",
            "free_classes",
            "structure",
            "split",
            "merge",
            "relocate",
            "given_up",
            "build",
            "check",
            "tree",
        ],
    ),
    (
        "change_buffer",
        &[
            "frames",
            "policy",
            "tree",
            "buffer",
            "add",
            "damaged_tree",
            "inspect",
            "lose",
            "merge",
            "opening",
            "steps",
            "wait",
        ],
    ),
    (
        "check",
        &[
            "bitmap", "digest", "report", "checker", "pages", "undo", "walk", "compare", "entries", "rows", "tables",
            "waiting",
        ],
    ),
    ("config", &["collations", "info", "value", "choices", "innodb"]),
    (
        "db",
        &[
            "open_overrides",
            "probe",
            "creation",
            "file_generations",
            "recovery_report",
            "archiving",
            "dropping",
            "gate",
            "threads",
            "open_parts",
            "background",
            "handle_thread",
            "expiry_thread",
            "interrupt_handle",
            "readers/socket",
            "readers/server",
            "changes/entry",
            "changes/sequences",
            "changes/change_log",
            "locked_tables",
            "txn_scratch",
            "prepared_list",
            "database",
            "table_ref",
            "schema_change",
            "table_change",
            "migration",
            "backup",
            "compact",
            "encryption",
            "observe",
            "runtime_options",
            "statistics",
            "deterministic",
            "counter_wait",
            "row_change",
            "write_txn",
            "deferred_end",
            "row_calls",
            "insert_many",
            "numbers",
            "lock_list",
            "prepared",
            "scan",
            "scan_steps",
            "read_txn",
            "column_iter",
            "columns",
            "delete_many",
            "lock_wait",
            "get_many",
            "interrupt",
            "transact",
            "statement",
            "upsert",
            "struct_calls",
            "visit",
            "session",
            "cursor",
            "raw",
            "index_build",
            "rebuild",
            "changes",
            "expiry",
            "readers",
            "opening",
        ],
    ),
    ("dump", &["head", "packing", "served", "stream", "load", "write"]),
    ("inspect", &["log", "op", "table", "file", "catalog", "page", "scan"]),
    (
        "lock",
        &[
            "holder",
            "counters",
            "deadlock",
            "key_bound",
            "interval_tree",
            "queue",
            "range_locks",
            "wait_policy",
            "waits",
            "row_locks",
            "system",
        ],
    ),
    (
        "log",
        &[
            "format",
            "group",
            "buffer",
            "space",
            "headers",
            "damage",
            "scan",
            "stream",
            "ring",
            "reservation",
            "writer",
            "commit",
            "ring_size",
            "growth",
            "shrinking",
            "checkpoint",
            "redo_log",
            "keep",
        ],
    ),
    ("mtr", &["buffers", "mini_transaction", "commit"]),
    ("page", &["bytes", "header", "lost", "varint", "node", "op"]),
    (
        "pool",
        &[
            "frames",
            "frame_list",
            "flush",
            "pacing",
            "lru",
            "supply",
            "pending",
            "load",
            "read_ahead",
            "buffer_pool",
            "calls",
            "cleaner",
        ],
    ),
    (
        "space",
        &[
            "layout",
            "freed_extents",
            "extent_map",
            "free_class",
            "header",
            "reserve",
            "state",
            "at_rest",
            "growth",
            "allocation",
            "truncation",
            "compaction",
            "discard",
        ],
    ),
    ("store", &["batch", "shared_sync", "out_of_place", "header", "in_place", "bootstrap", "hooks"]),
    (
        "table",
        &[
            "turns",
            "lock",
            "auto_increment",
            "catalog_trees",
            "datetime",
            "date",
            "decimal",
            "json",
            "uuid",
            "types",
            "unread",
            "column_index",
            "conversions",
            "value",
            "value_form",
            "key_part",
            "new_columns",
            "definition",
            "definition_form",
            "index",
            "schema",
            "schema_check",
            "schema_difference",
            "record",
            "definition_record",
            "statistics",
            "row_layout",
            "changes",
            "row",
            "owned_row",
            "from_value",
            "row_builder",
            "covered",
            "key",
            "catalog_entry",
            "catalog",
            "row_layouts",
            "table_change",
            "catalog_change",
            "version",
            "handle",
            "overflow_columns",
            "serde_rows",
        ],
    ),
];

/// Files that may have methods of one type.
const MAX_FILES: usize = 4;

/// Types whose methods are in more files than [`MAX_FILES`], by layer.
const SPREAD: &[(&str, &str, usize)] = &[
    ("change_buffer", "ChangeBuffer", 8),
    ("check", "Checker", 6),
    ("db", "Database", 23),
    ("db", "Scan", 7),
    ("db", "WriteTxn", 19),
    ("space", "Space", 8),
    ("store", "OutOfPlace", 7),
    ("txn", "RowOp", 8),
    ("txn", "Txn", 7),
    ("txn", "TxnSystem", 8),
];

/// What is wrong in the engine's files, given by their paths under `crates/engine/src` and their text; without tests.
pub(crate) fn check(files: &BTreeMap<String, String>) -> Vec<String> {
    let uses = Modules::new(files).uses();
    let mut findings = check_circles(&uses);
    findings.extend(check_rooms(files, &uses, ROOMS));
    findings.extend(check_spread(files, SPREAD));
    findings
}

/// Which files each file uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The engine's modules, each by its path from the crate's root.
struct Modules<'t> {
    by_path: BTreeMap<Vec<String>, Module<'t>>,
}

struct Module<'t> {
    file: &'t str,
    /// The paths that the code names, and whether a `use` names them for others.
    named: Vec<(String, bool)>,
    /// What each name that a `use` brings in stands for.
    brought: BTreeMap<String, String>,
}

impl<'t> Modules<'t> {
    fn new(files: &'t BTreeMap<String, String>) -> Modules<'t> {
        let by_path = files.iter().map(|(file, text)| (module_of(file), Module::new(file, text))).collect();
        Modules { by_path }
    }

    fn uses(&self) -> Uses {
        let used = |own: &Vec<String>, module: &Module<'t>| -> BTreeSet<String> {
            let paths = module.named.iter().filter(|(_, for_others)| !for_others);
            let files = paths.filter_map(|(path, _)| self.file_of(own, path, 0));
            files.filter(|file| *file != module.file).map(Into::into).collect()
        };
        self.by_path.iter().map(|(own, module)| (module.file.to_string(), used(own, module))).collect()
    }

    /// The file that defines what a path names that is written in module `own`.
    fn file_of(&self, own: &[String], path: &str, depth: usize) -> Option<&'t str> {
        let mut words = path.split("::").peekable();
        let mut at = own.to_vec();
        let mut is_bound = false;
        while let Some(word) = words.next_if(|word| matches!(*word, "crate" | "self" | "super")) {
            is_bound = true;
            match word {
                "crate" => at.clear(),
                "super" => drop(at.pop()?),
                _ => {}
            }
        }
        let first = *words.peek()?;
        if !is_bound && !self.is_module(&at, first) {
            // A name of the file's own, of another crate, or one that a `use` brought in.
            let stands_for = self.by_path.get(&at)?.brought.get(first).filter(|_| depth < 8)?;
            let rest = path.split_once("::").map_or(String::new(), |(_, rest)| format!("::{rest}"));
            return self.file_of(own, &format!("{stands_for}{rest}"), depth + 1).filter(|_| stands_for != first);
        }
        while words.next_if(|word| self.is_module(&at, word)).map(|word| at.push(word.to_string())).is_some() {}
        let name = words.next()?;
        let module = self.by_path.get(&at)?;
        match module.brought.get(name) {
            Some(path) if depth < 8 => self.file_of(&at, path, depth + 1),
            _ => Some(module.file),
        }
    }

    fn is_module(&self, parent: &[String], name: &str) -> bool {
        let mut path = parent.to_vec();
        path.push(name.to_string());
        self.by_path.contains_key(&path)
    }
}

impl<'t> Module<'t> {
    fn new(file: &'t str, text: &str) -> Module<'t> {
        let mut module = Module { file, named: Vec::new(), brought: BTreeMap::new() };
        for (_, line) in code_without_comments(text) {
            let is_use = use_tree(&line).is_some();
            let for_others = is_use && line.trim_start().starts_with("pub");
            for path in paths(&line) {
                if is_use && let Some(name) = path.rsplit("::").next() {
                    module.brought.insert(name.to_string(), path.clone());
                }
                module.named.push((path, for_others));
            }
        }
        module
    }
}

fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.strip_suffix(".rs").unwrap_or(file).split('/').map(Into::into).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// Every file that can be reached from a file within its layer.
fn reached<'u>(uses: &'u Uses, from: &'u str) -> BTreeSet<&'u str> {
    let layer = layer_of(from);
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        let next = uses.get(file).into_iter().flatten().filter(|file| layer_of(file) == layer);
        open.extend(next.map(String::as_str).filter(|file| found.insert(*file)));
    }
    found
}

/// The circles, each as its files in order.
fn circles(uses: &Uses) -> BTreeSet<Vec<&str>> {
    let all: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|file| (file.as_str(), reached(uses, file))).collect();
    let circle = |file: &&str| -> Vec<&str> {
        all[file].iter().copied().filter(|other| all.get(other).is_some_and(|back| back.contains(file))).collect()
    };
    all.keys().map(circle).filter(|files| files.len() > 1).collect()
}

/// Rule 1.
fn check_circles(uses: &Uses) -> Vec<String> {
    let finding =
        |files: Vec<&str>| format!("crates/engine/src: these files use each other in a circle: {}", files.join(", "));
    circles(uses).into_iter().map(finding).collect()
}

/// Rule 2.
fn check_rooms(files: &BTreeMap<String, String>, uses: &Uses, rooms: &[(&str, &[&str])]) -> Vec<String> {
    let mut findings = Vec::new();
    for (layer, rooms) in rooms {
        let place = |file: &str| {
            let name = file.strip_prefix(layer)?.strip_prefix('/')?;
            let name = name.strip_suffix(".rs").unwrap_or(name);
            let rest = |room: &str| name.strip_prefix(room);
            let is_in = |room: &str| rest(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            let all = rooms.iter().enumerate().filter(|(_, room)| is_in(room));
            all.max_by_key(|(_, room)| room.len()).map(|(place, _)| place)
        };
        let facade = format!("{layer}/mod.rs");
        for file in files.keys().filter(|file| layer_of(file) == Some(layer) && **file != facade) {
            let Some(own) = place(file) else {
                findings.push(format!("crates/engine/src/{file}: is in no room of {layer} (xtask/src/circles.rs)"));
                continue;
            };
            let above = uses[file].iter().filter(|used| place(used).is_some_and(|place| place > own));
            findings.extend(above.map(|used| format!("crates/engine/src/{file}: uses {used}, a room above it")));
        }
    }
    findings
}

/// The files that have methods of each type, by layer and type.
fn methods(files: &BTreeMap<String, String>) -> BTreeMap<(&str, String), BTreeSet<&str>> {
    let mut found: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in files {
        for (_, line) in code_without_comments(text) {
            if let Some(name) = type_of_impl(&line) {
                found.entry((layer_of(file).unwrap_or_default(), name)).or_default().insert(file);
            }
        }
    }
    found
}

/// The type that a line gives methods of its own.
fn type_of_impl(line: &str) -> Option<String> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        // The first bracket may hold others.
        Some(_) => rest.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!rest.contains(" for ") && !name.is_empty()).then_some(name)
}

/// Rule 3.
fn check_spread(files: &BTreeMap<String, String>, ratchet: &[(&str, &str, usize)]) -> Vec<String> {
    let found = methods(files);
    let row = |layer: &str, name: &str| ratchet.iter().find(|row| (row.0, row.1) == (layer, name));
    let many = found.iter().filter_map(|((layer, name), files)| {
        let (files, allowed) = (files.len(), row(layer, name).map_or(MAX_FILES, |row| row.2));
        (files > allowed).then(|| {
            format!("crates/engine/src/{layer}: the methods of {name} are in {files} files, {allowed} are allowed")
        })
    });
    let few = ratchet.iter().filter_map(|(layer, name, allowed)| {
        let files = found.get(&(*layer, name.to_string())).map_or(0, BTreeSet::len);
        (files < *allowed).then(|| {
            format!("crates/engine/src/{layer}: the methods of {name} are in {files} files, {allowed} in SPREAD")
        })
    });
    many.chain(few).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(file, text)| (file.to_string(), format!("//! X.\n{text}\n"))).collect()
    }

    fn used(all: &[(&str, &str)], file: &str) -> Vec<String> {
        let files = files(all);
        Modules::new(&files).uses()[file].iter().cloned().collect()
    }

    #[test]
    fn a_name_is_its_files_whichever_way_it_is_written() {
        let facade = ("pool/mod.rs", "mod lru;\nmod list;\npub use lru::Lru;\npub struct Pool;\n");
        let lru = ("pool/lru/mod.rs", "mod list;\npub use list::{List, NIL};\npub struct Lru;\n");
        let list = ("pool/lru/list.rs", "pub struct List;\n");
        for (line, file) in [
            ("use super::Lru;", "pool/lru/mod.rs"),
            ("use crate::pool::lru::List;", "pool/lru/list.rs"),
            ("use super::{lru::NIL, Pool as _};", "pool/lru/list.rs"),
            ("use super::lru;\nfn f() { lru::list::go() }", "pool/lru/list.rs"),
            ("fn f(x: super::Pool) {}", "pool/mod.rs"),
        ] {
            let found = used(&[facade, lru, list, ("pool/flush.rs", line)], "pool/flush.rs");
            assert!(found.iter().any(|found| found == file), "{line}: {found:?}");
        }
        assert!(used(&[facade, lru, list], "pool/mod.rs").is_empty(), "what is re-exported is not used");
        for line in ["use super::lru;", "// super::Pool", "use std::sync::Arc;\nfn f() { Arc::new(1) }"] {
            assert!(used(&[facade, lru, list, ("pool/flush.rs", line)], "pool/flush.rs").is_empty(), "{line}");
        }
    }

    #[test]
    fn files_that_use_each_other_are_found() {
        let all = files(&[
            ("pool/mod.rs", "use lru::Lru;\npub struct Pool;"),
            ("pool/lru.rs", "use super::flush::Flush;\npub struct Lru;"),
            ("pool/flush.rs", "use super::Pool;\npub struct Flush;"),
            ("pool/list.rs", "pub struct List;"),
            ("log/mod.rs", "use crate::pool::Pool;"),
        ]);
        let uses = Modules::new(&all).uses();
        assert_eq!(circles(&uses).into_iter().collect::<Vec<_>>(), [["pool/flush.rs", "pool/lru.rs", "pool/mod.rs"]]);
        assert_eq!(check_circles(&uses).len(), 1);
    }

    #[test]
    fn a_room_uses_only_those_before_it() {
        let all = files(&[
            ("pool/mod.rs", "use lru::Lru;"),
            ("pool/lru/list.rs", "use crate::pool::flush::Flush;\nuse super::Lru;"),
            ("pool/lru/mod.rs", "pub struct Lru;"),
            ("pool/flush.rs", "pub struct Flush;"),
        ]);
        let uses = Modules::new(&all).uses();
        let found = |rooms: &[&str]| check_rooms(&all, &uses, &[("pool", rooms)]).len();
        assert_eq!((found(&["flush", "lru"]), found(&["lru", "flush"]), found(&["flush"])), (0, 1, 2));
        assert_eq!((found(&["lru", "flush", "lru/list"]), found(&["lru/list", "flush", "lru"])), (0, 2), "in a folder");
    }

    #[test]
    fn types_with_methods_in_many_files_are_found() {
        let with = |line: &str| vec![line.to_string(); MAX_FILES + 1];
        for (lines, findings) in [
            (with("impl Pool {"), 1),
            (with("impl<'p, T: Into<u8>> Pool<'p, T> {"), 1),
            (with("impl Drop for Pool {"), 0),
            (with("impl Pool {")[1..].to_vec(), 0),
        ] {
            let named = lines.iter().enumerate().map(|(n, line)| (format!("pool/f{n}.rs"), line.clone()));
            assert_eq!(check_spread(&named.collect(), &[]).len(), findings, "{lines:?}");
        }
        let one = files(&[("pool/a.rs", "impl Pool {")]);
        assert_eq!(check_spread(&one, &[("pool", "Pool", 6)]).len(), 1, "the ratchet goes down");
    }
}
