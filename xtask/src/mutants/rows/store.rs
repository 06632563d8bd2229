//! Bugs of the store out of place. The first fourteen are those that any such store can have; the others break rules of
//! this one.

use super::{Mutant, edit, of_engine as mutant};

const APPEND: &str = "crates/engine/src/store/out_of_place/append.rs";
const APPENDER: &str = "crates/engine/src/store/out_of_place/appender.rs";
const CLEAN: &str = "crates/engine/src/store/out_of_place/clean.rs";
const SEGMENTS: &str = "crates/engine/src/store/out_of_place/segments.rs";
const BEST: &str = "crates/engine/src/store/out_of_place/newest_copies.rs";
const IMAGE: &str = "crates/engine/src/store/out_of_place/image.rs";
const SCAN: &str = "crates/engine/src/store/out_of_place/scan.rs";
const TORN: &str = "crates/engine/src/store/out_of_place/torn.rs";
const READ: &str = "crates/engine/src/store/out_of_place/read.rs";
const FORMAT: &str = "crates/engine/src/store/out_of_place/format.rs";
const STORE: &str = "crates/engine/src/store/out_of_place/mod.rs";
const REST: &str = "crates/engine/src/store/out_of_place/rest.rs";
const SLOT: &str = "crates/engine/src/store/out_of_place/slot.rs";
const FLUSH: &str = "crates/engine/src/pool/flush/write.rs";

