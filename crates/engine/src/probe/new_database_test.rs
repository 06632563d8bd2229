//! The choice for a new database on made-up devices; the record of it.

use super::*;

/// A device that writes a page in this many microseconds, and a processor that packs one in this many.
fn flash(write_us: u32, lz4_us: f64, zstd_us: f64) -> KnownDevice {
    let all = write_us * 32;
    let evidence = Evidence {
        pages: 32,
        page_bytes: 4096,
        sync_us: 300,
        contiguous_us: all,
        scattered_us: all,
        at_depth_us: [8 * all, 2 * all, all],
        is_steady: true,
    };
    KnownDevice { evidence: Some(evidence), lz4_us, zstd_us }
}

fn disk() -> KnownDevice {
    let evidence = Evidence {
        pages: 32,
        page_bytes: 4096,
        sync_us: 8000,
        contiguous_us: 11_000,
        scattered_us: 270_000,
        at_depth_us: [0; 3],
        is_steady: true,
    };
    KnownDevice { evidence: Some(evidence), lz4_us: 4.0, zstd_us: 25.0 }
}

fn asked(page_store: PageStoreKind, page_compression: PageCompression) -> Options {
    Options { page_store, page_compression, ..Options::default() }
}

#[test]
fn everything_auto_follows_from_the_device() {
    use PageCompression::{Auto, Lz4, Off, Zstd};
    use PageStoreKind::{InPlace, OutOfPlace};
    let table = [
        ("memory", KnownDevice::default(), InPlace, Off, LARGE_PAGE_BYTES),
        ("a disk", disk(), InPlace, Off, LARGE_PAGE_BYTES),
        ("an SSD that packing keeps up with", flash(30, 4.0, 25.0), OutOfPlace, Zstd, FLASH_PAGE_BYTES),
        ("a faster one", flash(6, 4.0, 25.0), OutOfPlace, Lz4, FLASH_PAGE_BYTES),
        ("one that no codec keeps up with", flash(1, 4.0, 25.0), InPlace, Off, FLASH_PAGE_BYTES),
    ];
    for (what, known, page_store, page_compression, page_bytes) in table {
        let chosen = choose_new(&asked(PageStoreKind::Auto, Auto), &known);
        let got = (chosen.page_store, chosen.page_compression, chosen.page_bytes);
        assert_eq!(got, (page_store, page_compression, page_bytes), "{what}: {}", chosen.why);
        assert!(chosen.why.contains(&format!("page_store {}", page_store.name())), "{}", chosen.why);
        assert!(chosen.why.contains(&format!("page_size {page_bytes}")), "{}", chosen.why);
    }
}

#[test]
fn what_was_given_is_taken_as_it_is() {
    let fast = flash(30, 4.0, 25.0);
    let given = Options { page_size: PageSize::Bytes(8192), ..asked(PageStoreKind::InPlace, PageCompression::Auto) };
    assert!(!needs_evidence(&given));
    let chosen = choose_new(&given, &fast);
    assert_eq!((chosen.page_bytes, chosen.page_compression, chosen.why.as_str()), (8192, PageCompression::Off, ""));
    // Compression that was asked for needs the store that has it, on a disk too.
    let chosen = choose_new(&asked(PageStoreKind::Auto, PageCompression::Lz4), &disk());
    assert_eq!((chosen.page_store, chosen.page_compression), (PageStoreKind::OutOfPlace, PageCompression::Lz4));
    // No store out of place without its syncs.
    let no_sync =
        Options { flush_method: FlushMethod::DirectNoFsync, ..asked(PageStoreKind::Auto, PageCompression::Auto) };
    assert_eq!(choose_new(&no_sync, &fast).page_store, PageStoreKind::InPlace);
}

#[test]
fn a_record_is_read_as_it_was_written_and_not_after_damage() {
    let chosen = choose_new(&asked(PageStoreKind::Auto, PageCompression::Auto), &flash(30, 4.0, 25.0));
    let (record, mut page) = (chosen.encode(), vec![0; 4096]);
    assert_eq!(Chosen::decode(&page), None);
    let range = NEW_DATABASE_AT..NEW_DATABASE_AT + record.len();
    page[range.clone()].copy_from_slice(&record);
    let kept = Chosen { page_compression: chosen.page_compression, why: chosen.why };
    assert_eq!(Chosen::decode(&page).as_ref(), Some(&kept));
    for at in range {
        page[at] ^= 0x40;
        assert_eq!(Chosen::decode(&page), None, "byte {at}");
        page[at] ^= 0x40;
    }
    assert_eq!(Chosen::decode(&page[..NEW_DATABASE_AT + 20]), None);
}
