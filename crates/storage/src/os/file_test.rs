//! Tests of the file device.

use super::*;

const METHODS: [FlushMethod; 4] =
    [FlushMethod::Fsync, FlushMethod::DSync, FlushMethod::Direct, FlushMethod::DirectNoFsync];
const ROLES: [FileRole; 4] = [FileRole::Data, FileRole::Doublewrite, FileRole::Redo, FileRole::RedoCached];

fn device(folder: &tempfile::TempDir, role: FileRole, method: FlushMethod) -> FileDevice {
    FileDevice::open(&folder.path().join("file"), role, method, true).unwrap()
}

fn block(fill: u8) -> AlignedBuf {
    AlignedBuf::copy_of(&[fill; ALIGNMENT_BYTES])
}

#[test]
fn what_is_written_is_read_with_every_method_and_role() {
    for (method, role) in METHODS.iter().flat_map(|&m| ROLES.map(|r| (m, r))) {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, role, method);
        device.set_len_bytes(16 * 4096).unwrap();
        let data: Vec<AlignedBuf> = (0..8).map(|i| block(i + 1)).collect();
        device.write_at(8 * 4096, &data[0], Placement::Redo).unwrap();
        let write = |i: usize| Write { offset: i as u64 * 4096, data: &data[i], placement: Placement::Other };
        device.write_batch(&(1..8).map(write).collect::<Vec<_>>()).unwrap();
        device.sync().unwrap();
        let mut all = AlignedBuf::zeroed(16 * 4096);
        device.read_at(0, &mut all).unwrap();
        for i in 0..16 {
            let want = [0, 2, 3, 4, 5, 6, 7, 8, 1].get(i).copied().unwrap_or(0);
            assert!(all[i * 4096..(i + 1) * 4096].iter().all(|&b| b == want), "{method:?} {role:?} block {i}");
        }
        let mut blocks: Vec<AlignedBuf> = (0..17).map(|_| AlignedBuf::zeroed(4096)).collect();
        let mut reads: Vec<Read<'_>> =
            blocks.iter_mut().zip((0..).step_by(4096)).map(|(buf, offset)| Read { offset, buf }).collect();
        let mut heard = [0; 17];
        device.read_batch(&mut reads, &mut |i, result| {
            heard[i] += 1;
            match result {
                Ok(bytes) => assert_eq!(bytes, &all[i * 4096..(i + 1) * 4096], "{method:?} {role:?} block {i}"),
                // Beyond the end.
                Err(error) => assert_eq!((i, error.offset, error.len), (16, 16 * 4096, 4096)),
            }
        });
        assert_eq!(heard, [1; 17]);
    }
}

#[test]
fn a_large_batch_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::Direct);
    device.set_len_bytes(1000 * 4096).unwrap();
    let blocks: Vec<AlignedBuf> = (0..1000).map(|i| block((i % 251) as u8)).collect();
    let write = |(i, b)| Write { offset: i as u64 * 4096, data: b, placement: Placement::IndexLeaf };
    let writes: Vec<Write<'_>> = blocks.iter().map(|b| &b[..]).enumerate().map(write).collect();
    device.write_batch(&writes).unwrap();
    let mut all = AlignedBuf::zeroed(1000 * 4096);
    device.read_at(0, &mut all).unwrap();
    assert!(all.chunks(4096).enumerate().all(|(i, c)| c.iter().all(|&b| b == (i % 251) as u8)));
}

#[test]
fn reading_past_the_end_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
    device.set_len_bytes(100).unwrap();
    let error = device.read_at(90, &mut [0; 20]).unwrap_err();
    assert_eq!((error.operation, error.offset, error.len), ("read", 90, 20));
}

#[test]
fn growing_reads_as_zeros_and_cutting_forgets() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
    device.set_len_bytes(4096).unwrap();
    device.write_at(0, &[7; 4096], Placement::Other).unwrap();
    device.set_len_bytes(100).unwrap();
    device.set_len_bytes(8192).unwrap();
    let mut bytes = [1; 8192];
    device.read_at(0, &mut bytes).unwrap();
    assert!(bytes[..100].iter().all(|&b| b == 7) && bytes[100..].iter().all(|&b| b == 0));
    assert_eq!(device.len_bytes().unwrap(), 8192);
}