const POWER_CUTS: &[&str] = &["out_of_place_test::power_cuts"];

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "reuse-before-copies-are-synced",
        "a segment is free as soon as its live images are copied, before the copies are durable",
        &[
            edit(
                APPEND,
                "        self.stats.data_syncs.add(u64::from(self.data.sync()?));\n        self.appender.sequences",
                "        let eager = MUTANT && done.moves.iter().any(|moved| moved.from.is_some());\n        \
                 if !eager {\n            self.stats.data_syncs.add(u64::from(self.data.sync()?));\n        }\n        \
                 self.appender.sequences",
            ),
            edit(
                APPEND,
                "        self.release(&cleared);\n",
                "        self.release(&cleared);\n        if eager {\n            self.clear_emptied()?;\n            \
                 let now = self.segments.take_cleared();\n            self.release(&now);\n        }\n",
            ),
        ],
        POWER_CUTS,
    ),
    mutant(
        "discard-before-copies-are-synced",
        "a segment is discarded before the copies of its live images are durable",
        &[edit(
            CLEAN,
            "        self.stats.store_segments_cleaned.inc();\n",
            "        self.stats.store_segments_cleaned.inc();\n        if MUTANT {\n            \
             let bytes = self.geometry.segment_bytes - BLOCK_BYTES as u64;\n            \
             let _ = self.data.device().discard(self.geometry.start_of(segment), bytes);\n        }\n",
        )],
        POWER_CUTS,
    ),
    mutant(
        "publish-without-compare",
        "a cleaner's copy takes the place of a newer one",
        &[edit(
            SEGMENTS,
            "if from.is_none() || self.map.get(*page_no) == *from {",
            "if MUTANT || from.is_none() || self.map.get(*page_no) == *from {",
        )],
        &["segments::tests"],
    ),
    mutant(
        "tie-without-sequence",
        "of two copies with one LSN any counts at opening",
        &[edit(
            BEST,
            "old_lsn == lsn.0 && self.is_later(location, place);",
            "!MUTANT && old_lsn == lsn.0 && self.is_later(location, place);",
        )],
        &["of_two_copies_with_one_lsn"],
    ),
    mutant(
        "old-footer-believed",
        "the footer of a segment's last life is believed though it is used again",
        &[edit(
            READ,
            "footer.life.saturating_add(u64::from(footer.is_free));",
            "if MUTANT && footer.is_free { u64::MAX } else { footer.life.saturating_add(u64::from(footer.is_free)) };",
        )],
        POWER_CUTS,
    ),
    mutant(
        "torn-image-believed",
        "an image at the end of the store counts though a power cut tore it",
        &[edit(
            SCAN,
            "if sequence <= self.durable || self.verifies(&entry, location)? {",
            "if MUTANT || sequence <= self.durable || self.verifies(&entry, location)? {",
        )],
        POWER_CUTS,
    ),
    mutant(
        "torn-below-the-mark",
        "a damaged image of a batch that the log proves durable is taken for a torn one, and an older image counts",
        &[edit(
            TORN,
            "let was_durable = self.sequence <= mark || self.lsn <= checkpoint;",
            "let was_durable = !MUTANT && self.sequence <= mark || self.lsn <= checkpoint;",
        )],
        &["db_test::images"],
    ),
    mutant(
        "published-before-sync",
        "the map points at images that are not durable",
        &[
            edit(
                APPEND,
                "        // The segments that were cleared before this sync began.\n",
                "        let early = MUTANT;\n        if early {\n            \
                 self.segments.publish(&done.moves, done.segments());\n        }\n",
            ),
            edit(
                APPEND,
                "sequences.lock().end(&done.tails);\n        self.segments.publish(&done.moves, done.segments());\n",
                "sequences.lock().end(&done.tails);\n        if !early {\n            \
                 self.segments.publish(&done.moves, done.segments());\n        }\n",
            ),
        ],
        &["the_map_points_at_nothing_that_is_not_durable"],
    ),
    mutant(
        "data-before-log",
        "a page is written before its redo is durable",
        &[edit(
            FLUSH,
            "        self.log.flush_to(batch.newest_lsn())?;\n",
            "        if !MUTANT {\n            self.log.flush_to(batch.newest_lsn())?;\n        }\n",
        )],
        &["pool_test::crash"],
    ),
    mutant(
        "reader-looks-once",
        "a reader gets what another page has by now where its own was",
        &[edit(STORE, "if map.get(page) == Some(location) {", "if MUTANT || map.get(page) == Some(location) {")],
        &["a_page_that_is_moved_while_it_is_read"],
    ),
    mutant(
        "forgotten-page-stays",
        "a page that was forgotten keeps its image",
        &[edit(
            SEGMENTS,
            "            let old = self.map.set(PageNo(page), None);\n",
            "            if MUTANT {\n                continue;\n            }\n            \
             let old = self.map.set(PageNo(page), None);\n",
        )],
        &["every_page_is_what_was_last_written"],
    ),
    mutant(
        "cleaner-raises-the-lsn",
        "a cleaner's copy looks newer than the page is",
        &[edit(
            CLEAN,
            "                    let image = PageImage { page_no, lsn, at, bytes, from: Some(location) };\n",
            "                    let lsn = crate::types::Lsn(lsn.0 + u64::from(MUTANT));\n                    \
             let image = PageImage { page_no, lsn, at, bytes, from: Some(location) };\n",
        )],
        POWER_CUTS,
    ),
    mutant(
        "reserve-ignored",
        "flushes take the segments that the cleaner needs to gain room",
        &[edit(
            APPEND,
            "let keep = if by == AppendSource::Flush {",
            "let keep = if by == AppendSource::Flush && !MUTANT {",
        )],
        &["a_flush_leaves_the_cleaners_reserve"],
    ),
    mutant(
        "length-off-by-a-unit",
        "images behind a compressed one are looked for a unit too late",
        &[edit(
            IMAGE,
            "        offset += entry.bytes;\n        (entry, location)",
            "        offset += entry.bytes + if MUTANT && entry.bytes < 4096 { 128 } else { 0 };\n        \
             (entry, location)",
        )],
        &["every_page_is_what_was_last_written"],
    ),
    mutant(
        "slots-written-together",
        "a power cut can damage both slots, and the number of pages is lost",
        &[edit(
            SLOT,
            "        Ok(next)\n",
            "        if MUTANT {\n            for at in SLOTS_AT {\n                \
             self.data.device().write_at(at, &block, Placement::Other)?;\n            }\n        }\n        Ok(next)\n",
        )],
        &["a_damaged_slot"],
    ),
    mutant(
        "tie-older-counts",
        "of two copies with one LSN the older counts at opening",
        &[edit(BEST, "self.is_later(location, place);", "(MUTANT != self.is_later(location, place));")],
        &["of_two_copies_with_one_lsn"],
    ),
    mutant(
        "sequence-before-lsn",
        "a cleaner's copy of an older version hides a newer one at opening",
        &[edit(
            BEST,
            "        if place == 0 || is_newer {\n",
            "        let is_newer = if MUTANT { self.is_later(location, place) } else { is_newer };\n        \
             if place == 0 || is_newer {\n",
        )],
        &["a_copy_of_an_older_version"],
    ),
    mutant(
        "old-headers-believed",
        "headers of a segment's last life are believed behind those of its present one",
        &[edit(
            READ,
            "=> header.life == remains.life && header.sequence > remains.newest,",
            "=> MUTANT || header.life == remains.life && header.sequence > remains.newest,",
        )],
        &["out_of_place_test"],
    ),
    mutant(
        "sealed-counts-as-full",
        "a sealed segment counts as full at an opening: what a closing released behind its batches is not reserved",
        &[edit(
            READ,
            "((batches_end as u64).min(geometry.segment_bytes), footer.newest)",
            "(if MUTANT { u64::MAX } else { batches_end as u64 }.min(geometry.segment_bytes), footer.newest)",
        )],
        &["out_of_place_test::full::an_opening"],
    ),
    mutant(
        "holes-of-a-copy-stay",
        "an opening reserves nothing of a large store: a copy has holes where segments are free",
        &[edit(
            REST,
            "if self.is_small() { self.idle_ranges() } else { self.free_ranges() }",
            "if self.is_small() { self.idle_ranges() } else if MUTANT { Vec::new() } else { self.free_ranges() }",
        )],
        &["out_of_place_test::full::an_opening"],
    ),
    mutant(
        "unpublished-ignored",
        "a segment is cleaned though the map does not point at all of its images yet",
        &[edit(
            SEGMENTS,
            "self.state == SegmentPhase::Sealed && self.unpublished == 0 && !self.is_unreadable",
            "self.state == SegmentPhase::Sealed && (MUTANT || self.unpublished == 0) && !self.is_unreadable",
        )],
        &["segments::tests"],
    ),
    mutant(
        "victim-not-held",
        "a segment that is being cleaned is chosen again, or used again before its copies are durable",
        &[edit(
            SEGMENTS,
            "        inner.table[segment as usize].unpublished = 1;\n",
            "        inner.table[segment as usize].unpublished = u32::from(!MUTANT);\n",
        )],
        &["segments::tests"],
    ),
    mutant(
        "copies-take-the-last-segments",
        "too many segments are cleaned at once that their copies find no room",
        &[edit(
            CLEAN,
            "self.segments.usage().free as usize > self.groups();",
            "MUTANT || self.segments.usage().free as usize > self.groups();",
        )],
        &["on_a_full_disk"],
    ),
    mutant(
        "durable-too-high",
        "a header calls its own batch durable",
        &[edit(
            APPENDER,
            "        (sequence, self.synced(), self.tails)\n",
            "        (sequence, if MUTANT { sequence } else { self.synced() }, self.tails)\n",
        )],
        POWER_CUTS,
    ),
    mutant(
        "free-before-its-footer-says-so",
        "a segment is used again before its cleared footer is durable",
        &[edit(
            APPEND,
            "        self.clear_emptied()\n",
            "        self.clear_emptied()?;\n        if MUTANT {\n            \
             let now = self.segments.take_cleared();\n            self.release(&now);\n        }\n        Ok(())\n",
        )],
        &["a_segment_is_used_again"],
    ),
    mutant(
        "footer-not-cleared",
        "the footer of a segment that is used again still lists its last life",
        &[edit(
            CLEAN,
            "        emptied.iter().try_for_each(|segment| self.clear(*segment))?;\n",
            "        if !MUTANT {\n            \
             emptied.iter().try_for_each(|segment| self.clear(*segment))?;\n        }\n",
        )],
        POWER_CUTS,
    ),
    mutant(
        "slot-not-written",
        "growth is not known to the next opening",
        &[edit(
            STORE,
            "        self.put_slot().inspect_err(|error| self.data.stop(error))?;\n",
            "        if !MUTANT {\n            \
             self.put_slot().inspect_err(|error| self.data.stop(error))?;\n        }\n",
        )],
        &["a_damaged_slot"],
    ),
    mutant(
        "cleaner-drops-an-image",
        "a live image is not copied",
        &[edit(CLEAN, "batch.entries.iter().copied()", "batch.entries.iter().copied().skip(usize::from(MUTANT))")],
        &["every_page_is_what_was_last_written"],
    ),
    mutant(
        "torn-image-not-struck-out",
        "a torn image counts at the second opening, since later headers call its batch durable",
        &[edit(
            SCAN,
            "ends.retain_mut(|end| end.strike_out(&torn) || !end.is_sealed);",
            "ends.retain_mut(|end| !MUTANT && end.strike_out(&torn) || !end.is_sealed);",
        )],
        POWER_CUTS,
    ),
    mutant(
        "damaged-header-overlooked",
        "the pages behind a damaged header disappear",
        &[edit(SCAN, "            if first <= durable {\n", "            if !MUTANT && first <= durable {\n")],
        &["out_of_place_test::damage"],
    ),
    mutant(
        "image-sum-not-compared",
        "where a cut tore a batch, an image of an earlier life passes for the one that the header lists",
        &[edit(
            SCAN,
            "|image| match format::sum_of(image) == entry.sum {",
            "|image| match MUTANT || format::sum_of(image) == entry.sum {",
        )],
        &["out_of_place_test::damage::an_old_image"],
    ),
    mutant(
        "footer-of-any-segment",
        "the free footer of another segment, read by mistake, makes the pages of this one disappear",
        &[edit(
            FORMAT,
            "    database_id ^ segment.wrapping_mul(0x9E37_79B9_7F4A_7C15)\n",
            "    database_id ^ segment.wrapping_mul(if MUTANT { 0 } else { 0x9E37_79B9_7F4A_7C15 })\n",
        )],
        &["out_of_place_test::damage::a_footer_of_another"],
    ),
    mutant(
        "remains-under-a-new-footer",
        "headers of a life that ended pass for those of the life that the footer begins",
        &[edit(
            READ,
            "held.filter(|held| held.remains.life >= first_life)",
            "held.filter(|held| held.remains.life >= first_life || (MUTANT && !footer.is_free))",
        )],
        &["out_of_place_test::used_again::a_power_cut_that_keeps"],
    ),
    mutant(
        "header-of-any-place",
        "a header that was written to another place of its segment hides the batches between the two",
        &[edit(
            FORMAT,
            "    identity ^ (at as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93)\n",
            "    identity ^ (at as u64).wrapping_mul(if MUTANT { 0 } else { 0xD6E8_FEB8_6659_FD93 })\n",
        )],
        &["out_of_place_test::damage::a_header_at_another_place"],
    ),
    mutant(
        "first-page-by-its-segment",
        "an older version of page 0 counts, behind which the cleaner has copied other pages",
        &[edit(
            SCAN,
            "    scan.resolve_first_page()?;\n",
            "    if !MUTANT {\n        scan.resolve_first_page()?;\n    }\n",
        )],
        &["out_of_place_test::damage::of_two_versions"],
    ),
    mutant(
        "tail-not-missed",
        "a damaged header of a segment that is not sealed makes durable pages disappear, though others name its batch",
        &[edit(SCAN, "newest_of(**segment) < **newest)", "!MUTANT && newest_of(**segment) < **newest)")],
        &["out_of_place_test::damage::an_open_segment"],
    ),
    mutant(
        "batches-released-at-rest",
        "a closing releases the place of batches with the place of free segments",
        &[edit(REST, "(start + used_bytes)", "(start + if MUTANT { 0 } else { used_bytes })")],
        &["space::a_small_database"],
    ),
    mutant(
        "segments-not-reserved-after-rest",
        "a small database opens on a full disk and fails at its next flush",
        &[edit(STORE, "            store.wake()", "            if MUTANT { Ok(()) } else { store.wake() }")],
        &["space::a_small_database_opens"],
    ),
    mutant(
        "checkpoints-batch-not-missed",
        "a damaged header of the last batch makes pages disappear that are before the checkpoint",
        &[edit(
            SCAN,
            "        self.damage = self.damage.take().or(damage);\n",
            "        self.damage = self.damage.take().or(damage.filter(|_| !MUTANT));\n",
        )],
        &["out_of_place_test::damage::the_last_batch"],
    ),
];
