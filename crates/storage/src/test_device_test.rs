//! Every request passes both hooks, with what it is about, and reaches the device below.

use super::*;
use crate::{Counted, MemoryDevice};
use parking_lot::Mutex;

type Heard = Arc<Mutex<Vec<(&'static str, Range<u64>)>>>;

/// A device of 1000 bytes that records the requests to it.
fn noting(before: &Heard, after: &Heard) -> (TestDevice, Arc<Counted>) {
    let memory = MemoryDevice::new();
    memory.set_len_bytes(1000).unwrap();
    let below = Counted::new(Arc::new(memory));
    let (before, after) = (before.clone(), after.clone());
    let device = TestDevice::over(below.clone())
        .before(move |request| {
            before.lock().push((request.operation(), request.range()));
            Ok(())
        })
        .after(move |request| after.lock().push((request.operation(), request.range())));
    (device, below)
}

#[test]
fn hooks_see_every_request_and_the_device_below_too() {
    let (before, after) = (Heard::default(), Heard::default());
    let (device, below) = noting(&before, &after);
    device.set_len_bytes(2000).unwrap();
    device.write_at(10, &[1; 5], Placement::Redo).unwrap();
    let batch = [100, 200].map(|offset| Write { offset, data: &[2; 7], placement: Placement::Redo });
    device.write_batch(&batch).unwrap();
    let mut buf = [0; 5];
    device.read_at(10, &mut buf).unwrap();
    device.read_at(1999, &mut buf).unwrap_err();
    device.reserve(0, 30).unwrap();
    device.begin_write_back(0, 40).unwrap();
    device.sync().unwrap();
    device.discard(0, 50).unwrap();
    let expected = [
        ("set length", 0..2000),
        ("write", 10..15),
        ("write", 100..107),
        ("write", 200..207),
        ("read", 10..15),
        ("read", 1999..2004),
        ("reserve", 0..30),
        ("write back", 0..40),
        ("sync", 0..0),
        ("discard", 0..50),
    ];
    assert_eq!(before.lock()[..], expected);
    let succeeded: Vec<_> = expected.into_iter().filter(|(_, range)| range.end != 2004).collect();
    assert_eq!(after.lock()[..], succeeded, "all but the read beyond the end");
    let counts = below.counts();
    assert_eq!((counts.total_written_bytes(), counts.reads, counts.syncs, counts.discarded_bytes), (19, 1, 1, 50));
    assert_eq!((device.len_bytes().unwrap(), buf), (2000, [1; 5]));
}

#[test]
fn a_hook_fails_what_it_wants_and_changes_what_was_read() {
    let below = Counted::new(Arc::new(MemoryDevice::holding(vec![3; 100])));
    let device = TestDevice::over(below.clone())
        .before(|request| match request {
            Request::Write { .. } if request.range().contains(&50) => Err(io::Error::other("a bad block")),
            _ => Ok(()),
        })
        .after(|request| {
            if let Request::Read { buf, .. } = request {
                buf[0] ^= 1;
            }
        });
    device.write_at(0, &[9; 50], Placement::Redo).unwrap();
    let batch = [0, 45].map(|offset| Write { offset, data: &[2; 7], placement: Placement::Redo });
    let error = device.write_batch(&batch).unwrap_err();
    assert_eq!((error.operation, error.offset, error.len), ("write", 45, 7));
    assert!(error.to_string().contains("a bad block"), "{error}");
    assert_eq!(below.counts().writes, 1, "nothing of the batch is written");
    let mut buf = [0; 2];
    device.read_at(0, &mut buf).unwrap();
    assert_eq!(buf, [8, 9]);
}

#[test]
fn it_promises_what_it_is_told_to() {
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::holding(vec![3; 100]));
    let plain = TestDevice::over(memory.clone());
    assert!(!plain.has_fixed_len() && !plain.prefers_discards());
    assert_eq!(plain.identity(), None);
    let device = TestDevice::over(memory.clone()).of_fixed_len().preferring_discards().identified_as("a disk");
    assert!(device.has_fixed_len() && device.discard_keeps_room() && device.prefers_discards());
    assert_eq!(device.identity().as_deref(), Some("a disk"));
    device.set_len_bytes(50).unwrap();
    let full = device.set_len_bytes(101).unwrap_err();
    assert!(full.is_full() && full.to_string().contains("100 bytes"), "{full}");
    assert_eq!(memory.len_bytes().unwrap(), 100);
    let below = Counted::new(memory);
    TestDevice::over(below.clone()).without_syncs().sync().unwrap();
    assert_eq!(below.counts().syncs, 0);
}

#[test]
fn a_bad_block_is_read_again_once_it_is_written() {
    let bad = Arc::new(Mutex::new(20..30));
    let device = TestDevice::over(Arc::new(MemoryDevice::holding(vec![3; 100]))).with_bad_blocks(bad.clone());
    let is_read = |offset| device.read_at(offset, &mut [0; 5]).is_ok();
    assert_eq!([15, 16, 29, 30].map(is_read), [true, false, false, true]);
    device.write_at(0, &[1; 20], Placement::Other).unwrap();
    assert_eq!((is_read(25), bad.lock().clone()), (false, 20..30), "another place is written");
    device.write_at(19, &[1; 2], Placement::Other).unwrap();
    assert_eq!((is_read(25), bad.lock().clone()), (true, 0..0));
}
