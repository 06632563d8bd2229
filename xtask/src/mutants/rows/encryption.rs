//! Bugs of encryption at rest.

use super::{Edit, Mutant, edit, of_engine};

const XTS: &str = "crates/storage/src/encryption/xts.rs";
const TABLE: &str = "crates/storage/src/encryption/table.rs";
const SET: &str = "crates/storage/src/set/storage_set.rs";
const BACKUP: &str = "crates/engine/src/db/backup.rs";

const TESTS: &[&str] = &["encryption::"];

const fn mutant(name: &'static str, breaks: &'static str, edits: &'static [Edit]) -> Mutant {
    Mutant { package: "highwater-storage", ..of_engine(name, breaks, edits, TESTS) }
}

pub const MUTANTS: &[Mutant] = &[
    mutant(
        "encryption-one-tweak",
        "all units of a file are encrypted with the same tweak",
        &[edit(XTS, "u128::from(number).to_le_bytes()", "u128::from(if MUTANT { 0 } else { number }).to_le_bytes()")],
    ),
    mutant(
        "encryption-decrypted-zeros",
        "units that were never written read as noise",
        &[edit(XTS, "any(|byte| *byte != 0)", "any(|byte| MUTANT || *byte != 0)")],
    ),
    mutant(
        "encryption-one-key",
        "all files of a folder have the same key",
        &[edit(TABLE, "&self.keys[file as usize]", "&self.keys[if MUTANT { 0 } else { file as usize }]")],
    ),
    mutant(
        "encryption-new-table-for-a-full-folder",
        "a key that is given for a database that is not encrypted makes new keys",
        &[
            edit(TABLE, "(None, Some(_), Opening::Existing) =>", "(None, Some(_), Opening::Existing) if !MUTANT =>"),
            edit(TABLE, "(None, Some(key), Opening::New) =>", "(None, Some(key), _) =>"),
        ],
    ),
    mutant(
        "encryption-plain-temporary-files",
        "temporary files of an encrypted database are not encrypted",
        &[edit(SET, "if self.is_encrypted() { EncryptedDevice", "if self.is_encrypted() && !MUTANT { EncryptedDevice")],
    ),
    of_engine(
        "encryption-plain-backup",
        "a backup of an encrypted database holds its pages as they are",
        &[edit(BACKUP, "if storage.is_encrypted() {", "if storage.is_encrypted() && !MUTANT {")],
        &["encryption::nothing_leaves"],
    ),
];
