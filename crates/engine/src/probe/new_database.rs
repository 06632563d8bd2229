//! The choice for a new database where an option is `auto`: page size, page store, compression. A pure function of the
//! device's promises and the measurement, and a record of the choice with its reasons.
//!
//! The reasons, with the figures of `lab run page-store` (flash bytes of a TPC-C transaction, data ten times the pool)
//! - A page write contains a few changed rows. On flash the cost of a write is its bytes, so small pages cost less: in
//!   place with doublewrite 58 KB for a page size of 4 KiB, 110 KB for 8 KiB, 203 KB for 16 KiB. On a hard disk the
//!   cost of a write is the seek, so large pages cost less.
//! - Compression saves flash bytes (zstd: 21 KB for 4 KiB, 37 KB for 8 KiB) if the processor compresses a page about as
//!   fast as the device writes one. It needs the store out of place, which stores images of any length. A larger page
//!   compresses better, but not enough to cost fewer bytes for a changed row.
//! - On a hard disk a store out of place scatters consecutive pages over the whole file, which slows scans.
//! - In memory there is nothing to save.
//!
//! Layout of the record, little-endian: checksum u32 of the rest, version u16, compression u8, zero u8, length of the
//! text u16, text (UTF-8). A record that does not verify is ignored.

use super::{Evidence, choose};
use crate::config::{FlushMethod, FlushNeighbors, Options, PageCompression, PageSize, PageStoreKind};
use crate::types::cut_text;

/// Offset of the record in page 0, after the record of the probe.
pub(crate) const NEW_DATABASE_AT: usize = 2048;
const MAX_TEXT_BYTES: usize = 1024;
const FIXED_BYTES: usize = 10;
const _: () = assert!(super::RECORD_AT + super::RECORD_BYTES <= NEW_DATABASE_AT);
const _: () = assert!(NEW_DATABASE_AT + FIXED_BYTES + MAX_TEXT_BYTES <= 4096);
const VERSION: u16 = 1;

/// Page size of a database in memory or on a hard disk.
const LARGE_PAGE_BYTES: u64 = 16384;
/// Page size of a database on flash, compressed or not.
const FLASH_PAGE_BYTES: u64 = 4096;
/// Packing a page may take this many times as long as writing it: several threads pack while the device writes, and a
/// packed page is less to write and to copy.
const PACKING_TIMES: f64 = 2.0;

/// The known properties of the device and of this processor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownDevice {
    /// The result of the probe; `None` for memory, and for a device that could not be measured.
    pub evidence: Option<Evidence>,
    /// Microseconds to pack a page of the measured size with LZ4.
    pub lz4_us: f64,
    /// Microseconds to pack the same page with Zstandard.
    pub zstd_us: f64,
}

/// The options of a new database. No field is `Auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewDatabase {
    pub page_bytes: u64,
    pub page_store: PageStoreKind,
    pub page_compression: PageCompression,
    /// A text that explains the choice; empty if no option was `auto`.
    pub why: String,
}

/// The kind of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Medium {
    Memory,
    Disk,
    /// Microseconds to write a page, many of them in flight.
    Flash(f64),
}

/// Whether `choose_new` needs to know the device.
pub(crate) fn needs_evidence(asked: &Options) -> bool {
    asked.page_size == PageSize::Auto
        || asked.page_store == PageStoreKind::Auto
        || (asked.page_compression == PageCompression::Auto && asked.page_store != PageStoreKind::InPlace)
}

/// Chooses what is `auto` in `asked`.
pub(crate) fn choose_new(asked: &Options, known: &KnownDevice) -> NewDatabase {
    let medium = medium(known.evidence.as_ref());
    let packing = match asked.page_compression {
        PageCompression::Auto => packing(medium, known),
        given => given,
    };
    let page_store = match asked.page_store {
        PageStoreKind::Auto => store(asked, medium, packing),
        given => given,
    };
    let page_compression = match (page_store, asked.page_compression) {
        (PageStoreKind::InPlace, PageCompression::Auto) => PageCompression::Off,
        _ => packing,
    };
    let page_bytes = asked.page_size.bytes().unwrap_or_else(|| page_bytes(medium));
    let mut chosen = NewDatabase { page_bytes, page_store, page_compression, why: String::new() };
    chosen.why = why(asked, &chosen, medium, known);
    let is_open = page_store == PageStoreKind::Auto || page_compression == PageCompression::Auto;
    debug_assert!(!is_open, "a choice for a new database is left open: {chosen:?}");
    chosen
}

/// A page as rows fill it: numbers, texts of random characters, zeros after them. Packing is timed with it.
pub(crate) fn rows_page(bytes: usize) -> Vec<u8> {
    const ROW_BYTES: usize = 96;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut page = vec![0; bytes];
    for (number, row) in page[..bytes * 7 / 8].chunks_exact_mut(ROW_BYTES).enumerate() {
        row[..8].copy_from_slice(&(number as u64).to_be_bytes());
        for byte in &mut row[16..84] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = b'0' + (state >> 58) as u8;
        }
    }
    page
}