#[test]
fn growing_beyond_the_disk_is_an_error_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
    device.set_len_bytes(4096).unwrap();
    device.write_at(0, &[7; 4096], Placement::Other).unwrap();
    assert!(device.set_len_bytes(1 << 62).is_err());
    assert_eq!(device.len_bytes().unwrap(), 4096);
    let mut bytes = [0; 4096];
    device.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 4096]);
}

#[test]
fn a_discarded_range_keeps_the_length() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::Fsync);
    device.set_len_bytes(64 * 4096).unwrap();
    device.write_at(0, &[7; 4096], Placement::Other).unwrap();
    device.discard(4096, 8 * 4096).unwrap();
    device.discard(0, 0).unwrap();
    assert_eq!(device.len_bytes().unwrap(), 64 * 4096);
    let mut bytes = [0; 4096];
    device.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 4096]);
}

#[test]
fn direct_io_refuses_what_is_not_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::Direct);
    if !device.is_direct() {
        assert_eq!(device.alignment_bytes(), 1);
        return;
    }
    let data = block(1);
    assert!(device.write_at(100, &data, Placement::Other).is_err());
    assert!(device.write_at(0, &data[..100], Placement::Other).is_err());
}

#[test]
fn without_syncs_growth_is_initialized_and_nothing_is_punched() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, FileRole::Data, FlushMethod::DirectNoFsync);
    device.set_len_bytes(3 << 20).unwrap();
    device.write_at(0, &block(7), Placement::Other).unwrap();
    device.set_len_bytes((3 << 20) + 5 * 4096).unwrap();
    device.discard(0, 1 << 20).unwrap();
    device.sync().unwrap();
    assert!(device.file.metadata().unwrap().blocks() * 512 >= (3 << 20) + 5 * 4096);
    let mut bytes = AlignedBuf::zeroed((3 << 20) + 5 * 4096);
    device.read_at(0, &mut bytes).unwrap();
    assert!(bytes[..4096].iter().all(|&b| b == 7) && bytes[4096..].iter().all(|&b| b == 0));
}

#[test]
fn opening_what_is_not_there_names_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none");
    let error = FileDevice::open(&path, FileRole::Data, FlushMethod::Direct, false).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn a_fixed_length_is_kept_and_is_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = device(&folder, FileRole::Redo, FlushMethod::Direct);
    device.set_len_bytes(1 << 20).unwrap();
    device.fixed_len = true;
    device.set_len_bytes(1 << 19).unwrap();
    assert_eq!(device.len_bytes().unwrap(), 1 << 20);
    let error = device.set_len_bytes((1 << 20) + 1).unwrap_err();
    assert!(error.is_full() && error.to_string().contains("the device has 1048576 bytes"), "{error}");
}

#[test]
fn calls_are_counted_when_they_are_made() {
    for (method, syncs) in [(FlushMethod::Fsync, 3), (FlushMethod::Direct, 3), (FlushMethod::DirectNoFsync, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, method);
        // Without direct I/O each sync is needed.
        let syncs = if sys::HAS_DIRECT_IO { syncs } else { 3 };
        device.set_len_bytes(8192).unwrap();
        for _ in 0..3 {
            device.write_at(0, &block(1), Placement::Other).unwrap();
            device.sync().unwrap();
        }
        let counts = device.io_counts();
        assert_eq!((counts.syncs, counts.writes, counts.ring_writes), (syncs, 3, 0), "{method:?}");
    }
}

/// A sparse copy, a file that another method has grown, and one on a file system that copies on write: an overwrite may
/// need the file system's records, so it is synced.
#[test]
fn what_is_not_initialized_throughout_is_synced_after_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let open = || FileDevice::open(&path, FileRole::Data, FlushMethod::DirectNoFsync, false).unwrap();
    let made = device(&folder, FileRole::Data, FlushMethod::DirectNoFsync);
    made.set_len_bytes(1 << 20).unwrap();
    made.sync().unwrap();
    let overwrites = made.writes_unsynced();
    drop(made);
    assert_eq!(open().writes_unsynced(), overwrites, "as it was made");
    let holes = [
        |path: &Path| {
            drop(FileDevice::open(path, FileRole::Data, FlushMethod::Direct, false).unwrap().set_len_bytes(2 << 20))
        },
        |path: &Path| {
            let sparse = File::create(path).unwrap();
            sparse.set_len(1 << 20).unwrap();
            sys::write_all_at(&sparse, &[1; 4096], 8192).unwrap();
        },
    ];
    for make in holes {
        make(&path);
        let device = open();
        assert!(!device.writes_unsynced());
        let before = device.io_counts().syncs;
        for n in 1..=3 {
            device.write_at(0, &block(1), Placement::Other).unwrap();
            device.sync().unwrap();
            assert_eq!(device.io_counts().syncs, before + n);
        }
    }
}

