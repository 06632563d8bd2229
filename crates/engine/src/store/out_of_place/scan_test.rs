//! Which copy of a page counts (rule 1), whatever the order in which they are found.

use super::*;
use highwater_storage::MemoryDevice;

/// The place that counts of copies of one page, given as LSN and sequence; it lies in the segment of that number.
fn counts(copies: &[(u64, u64)]) -> u32 {
    let device = MemoryDevice::new();
    let geometry = Geometry { page_bytes: 4096, segment_bytes: 256 << 10, database_id: 77 };
    let mut scan = Scan::new(&device, geometry, 8);
    for (lsn, sequence) in copies {
        scan.count(PageNo(5), Lsn(*lsn), *sequence, Location::new(*sequence as u32, 4096, 4096, 1));
    }
    scan.best[5].unwrap().2.segment
}

#[test]
fn of_two_copies_with_one_lsn_the_one_written_last_counts() {
    assert_eq!([counts(&[(7, 3), (7, 5)]), counts(&[(7, 5), (7, 3)])], [5, 5]);
}

#[test]
fn a_copy_of_an_older_version_hides_no_newer_one() {
    // The cleaner copied version 7 while version 8 was being written.
    assert_eq!([counts(&[(8, 3), (7, 5)]), counts(&[(7, 5), (8, 3)])], [3, 3]);
    assert_eq!([counts(&[(7, 2), (8, 3), (7, 5)]), counts(&[(7, 5), (7, 2), (8, 3)])], [3, 3]);
}
