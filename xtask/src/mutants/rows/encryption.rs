//! Bugs of encryption at rest.

use super::{Edit, Mutant, edit, of_engine};

const XTS: &str = "crates/storage/src/encryption/xts.rs";
const TABLE: &str = "crates/storage/src/encryption/table.rs";
const SET: &str = "crates/storage/src/set/storage_set.rs";
const SEALED: &str = "crates/storage/src/encryption/sealed.rs";
const TAKE: &str = "crates/engine/src/backup/take.rs";
const WRITER: &str = "crates/engine/src/backup/archive/writer.rs";
const KEYS: &str = "crates/engine/src/db/encryption.rs";

const TESTS: &[&str] = &["encryption::"];

const fn mutant(name: &'static str, breaks: &'static str, edits: &'static [Edit]) -> Mutant {
    Mutant { package: "highwater-storage", ..of_engine(name, breaks, edits, TESTS) }
}

pub(super) const MUTANTS: &[Mutant] = &[
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
    mutant(
        "encryption-records-in-any-order",
        "records of an encrypted copy open in another order than they were written",
        &[edit(SEALED, "number.to_le_bytes()", "if MUTANT { 0 } else { number }.to_le_bytes()")],
    ),
    of_engine(
        "encryption-plain-backup",
        "a backup of an encrypted database holds its pages as they are",
        &[edit(
            TAKE,
            "|name| NewFile::create(dest, name, key.as_ref())",
            "|name| NewFile::create(dest, name, key.as_ref().filter(|_| !MUTANT))",
        )],
        &["encryption::nothing_leaves"],
    ),
    of_engine(
        "encryption-plain-archive",
        "the redo of an encrypted database is archived as it is",
        &[edit(WRITER, "Some(sealer) if !groups.is_empty()", "Some(sealer) if !MUTANT && !groups.is_empty()")],
        &["encryption::nothing_leaves"],
    ),
    of_engine(
        "encryption-archive-keeps-the-old-key",
        "after a change of the key the archive of redo needs the old one",
        &[edit(KEYS, "(Some(archiving), Some((_, table))) =>", "(Some(archiving), Some((_, table))) if !MUTANT =>")],
        &["encryption::nothing_leaves"],
    ),
];
