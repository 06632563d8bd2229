//! Verification of InnoDB pages on disk, as by `innochecksum`.
//!
//! Rules
//! 1. Pages are 16 KiB. Checksums are those of `innodb_checksum_algorithm=crc32` (CRC-32C of bytes 4 to 25 xor that of
//!    bytes 38 to the last eight, at the page's begin and eight bytes before its end), or, on pages of the server's
//!    installation, those of `innodb` (two different sums). The last four bytes are the low half of the page's LSN
//!    (bytes 16 to 23).
//! 2. A page of zeros was never written. Pages 64 to 191 of `ibdata1` are the doublewrite buffer: a torn copy there is
//!    not damage.

use highwater_bench::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

const PAGE_BYTES: usize = 16384;
const TRAILER: usize = PAGE_BYTES - 8;
const DOUBLEWRITE_PAGES: std::ops::Range<u64> = 64..192;

fn word(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// Whether a page is not torn.
fn is_whole(page: &[u8]) -> bool {
    if page.iter().all(|byte| *byte == 0) {
        return true;
    }
    let sums = (word(page, 0), word(page, TRAILER));
    let crc = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..TRAILER]);
    let summed =
        sums == (crc, crc) || sums == (fold(&page[4..26]).wrapping_add(fold(&page[38..TRAILER])), fold(&page[..26]));
    summed && word(page, TRAILER + 4) == word(page, 20)
}

/// InnoDB's sum of its first versions.
fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |sum, byte| {
        let byte = u32::from(*byte);
        (((sum ^ byte ^ 1_653_893_711) << 8).wrapping_add(sum) ^ 1_463_735_687).wrapping_add(byte)
    })
}

/// Torn pages of every tablespace below a server's data folder.
pub(super) fn torn(folder: &Path) -> Result<u64> {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).map_err(|e| Error::file(folder, e))? {
        let path = entry.map_err(|e| Error::file(folder, e))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            found += torn(&path)?;
        } else if name == "ibdata1" || name.ends_with(".ibd") {
            found += torn_in(&path, name == "ibdata1")?;
        }
    }
    Ok(found)
}

/// Torn pages of a tablespace; what is shorter than a page at its end was never a page.
fn torn_in(path: &Path, system: bool) -> Result<u64> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(|e| Error::file(path, e))?;
    let pages = (0u64..).zip(bytes.chunks_exact(PAGE_BYTES));
    let counts = |n: &u64| !(system && DOUBLEWRITE_PAGES.contains(n));
    Ok(pages.filter(|(n, page)| counts(n) && !is_whole(page)).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(fill: u8) -> Vec<u8> {
        let mut page = vec![fill; PAGE_BYTES];
        let low = word(&page, 20).to_be_bytes();
        page[TRAILER + 4..].copy_from_slice(&low);
        let checksum = (crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..TRAILER])).to_be_bytes();
        page[..4].copy_from_slice(&checksum);
        page[TRAILER..TRAILER + 4].copy_from_slice(&checksum);
        page
    }

    #[test]
    fn both_kinds_of_checksums_are_known() {
        let mut old = page(3);
        let new_sum = fold(&old[4..26]).wrapping_add(fold(&old[38..TRAILER])).to_be_bytes();
        old[..4].copy_from_slice(&new_sum);
        let old_sum = fold(&old[..26]).to_be_bytes();
        old[TRAILER..TRAILER + 4].copy_from_slice(&old_sum);
        assert!(is_whole(&old) && is_whole(&page(3)));
        old[5000] ^= 1;
        assert!(!is_whole(&old));
    }

    #[test]
    fn torn_pages_are_counted_but_not_in_the_doublewrite_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let mut torn_page = page(7);
        torn_page[4096..8192].fill(9);
        let space = [page(1), torn_page.clone(), vec![0; PAGE_BYTES], torn_page[..100].to_vec()].concat();
        std::fs::create_dir(folder.path().join("db")).unwrap();
        std::fs::write(folder.path().join("db/t.ibd"), space).unwrap();
        let mut system = vec![0; 200 * PAGE_BYTES];
        system[100 * PAGE_BYTES..101 * PAGE_BYTES].copy_from_slice(&torn_page);
        system[195 * PAGE_BYTES..196 * PAGE_BYTES].copy_from_slice(&torn_page);
        std::fs::write(folder.path().join("ibdata1"), system).unwrap();
        std::fs::write(folder.path().join("ib_logfile0"), &torn_page).unwrap();
        assert_eq!(torn(folder.path()).unwrap(), 2);
    }
}