fn medium(evidence: Option<&Evidence>) -> Medium {
    let Some(evidence) = evidence else { return Medium::Memory };
    if choose(evidence).flush_neighbors != FlushNeighbors::Off {
        return Medium::Disk;
    }
    let timed = evidence.at_depth_us.into_iter().filter(|us| *us > 0);
    let us = timed.min().unwrap_or(evidence.scattered_us);
    Medium::Flash(f64::from(us) / f64::from(evidence.pages.max(1)))
}

fn packing(medium: Medium, known: &KnownDevice) -> PageCompression {
    let Medium::Flash(write_us) = medium else { return PageCompression::Off };
    match PACKING_TIMES * write_us {
        max if known.zstd_us <= max => PageCompression::Zstd,
        max if known.lz4_us <= max => PageCompression::Lz4,
        _ => PageCompression::Off,
    }
}

fn store(asked: &Options, medium: Medium, packing: PageCompression) -> PageStoreKind {
    let is_given = asked.page_compression != PageCompression::Auto;
    let pays = packing != PageCompression::Off && (is_given || matches!(medium, Medium::Flash(_)));
    // Out of place every sync counts.
    let is_possible = asked.flush_method != FlushMethod::DirectNoFsync;
    if pays && is_possible { PageStoreKind::OutOfPlace } else { PageStoreKind::InPlace }
}

fn page_bytes(medium: Medium) -> u64 {
    match medium {
        Medium::Memory | Medium::Disk => LARGE_PAGE_BYTES,
        Medium::Flash(_) => FLASH_PAGE_BYTES,
    }
}

fn why(asked: &Options, chosen: &NewDatabase, medium: Medium, known: &KnownDevice) -> String {
    let is_packed = chosen.page_compression != PageCompression::Off;
    let (store, compression) = (chosen.page_store.name(), chosen.page_compression.name());
    let sentences = [
        (needs_evidence(asked), medium_text(medium, known)),
        (
            asked.page_store == PageStoreKind::Auto,
            match (chosen.page_store, medium) {
                (PageStoreKind::OutOfPlace, _) => format!("page_store {store}: compressed pages need it"),
                (_, Medium::Memory) => format!("page_store {store}: there is no device to save writes of"),
                (_, Medium::Disk) => format!("page_store {store}: a scan finds pages side by side"),
                (_, Medium::Flash(_)) => format!("page_store {store}: without compression it writes no more"),
            },
        ),
        (
            asked.page_compression == PageCompression::Auto && chosen.page_store == PageStoreKind::OutOfPlace,
            match (is_packed, medium) {
                (true, _) => format!("page_compression {compression}: packing keeps up with the device"),
                (false, Medium::Flash(_)) => format!("page_compression {compression}: packing would slow writes down"),
                (false, _) => format!("page_compression {compression}: bytes are not what a write costs here"),
            },
        ),
        (
            asked.page_size == PageSize::Auto,
            match medium {
                Medium::Memory => format!("page_size {}: fewer levels, fewer splits", chosen.page_bytes),
                Medium::Disk => format!("page_size {}: a larger page costs no more seeks", chosen.page_bytes),
                Medium::Flash(_) => format!("page_size {}: fewest bytes for a changed row", chosen.page_bytes),
            },
        ),
    ];
    sentences.into_iter().filter_map(|(is_auto, text)| is_auto.then_some(text)).collect::<Vec<_>>().join("; ")
}

fn medium_text(medium: Medium, known: &KnownDevice) -> String {
    match (medium, known.evidence) {
        (Medium::Disk, Some(evidence)) => {
            format!("a disk with a moving arm ({:.0} us more for a page in a place of its own)", evidence.place_us())
        }
        (Medium::Flash(us), Some(evidence)) => format!(
            "flash (a page of {} bytes is written in {us:.0} us, packed by lz4 {}, by zstd {})",
            evidence.page_bytes,
            packing_text(known.lz4_us),
            packing_text(known.zstd_us)
        ),
        _ => "memory, or a device that cannot be measured".into(),
    }
}

fn packing_text(us: f64) -> String {
    if us.is_finite() { format!("in {us:.0} us") } else { "not at all (not built in)".to_string() }
}

impl NewDatabase {
    /// As bytes for page 0.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let text = cut_text(&self.why, MAX_TEXT_BYTES);
        let mut bytes = vec![0; 4];
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([self.page_compression as u8, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        debug_assert!(bytes.len() <= FIXED_BYTES + MAX_TEXT_BYTES, "a record of {} bytes in page 0", bytes.len());
        let sum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// The record of the choice in page 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The value of `page_compression` that replaces `auto`.
    pub page_compression: PageCompression,
    /// A text that explains the choice at the creation; empty if no option was `auto`.
    pub why: String,
}

impl Chosen {
    /// The record in the bytes of page 0, if there is one.
    pub fn decode(page: &[u8]) -> Option<Chosen> {
        let bytes = page.get(NEW_DATABASE_AT..)?;
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let end = FIXED_BYTES + usize::from(u16_at(8)?);
        let sum = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        if sum != crc32c::crc32c(bytes.get(4..end)?) || u16_at(4)? != VERSION {
            return None;
        }
        Some(Chosen {
            page_compression: PageCompression::ALL.get(usize::from(bytes[6])).copied()?,
            why: std::str::from_utf8(&bytes[FIXED_BYTES..end]).ok()?.to_string(),
        })
    }
}

#[cfg(test)]
#[path = "new_database_test.rs"]
mod tests;