#[test]
fn a_reserved_range_has_blocks_again() {
    use std::os::unix::fs::MetadataExt;
    for method in [FlushMethod::Direct, FlushMethod::DirectNoFsync] {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder, FileRole::Data, method);
        device.set_len_bytes(4 << 20).unwrap();
        // What an opening with another flush method may have released.
        let punched = sys::punch_hole(&device.file, 1 << 20, 2 << 20);
        assert!(punched.as_ref().err().is_none_or(sys::is_unsupported));
        let blocks = || device.file.metadata().unwrap().blocks() * 512;
        let punched = blocks() < 4 << 20;
        device.reserve(0, 4 << 20).unwrap();
        device.sync().unwrap();
        assert!(!punched || blocks() >= 4 << 20, "{method:?}: {} bytes", blocks());
        assert!(!device.mode.writes_unsynced() || !sys::has_hole(&device.file, 0, 4 << 20));
        assert_eq!(device.len_bytes().unwrap(), 4 << 20);
    }
}

/// Where the kernel keeps hints at all.
#[test]
fn each_file_is_hinted_as_its_bytes_live() {
    let folder = tempfile::tempdir().unwrap();
    for role in ROLES {
        let device =
            FileDevice::open(&folder.path().join(format!("{role:?}")), role, FlushMethod::Direct, true).unwrap();
        let Some(hinted) = sys::hinted_lifetime(&device.file) else { return };
        assert_eq!(hinted, if role == FileRole::Data { 0 } else { 2 }, "{role:?}");
    }
}

/// On most file systems they are refused, as text; where they are not, they arrive whole.
#[test]
fn untorn_writes_are_refused_or_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let device = FileDevice::open(&path, FileRole::Data, FlushMethod::Direct, true).unwrap();
    device.set_len_bytes(1 << 20).unwrap();
    let mut pages = AlignedBuf::zeroed(5 * 4096);
    pages.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i / 4096) as u8 + 1);
    match device.write_untorn(4096) {
        Err(reason) => assert!(reason.starts_with(&format!("{}: ", path.display())), "{reason}"),
        Ok(()) => {
            let write = |offset, data| Write { offset, data, placement: Placement::Other };
            device.write_batch(&[write(8192, &pages[..3 * 4096]), write(65536, &pages[3 * 4096..])]).unwrap();
            device.write_at(4096, &pages[..4096], Placement::Other).unwrap();
            for (offset, part) in [(4096, &pages[..4096]), (8192, &pages[..3 * 4096]), (65536, &pages[3 * 4096..])] {
                let mut found = AlignedBuf::zeroed(part.len());
                device.read_at(offset, &mut found).unwrap();
                assert_eq!(&found[..], part);
            }
        }
    }
    let buffered = FileDevice::open(&path, FileRole::Data, FlushMethod::Fsync, false).unwrap();
    assert!(buffered.write_untorn(4096).unwrap_err().contains("take O_DIRECT"));
}

#[test]
fn writes_are_divided_into_whole_pieces_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let device = FileDevice::open(&folder.path().join("data"), FileRole::Data, FlushMethod::Direct, true).unwrap();
    let bytes = [0; 16384];
    let write = |offset, len: usize| Write { offset, data: &bytes[..len], placement: Placement::Other };
    assert!(device.in_pieces(&[write(0, 8192)]).is_none(), "nothing is to be untorn");
    device.untorn_bytes.store(4096, Ordering::Release);
    let divided = device.in_pieces(&[write(4096, 8192), write(32768, 4096)]).unwrap();
    let places: Vec<_> = divided.iter().map(|write| (write.offset, write.data.len())).collect();
    assert_eq!(places, [(4096, 4096), (8192, 4096), (32768, 4096)]);
    assert!(device.in_pieces(&[write(0, 4096), write(512, 4096)]).is_none());
}
