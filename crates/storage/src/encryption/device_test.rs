//! Tests of `device`.

use crate::{
    AlignedBuf, Counted, DataKeys, Device, FaultKind, Faults, MemoryDevice, Operation, Placement, Read, SetFile, Write,
};
use std::sync::Arc;

const UNIT: usize = 512;

fn keys() -> Arc<DataKeys> {
    Arc::new(DataKeys::random().unwrap())
}

/// An encrypted device of 16 units, and the memory below it.
fn device() -> (Arc<dyn Device>, MemoryDevice) {
    let memory = MemoryDevice::new();
    let device = keys().wrap(SetFile::Data, Arc::new(memory.clone()));
    device.set_len_bytes(16 * UNIT as u64).unwrap();
    (device, memory)
}

fn read(device: &dyn Device, offset: usize, len: usize) -> Vec<u8> {
    let mut buf = AlignedBuf::zeroed(len);
    device.read_at(offset as u64, &mut buf).unwrap();
    buf.to_vec()
}

fn write(device: &dyn Device, offset: usize, data: &[u8]) {
    device.write_at(offset as u64, data, Placement::Other).unwrap();
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[test]
fn what_was_written_is_read_and_is_not_on_the_device() {
    let (device, memory) = device();
    let plain = pattern(4 * UNIT);
    write(&*device, UNIT, &plain);
    assert_eq!(read(&*device, UNIT, 4 * UNIT), plain);
    assert_eq!(read(&*device, 2 * UNIT, UNIT), plain[UNIT..2 * UNIT]);
    let image = memory.image();
    assert!(!image.windows(16).any(|part| plain.windows(16).any(|other| part == other)));
    // Nothing else was written.
    assert!(image[..UNIT].iter().chain(&image[5 * UNIT..]).all(|byte| *byte == 0));
    // Zeros that were written are encrypted as anything else.
    write(&*device, 8 * UNIT, &[0; UNIT]);
    assert_ne!(memory.image()[8 * UNIT..9 * UNIT], [0; UNIT]);
    assert_eq!(read(&*device, 8 * UNIT, UNIT), [0; UNIT]);
}

#[test]
fn growth_and_holes_read_as_zeros() {
    let (device, memory) = device();
    assert_eq!(read(&*device, 0, 16 * UNIT), vec![0; 16 * UNIT]);
    write(&*device, 0, &pattern(4 * UNIT));
    device.set_len_bytes(2 * UNIT as u64).unwrap();
    device.set_len_bytes(8 * UNIT as u64).unwrap();
    assert_eq!(read(&*device, 0, 8 * UNIT), [pattern(2 * UNIT), vec![0; 6 * UNIT]].concat());
    // A file punches a hole.
    memory.write_at(UNIT as u64, &[0; UNIT], Placement::Other).unwrap();
    assert_eq!(read(&*device, UNIT, UNIT), [0; UNIT]);
}

#[test]
fn files_of_one_folder_and_folders_differ() {
    let (one, other) = (keys(), keys());
    let mut images = Vec::new();
    for keys in [&one, &other] {
        for file in SetFile::ALL {
            let memory = MemoryDevice::holding(vec![0; UNIT]);
            write(&*keys.wrap(file, Arc::new(memory.clone())), 0, &[7; UNIT]);
            images.push(memory.image());
        }
    }
    images.sort();
    images.dedup();
    assert_eq!(images.len(), 8);
}

#[test]
fn parts_of_units_are_refused() {
    let (device, memory) = device();
    let before = memory.image();
    let text = device.write_at(100, &[1; UNIT], Placement::Other).unwrap_err().to_string();
    assert!(text.contains("whole units of 512 bytes"), "{text}");
    device.write_at(0, &[1; 100], Placement::Other).unwrap_err();
    device.read_at(0, &mut [0; 100]).unwrap_err();
    device.set_len_bytes(1000).unwrap_err();
    device.discard(0, 100).unwrap_err();
    device.reserve(100, UNIT as u64).unwrap_err();
    let writes = [(0, UNIT), (UNIT, 100)].map(|(offset, len)| Write {
        offset: offset as u64,
        data: &[1; UNIT][..len],
        placement: Placement::Other,
    });
    device.write_batch(&writes).unwrap_err();
    assert_eq!(memory.image(), before);
    let (mut whole, mut part) = ([9; UNIT], [9; 100]);
    let mut reads = [Read { offset: 0, buf: &mut whole }, Read { offset: 0, buf: &mut part }];
    let mut heard = Vec::new();
    device.read_batch(&mut reads, &mut |index, result| heard.push((index, result.is_ok())));
    assert_eq!((heard, whole), (vec![(0, true), (1, false)], [0; UNIT]));
    assert_eq!(device.alignment_bytes(), UNIT);
    // The rest of a unit that something else has cut is not there.
    memory.set_len_bytes(3 * UNIT as u64 + 7).unwrap();
    assert_eq!(device.len_bytes().unwrap(), 3 * UNIT as u64);
}

#[test]
fn batches_stay_batches() {
    /// Has no other calls than those of batches.
    struct OnlyBatches(MemoryDevice);
    impl Device for OnlyBatches {
        fn name(&self) -> String {
            self.0.name()
        }
        fn len_bytes(&self) -> crate::Result<u64> {
            self.0.len_bytes()
        }
        fn set_len_bytes(&self, len: u64) -> crate::Result<()> {
            self.0.set_len_bytes(len)
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> crate::Result<()> {
            panic!("a single read")
        }
        fn write_at(&self, _: u64, _: &[u8], _: Placement) -> crate::Result<()> {
            panic!("a single write")
        }
        fn read_batch(&self, reads: &mut [Read<'_>], done: &mut crate::ReadCallback<'_>) {
            // The last one first.
            for (index, read) in reads.iter_mut().enumerate().rev() {
                assert!((read.buf.as_ptr() as usize).is_multiple_of(512));
                let result = self.0.read_at(read.offset, read.buf);
                done(index, result.map(|()| &*read.buf));
            }
        }
        fn write_batch(&self, writes: &[Write<'_>]) -> crate::Result<()> {
            assert!(writes.iter().all(|write| (write.data.as_ptr() as usize).is_multiple_of(512)));
            self.0.write_batch(writes)
        }
        fn sync(&self) -> crate::Result<()> {
            self.0.sync()
        }
        fn discard(&self, _: u64, _: u64) -> crate::Result<()> {
            Ok(())
        }
        fn alignment_bytes(&self) -> usize {
            512
        }
    }
    let memory = MemoryDevice::holding(vec![0; 16 * UNIT]);
    let keys = keys();
    let device = keys.wrap(SetFile::Redo, Arc::new(OnlyBatches(memory.clone())));
    let plain = pattern(3 * UNIT);
    let batch = |offset, data| Write { offset, data, placement: Placement::Redo };
    device.write_batch(&[batch(0, &plain[..UNIT]), batch(8 * UNIT as u64, &plain[UNIT..])]).unwrap();
    let (mut first, mut second, mut beyond) = ([9; 2 * UNIT], [9; UNIT], [9; UNIT]);
    let mut reads = [
        Read { offset: 8 * UNIT as u64, buf: &mut first },
        Read { offset: 0, buf: &mut second },
        Read { offset: 16 * UNIT as u64, buf: &mut beyond },
    ];
    let mut heard = Vec::new();
    device.read_batch(&mut reads, &mut |index, result| heard.push((index, result.ok().map(<[u8]>::to_vec))));
    assert_eq!(heard, [(2, None), (1, Some(plain[..UNIT].to_vec())), (0, Some(plain[UNIT..].to_vec()))]);
    assert_eq!((&first[..], &second[..]), (&plain[UNIT..], &plain[..UNIT]));
    // What single calls read and write is the same.
    let single = keys.wrap(SetFile::Redo, Arc::new(memory));
    assert_eq!(read(&*single, 8 * UNIT, 2 * UNIT), plain[UNIT..]);
}

#[test]
fn a_failure_below_is_a_failure() {
    for (operation, kind) in [(Operation::Write, FaultKind::ErrorOnce), (Operation::Read, FaultKind::ErrorOnce)] {
        let faults = Faults::new();
        let memory = MemoryDevice::holding(vec![0; 4 * UNIT]);
        let device = keys().wrap(SetFile::Data, faults.wrap(Arc::new(memory.clone())));
        faults.fail(operation, 1, kind);
        let written = device.write_at(0, &[1; UNIT], Placement::Other);
        let is_read = device.read_at(0, &mut [0; UNIT]);
        assert_eq!((written.is_err(), is_read.is_err()), (operation == Operation::Write, operation == Operation::Read));
        // A write that failed is not there in part, and the next ones are not disturbed.
        write(&*device, 0, &[2; 2 * UNIT]);
        assert_eq!(read(&*device, 0, 2 * UNIT), [2; 2 * UNIT]);
    }
}

/// Rule 2 of `device`: what was synced is safe from a later write of the same unit.
#[test]
fn appended_bytes_never_endanger_synced_ones_in_the_same_unit() {
    let (keys, memory) = (keys(), MemoryDevice::holding(vec![0; 8 * UNIT]));
    let device = keys.wrap(SetFile::Redo, Arc::new(memory.clone()));
    let mut block = vec![0; 8 * UNIT];
    block[..700].copy_from_slice(&pattern(700));
    write(&*device, 0, &block);
    device.sync().unwrap();
    block[700..3000].fill(77);
    write(&*device, 0, &block);
    let (mut torn, mut whole) = (0, 0);
    for seed in 0..300 {
        let left = keys.wrap(SetFile::Redo, Arc::new(memory.cut(seed)));
        let found = read(&*left, 0, 8 * UNIT);
        assert_eq!(found[..700], pattern(700)[..], "seed {seed}");
        assert!(found[700..3000].iter().all(|byte| [0, 77].contains(byte)), "seed {seed}");
        whole += u32::from(found == block);
        torn += u32::from(found != block && found[700..3000].contains(&77));
    }
    assert!(torn > 10 && whole > 10, "{torn} {whole}");
}

#[test]
fn what_goes_through_is_counted_below_as_without_encryption() {
    let counted = Counted::new(Arc::new(MemoryDevice::holding(vec![0; 16 * UNIT])));
    let device = keys().wrap(SetFile::Data, counted.clone());
    write(&*device, 0, &[1; 4 * UNIT]);
    read(&*device, 0, 2 * UNIT);
    let counts = counted.counts();
    assert_eq!((counts.writes, counts.reads, counts.total_written_bytes()), (1, 1, 4 * UNIT as u64));
}
