//! Bugs of the journal of a store in place.

use super::{Edit, Mutant, edit, of_engine};

const JOURNAL: &str = "crates/engine/src/store/in_place/journal.rs";
const SCAN: &str = "crates/engine/src/store/in_place/journal_scan.rs";
const REPAIR: &str = "crates/engine/src/store/in_place/repair.rs";
const BOOTSTRAP: &str = "crates/engine/src/store/bootstrap.rs";

const TESTS: &[&str] = &["in_place::journal::tests"];

const fn mutant(name: &'static str, breaks: &'static str, edits: &'static [Edit]) -> Mutant {
    of_engine(name, breaks, edits, TESTS)
}

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "journal-places-before-images-are-durable",
        "pages are written to their places before their images are durable",
        &[edit(
            JOURNAL,
            "self.stats.journal_syncs.add(u64::from(self.file.sync()?));",
            "if !MUTANT {\n                    self.stats.journal_syncs.add(u64::from(self.file.sync()?));\n\
             \x20               }",
        )],
    ),
    mutant(
        "journal-turn-without-sync",
        "segments are overwritten though their pages are not durable in their places",
        &[edit(
            JOURNAL,
            "self.stats.data_syncs.add(u64::from(data.sync()?));",
            "if !MUTANT {\n            self.stats.data_syncs.add(u64::from(data.sync()?));\n        }",
        )],
    ),
    mutant(
        "journal-turn-during-a-batch",
        "a turn does not wait for the batches that are on their way to their places",
        &[edit(
            JOURNAL,
            "        let _alone = self.in_flight.write();\n        let mut position = self.position.lock();\n        \
             if position.free == 0",
            "        let _alone = (!MUTANT).then(|| self.in_flight.write());\n        \
             let mut position = self.position.lock();\n        if position.free == 0",
        )],
    ),
    mutant(
        "journal-newest-batch-overwritten",
        "a turn frees the segment with the newest durable batch as well",
        &[edit(
            JOURNAL,
            "        position.free = self.segments - 1;\n        position.is",
            "        position.free = self.segments - u64::from(!MUTANT);\n        position.is",
        )],
    ),
    mutant(
        "journal-numbers-begin-again",
        "an opening gives numbers to batches that were given before",
        &[edit(
            JOURNAL,
            "layout.offset_of(segment + 1), scanned.newest + UNKNOWN + 1)",
            "layout.offset_of(segment + 1), if MUTANT { 1 } else { scanned.newest + UNKNOWN + 1 })",
        )],
    ),
    mutant(
        "journal-discard-before-a-batch-says-so",
        "images are discarded before a durable batch says so",
        &[edit(
            JOURNAL,
            "        position.is_discard_due = self.discards;\n",
            "        position.is_discard_due = self.discards;\n        if MUTANT && self.discards {\n            \
             let (from, to) = (self.layout.offset_of(0), self.layout.offset_of(self.segments));\n            \
             let _ = self.file.device().discard(from, to - from);\n        }\n",
        )],
    ),
    mutant(
        "journal-settled-is-not-noted",
        "a batch does not say what was durable before it",
        &[edit(
            JOURNAL,
            "retired: self.retired.load(SeqCst), offset }",
            "retired: if MUTANT { 0 } else { self.retired.load(SeqCst) }, offset }",
        )],
    ),
    mutant(
        "journal-never-needed",
        "the log's header does not say that the journal is needed",
        &[edit(
            JOURNAL,
            "Mark { newest, is_needed: newest > self.retired.load(SeqCst) }",
            "Mark { newest, is_needed: !MUTANT && newest > self.retired.load(SeqCst) }",
        )],
    ),
    mutant(
        "journal-loss-is-not-noticed",
        "a journal that ends too early is taken as it is",
        &[edit(SCAN, "            if mark.is_needed {\n", "            if mark.is_needed && !MUTANT {\n")],
    ),
    mutant(
        "journal-older-image-wins",
        "of several images of a page the oldest is put back",
        &[edit(
            SCAN,
            "images.sort_by_key(|image| std::cmp::Reverse(image.batch))",
            "images.sort_by_key(|image| if MUTANT { image.batch } else { u64::MAX - image.batch })",
        )],
    ),
    mutant(
        "journal-image-with-the-same-lsn-ignored",
        "a page that changed without a new LSN stays as it was",
        &[edit(
            SCAN,
            "(of_place == of_image && place != image)",
            "(!MUTANT && of_place == of_image && place != image)",
        )],
    ),
    mutant(
        "journal-images-not-durable-at-repair",
        "an opening writes places from images that a killed process left behind unsynced",
        &[edit(REPAIR, "    doublewrite.sync()?;\n", "    if !MUTANT {\n        doublewrite.sync()?;\n    }\n")],
    ),
    mutant(
        "journal-places-not-durable-at-repair",
        "an opening counts what a killed process wrote to places as durable",
        &[edit(REPAIR, "    data.sync()?;\n", "    if !MUTANT {\n        data.sync()?;\n    }\n")],
    ),
    mutant(
        "journal-not-looked-at-before-the-repair",
        "page 0 is judged by what is in its place, though the journal has a newer image",
        &[edit(
            BOOTSTRAP,
            "                Box::new(RawInPlace::with_journal(&*self.data, page_bytes, file, &self.journal))\n",
            "                if MUTANT {\n                    \
             return Box::new(RawInPlace::new(&*self.data, page_bytes));\n\
             \x20               }\n                Box::new(RawInPlace::with_journal(&*self.data, page_bytes, file, \
             &self.journal))\n",
        )],
    ),
    mutant(
        "needed-image-not-missed",
        "a damaged image that is needed is passed over, and the page stays an old version of itself",
        &[edit(
            SCAN,
            "            if listed.batch <= self.needed {\n",
            "            if !MUTANT && listed.batch <= self.needed {\n",
        )],
    ),
    mutant(
        "image-of-an-earlier-lap",
        "a torn batch leaves an image of an earlier lap in the place of its own, and that is put back",
        &[edit(
            SCAN,
            "            if is_listed && page::header::verify",
            "            if (MUTANT || is_listed) && page::header::verify",
        )],
    ),
];
