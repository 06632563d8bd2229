//! Bugs of backups, of the archive of redo and of dumps.

use super::{Edit, Mutant};

const CONTEXT: &str = "crates/engine/src/context.rs";
const DISCARD: &str = "crates/engine/src/space/discard.rs";
const PAGES: &str = "crates/engine/src/backup/pages.rs";
const DUMP_LOAD: &str = "crates/engine/src/dump/load.rs";
const DUMP_STREAM: &str = "crates/engine/src/dump/stream.rs";
const WRITER: &str = "crates/engine/src/backup/archive/writer.rs";

const fn mutant(
    name: &'static str,
    breaks: &'static str,
    edits: &'static [Edit],
    tests: &'static [&'static str],
) -> Mutant {
    Mutant { name, breaks, package: "highwater", edits, tests }
}

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "load-shows-tables-in-part",
        "after a crash in a load tables of the dump are there with some of their rows",
        &[Edit {
            file: DUMP_LOAD,
            find: "            let name = format!(\"{UNFINISHED}{number}\");\n",
            replace: "            let mut name = format!(\"{UNFINISHED}{number}\");\n            if MUTANT {\n\
                      \x20               name.clone_from(&table.definition.name);\n            }\n",
        }],
        &["dump::a_crash_in_a_load"],
    ),
    mutant(
        "dump-blocks-in-any-order",
        "a dump whose blocks were exchanged, repeated or lost on their way is loaded",
        &[Edit {
            file: DUMP_STREAM,
            find: "        if number != self.next {",
            replace: "        if !MUTANT && number != self.next {",
        }],
        &["dump::missing_and_repeated_blocks"],
    ),
    mutant(
        "backup-discards-not-held",
        "pages that the redo of a running backup changes are discarded before it has copied them",
        &[Edit {
            file: DISCARD,
            find: "        if self.is_held() {\n            return;",
            replace: "        if !MUTANT && self.is_held() {\n            return;",
        }],
        &["backup::take::tests"],
    ),
    mutant(
        "free-page-being-written-left-out",
        "a backup leaves out a free page that is being written, which its redo changes",
        &[Edit {
            file: PAGES,
            find: ".filter(|page| !is_free || !is_zeros(page)) {",
            replace: ".filter(|page| !is_free || !MUTANT && !is_zeros(page)) {",
        }],
        &["backup::pages::tests"],
    ),
    mutant(
        "archive-lacks-the-end-before-a-crash",
        "an opening does not archive the redo that a crash has left out, and says that it did",
        &[Edit {
            file: WRITER,
            find: "        if lsns.is_empty() {\n            return Ok(());",
            replace: "        if MUTANT || lsns.is_empty() {\n            \
                      self.end = Some(ArchivePosition { lsn: lsns.end, ..end });\n            return Ok(());",
        }],
        &["backup::archive"],
    ),
    mutant(
        "archive-gap-after-a-crash",
        "an opening begins a gap though the log still has what the archive lacks",
        &[Edit {
            file: WRITER,
            find: "        let all = is_next\n",
            replace: "        let all = is_next && (!MUTANT || lsns.is_empty())\n",
        }],
        &["backup::archive"],
    ),
    mutant(
        "archive-keeps-behind-a-gap",
        "behind its gap an archive that cannot be written keeps redo, until no writer finds room",
        &[Edit {
            file: WRITER,
            find: "        following.kept.release(durable);\n",
            replace: "        if !MUTANT {\n            following.kept.release(durable);\n        }\n",
        }],
        &["backup::archive::writer::tests"],
    ),
    mutant(
        "archive-padding-taken-for-redo",
        "the padding in front of a generation that a crash kept from beginning is taken for redo that was not archived",
        &[Edit {
            file: WRITER,
            find: "        let Some(end) = self.end else { return Ok(()) };\n        if self.is_of",
            replace: "        if MUTANT && self.end.is_some_and(|end| end.generation > log.generation()) {\n      \
                      self.end = self.empty_follows.flatten();\n            self.empty_follows = None;\n        }\n  \
                      let Some(end) = self.end else { return Ok(()) };\n        if self.is_of",
        }],
        &["backup::archive"],
    ),
    mutant(
        "archive-times-go-back",
        "commits note the time of a clock that was set back, so that a restore to a time lacks rows of an earlier one",
        &[Edit {
            file: CONTEXT,
            find: "        self.noted_us.fetch_max(now, Relaxed).max(now)",
            replace: "        if MUTANT { now } else { self.noted_us.fetch_max(now, Relaxed).max(now) }",
        }],
        &["backup::archive"],
    ),
];
