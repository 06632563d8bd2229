//! What was written is read again, and nothing that was changed since.

use super::*;

fn some_tails() -> GroupTails {
    std::array::from_fn(|group| Tail { segment: group as u32 * 3, sequence: group as u64 + 1 })
}

fn a_batch(images: usize) -> (Vec<u8>, BatchHeader, Vec<ImageEntry>) {
    let entry = |n: usize| ImageEntry {
        page_no: PageNo(n as u32 * 7),
        bytes: UNIT_BYTES * (1 + n % 255),
        sum: sum_of(&[n as u8]),
        lsn: Lsn(n as u64),
    };
    let entries: Vec<ImageEntry> = (0..images).map(entry).collect();
    let bytes = batch_bytes(images, entries.iter().map(|entry| entry.bytes).sum());
    let header = BatchHeader { life: 3, sequence: 9, durable: 7, bytes, group: 2, tails: some_tails() };
    let mut batch = vec![0; BLOCK_BYTES];
    put_header(&mut batch, 77, 8192, &header, &entries);
    (batch, header, entries)
}

#[test]
fn a_header_says_what_was_written() {
    for images in [1, 2, 128, MAX_IMAGES] {
        let (batch, header, entries) = a_batch(images);
        assert_eq!(parse_header(&batch, 77, 8192), Some((header, entries)));
        assert_eq!(parse_header(&batch, 78, 8192), None);
        assert_eq!(parse_header(&batch, 77, 4096), None);
    }
}

/// A header that calls itself durable, or counts further than devices live, is not valid, even with the right checksum.
#[test]
fn a_header_with_impossible_sequences_is_none() {
    let (_, header, entries) = a_batch(3);
    let is_read = |header: BatchHeader| {
        let mut batch = vec![0; BLOCK_BYTES];
        put_header(&mut batch, 77, 8192, &header, &entries);
        parse_header(&batch, 77, 8192).is_some()
    };
    assert!(is_read(BatchHeader { durable: 8, ..header }));
    assert!(!is_read(BatchHeader { durable: 9, ..header }) && !is_read(BatchHeader { life: u64::MAX, ..header }));
    for footer in [footer_of(u64::MAX, [1, 2], 1, some_tails(), &[]), footer_of(3, [u64::MAX, 2], 1, some_tails(), &[])]
    {
        let mut end = vec![0; BLOCK_BYTES];
        put_end(&mut end, 77, &footer, &[]);
        assert_eq!(parse_footer(&end, 77), None, "{footer:?}");
    }
}

#[test]
fn a_header_with_any_byte_changed_is_none() {
    let (batch, ..) = a_batch(3);
    for at in 0..FIXED_BYTES + 3 * ENTRY_BYTES {
        let mut torn = batch.clone();
        torn[at] ^= 0x40;
        assert_eq!(parse_header(&torn, 77, 8192), None, "byte {at}");
    }
}

#[test]
fn a_summary_lists_what_was_added() {
    let mut summary = Vec::new();
    let batches: Vec<Listed> = [3, 128, 1]
        .into_iter()
        .enumerate()
        .map(|(n, images)| Listed { at: n * 8192, sequence: 10 + n as u64, group: 1, entries: a_batch(images).2 })
        .collect();
    batches.iter().for_each(|batch| add_to_summary(&mut summary, batch));
    assert_eq!(summary.len(), [3, 128, 1].map(summary_bytes).iter().sum::<usize>());
    let footer = footer_of(10, [11, 12], 9, some_tails(), &summary);
    let mut end = vec![0; end_bytes(summary.len())];
    put_end(&mut end, 77, &footer, &summary);
    let found = parse_footer(&end[end.len() - BLOCK_BYTES..], 77).unwrap();
    assert_eq!((found, found.end_bytes()), (footer, end.len()));
    let listed = |summary| super::batches(summary).map(|batch| batch.listed()).collect::<Vec<_>>();
    assert_eq!(found.summary(&end).map(listed), Some(batches));
    for at in (0..summary.len()).step_by(7) {
        end[at] ^= 1;
        assert_eq!(found.summary(&end), None, "byte {at}");
        end[at] ^= 1;
    }
    let mut end = vec![0; BLOCK_BYTES];
    put_end(&mut end, 77, &free_footer(10, 15, some_tails()), &[]);
    assert!(parse_footer(&end, 77).is_some_and(|footer| footer == free_footer(10, 15, some_tails())));
}

#[test]
fn a_slot_says_what_was_written() {
    let mut block = vec![0; BLOCK_BYTES];
    assert_eq!(parse_slot(&block, 77), None);
    let slot = StoreSlot { sequence: 5, pages: 640, cut_from: 9, cut_sequence: 77_000 };
    put_slot(&mut block, 77, &slot);
    assert_eq!(parse_slot(&block, 77), Some(slot));
    for at in 0..SLOT_BYTES {
        let mut torn = block.clone();
        torn[at] ^= 1;
        assert_eq!(parse_slot(&torn, 77), None, "byte {at}");
    }
}
