//! Batches of reads or writes through io_uring: many requests in flight with few system calls.
//!
//! Rules
//! 1. A batch returns only when the kernel has finished with every buffer, also when a request failed.
//! 2. Every completion is checked: an error fails the request, a short one is resubmitted for its rest.
//! 3. A ring is used by one batch at a time; a batch without an idle ring creates one, so batches do not wait for each
//!    other.
//! 4. If a ring cannot be created, or fails to take requests, no ring is used again; the caller reads and writes one by
//!    one.
//! 5. After a failed write no further writes of its batch are sent. Reads are independent, so all are sent.
//! 6. The completion callback of a request may panic: the panic resumes when no request is in flight any more.

use crate::{Read, Write};
use io_uring::{IoUring, Probe, opcode, squeue::Entry, types::Fd};
use parking_lot::Mutex;
use std::any::Any;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Requests in flight at most.
const RING_ENTRIES: u32 = 128;

/// Result of a batch of writes: the index of a failed write, and its error.
type BatchResult = Result<(), (usize, Error)>;

/// The rings of a device: as many as the largest number of concurrent batches.
pub(crate) struct Rings {
    idle: Mutex<Vec<IoUring>>,
    unavailable: AtomicBool,
    write_depth: AtomicU32,
}

impl Default for Rings {
    fn default() -> Rings {
        let write_depth = AtomicU32::new(RING_ENTRIES);
        Rings { idle: Mutex::default(), unavailable: AtomicBool::new(false), write_depth }
    }
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rings")
    }
}

impl Rings {
    /// The most writes in flight, at most [`RING_ENTRIES`].
    pub(crate) fn set_write_depth(&self, writes: u32) {
        self.write_depth.store(writes.clamp(1, RING_ENTRIES), Relaxed);
    }

    /// Writes all of `writes`, in any order; with `is_untorn` no power cut tears one of them. `None` if io_uring is not
    /// available; nothing was written then.
    pub(crate) fn write(&self, file: &File, writes: &[Write<'_>], is_untorn: bool) -> Option<BatchResult> {
        let ring = self.take_ring()?;
        let kind = Kind::Write { flags: if is_untorn { libc::RWF_ATOMIC } else { 0 } };
        let ranges = writes.iter().map(|write| Range::written(write)).collect();
        let mut batch = Batch::new(file, kind, ranges, self.write_depth.load(Relaxed) as usize);
        let (mut failure, mut completed) = (None, 0);
        let ring_failure = self.run(ring, &mut batch, |index, result| {
            completed += 1;
            match result {
                Ok(()) => true,
                Err(error) => {
                    failure.get_or_insert((index, error));
                    false
                }
            }
        });
        match (failure, ring_failure) {
            (None, Some(_)) if completed == 0 => None,
            (failure, ring_failure) => Some(failure.or(ring_failure.map(|error| (0, error))).map_or(Ok(()), Err)),
        }
    }

    /// Reads as many of `reads` as io_uring takes, in any order. Calls `done` with the index of each one as soon as it
    /// is read or has failed. The caller performs the reads for which `done` was not called.
    pub(crate) fn read(&self, file: &File, reads: &mut [Read<'_>], mut done: impl FnMut(usize, Result<&[u8], Error>)) {
        let Some(ring) = self.take_ring() else { return };
        let ranges: Vec<Range<'_>> = reads.iter_mut().map(|read| Range::filled(read)).collect();
        let buffers: Vec<(*const u8, usize)> =
            ranges.iter().map(|range| (range.start.cast_const(), range.len)).collect();
        let mut batch = Batch::new(file, Kind::Read, ranges, RING_ENTRIES as usize);
        self.run(ring, &mut batch, |index, result| {
            let (start, len) = buffers[index];
            // SAFETY: the buffer is borrowed from the caller until this function returns. The last request for it was
            // reaped, and no other is sent: the kernel does not write to it any more.
            done(index, result.map(|()| unsafe { std::slice::from_raw_parts(start, len) }));
            true
        });
    }

    /// Runs a batch on a ring, which is kept for the next one unless it failed; the error says why it failed.
    fn run(
        &self,
        mut ring: IoUring,
        batch: &mut Batch<'_>,
        on_done: impl FnMut(usize, Result<(), Error>) -> bool,
    ) -> Option<Error> {
        batch.run(&mut ring, on_done);
        let failure = batch.ring_failure.take();
        match failure {
            Some(_) => self.unavailable.store(true, Relaxed),
            None => self.idle.lock().push(ring),
        }
        failure
    }

    /// Whether rings may be available: none was refused yet.
    pub(crate) fn may_be_had(&self) -> bool {
        !self.unavailable.load(Relaxed)
    }

    fn take_ring(&self) -> Option<IoUring> {
        if let Some(idle) = self.idle.lock().pop() {
            return Some(idle);
        }
        if self.unavailable.load(Relaxed) {
            return None;
        }
        let refuse = |error: Error| {
            // Too many open files, or no memory, may be so for a moment only.
            let is_passing = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM));
            self.unavailable.fetch_or(!is_passing, Relaxed);
        };
        IoUring::new(RING_ENTRIES).and_then(can_read_and_write).map_err(refuse).ok()
    }
}

/// Returns the ring if it supports the requests of a batch (since Linux 5.6).
fn can_read_and_write(ring: IoUring) -> Result<IoUring, Error> {
    let mut known = Probe::new();
    ring.submitter().register_probe(&mut known)?;
    match known.is_supported(opcode::Read::CODE) && known.is_supported(opcode::Write::CODE) {
        true => Ok(ring),
        false => Err(Error::from(ErrorKind::Unsupported)),
    }
}

/// The operation of a batch.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write { flags: libc::c_int },
}

/// Bytes of the file, and of memory that is borrowed for `'a`: exclusively if they are to be read.
struct Range<'a> {
    offset: u64,
    start: *mut u8,
    len: usize,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<'a> Range<'a> {
    fn written(write: &'a Write<'_>) -> Range<'a> {
        let (start, len) = (write.data.as_ptr().cast_mut(), write.data.len());
        Range { offset: write.offset, start, len, borrowed: PhantomData }
    }

    fn filled(read: &'a mut Read<'_>) -> Range<'a> {
        let (start, len) = (read.buf.as_mut_ptr(), read.buf.len());
        Range { offset: read.offset, start, len, borrowed: PhantomData }
    }
}

/// A batch in flight.
struct Batch<'a> {
    fd: Fd,
    kind: Kind,
    ranges: Vec<Range<'a>>,
    /// Completed bytes of each range.
    done: Vec<usize>,
    /// Ranges to be sent (again).
    to_send: Vec<usize>,
    in_flight: usize,
    depth: usize,
    stopped: bool,
    ring_failure: Option<Error>,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a> Batch<'a> {
    fn new(file: &'a File, kind: Kind, ranges: Vec<Range<'a>>, depth: usize) -> Batch<'a> {
        Batch {
            fd: Fd(file.as_raw_fd()),
            kind,
            done: vec![0; ranges.len()],
            to_send: (0..ranges.len()).rev().collect(),
            ranges,
            in_flight: 0,
            depth,
            stopped: false,
            ring_failure: None,
            panic: None,
        }
    }

    /// Runs until nothing is in flight. `on_done` is called with each range that has completed or failed; it returns
    /// whether further ranges are sent.
    fn run(&mut self, ring: &mut IoUring, mut on_done: impl FnMut(usize, Result<(), Error>) -> bool) {
        loop {
            self.push(ring);
            if self.in_flight == 0 {
                break;
            }
            self.wait(ring);
            self.reap(ring, &mut on_done);
        }
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
    }

    /// Queues ranges until the ring is full; none once the batch has stopped.
    fn push(&mut self, ring: &mut IoUring) {
        if self.stopped || self.ring_failure.is_some() {
            return;
        }
        let mut queue = ring.submission();
        while !queue.is_full() && self.in_flight < self.depth {
            let Some(index) = self.to_send.pop() else { return };
            // SAFETY: the buffer and the file are borrowed until `run` returns, which is after the completion of every
            // request was reaped (`in_flight` is 0). No other thread uses the buffer of a read meanwhile.
            if unsafe { queue.push(&self.entry(index)) }.is_err() {
                self.to_send.push(index);
                return;
            }
            self.in_flight += 1;
        }
    }

    /// The request for what is left of a range.
    fn entry(&self, index: usize) -> Entry {
        let (range, done) = (&self.ranges[index], self.done[index]);
        let len = u32::try_from(range.len - done).unwrap_or(1 << 30);
        let (start, offset) = (range.start.wrapping_add(done), range.offset + done as u64);
        let entry = match self.kind {
            Kind::Read => opcode::Read::new(self.fd, start, len).offset(offset).build(),
            Kind::Write { flags } => opcode::Write::new(self.fd, start, len).offset(offset).rw_flags(flags).build(),
        };
        entry.user_data(index as u64)
    }

    /// Submits what is queued and waits for a completion.
    fn wait(&mut self, ring: &mut IoUring) {
        if self.ring_failure.is_some() {
            // Not another submission: it would send requests that are no longer counted.
            return std::thread::sleep(std::time::Duration::from_micros(100));
        }
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ResourceBusy) => {}
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => std::thread::yield_now(),
            Err(error) => self.give_up(ring, error),
        }
    }

    /// Handles a kernel that refuses further requests: requests that it has not accepted no longer count as in flight;
    /// the others complete.
    fn give_up(&mut self, ring: &mut IoUring, error: Error) {
        self.in_flight -= ring.submission().len().min(self.in_flight);
        self.ring_failure = Some(error);
    }

    fn reap(&mut self, ring: &mut IoUring, on_done: &mut impl FnMut(usize, Result<(), Error>) -> bool) {
        for completion in ring.completion() {
            self.in_flight -= 1;
            let index = completion.user_data() as usize;
            let Some(result) = self.completed(index, completion.result()) else { continue };
            match catch_unwind(AssertUnwindSafe(|| on_done(index, result))) {
                Ok(goes_on) => self.stopped |= !goes_on,
                Err(panic) => {
                    self.stopped = true;
                    self.panic = Some(panic);
                }
            }
        }
    }

    /// Handles the completion of a range's request: the range's result, or `None` if it is sent again.
    fn completed(&mut self, index: usize, answer: i32) -> Option<Result<(), Error>> {
        match answer {
            0 => {
                let kind = if let Kind::Read = self.kind { ErrorKind::UnexpectedEof } else { ErrorKind::WriteZero };
                return Some(Err(Error::from(kind)));
            }
            n if n > 0 => self.done[index] += n as usize,
            n if n == -libc::EINTR || n == -libc::EAGAIN => {}
            n => return Some(Err(Error::from_raw_os_error(-n))),
        }
        if self.done[index] >= self.ranges[index].len {
            return Some(Ok(()));
        }
        self.to_send.push(index);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use std::os::unix::fs::FileExt;

    fn writes<'a>(data: &'a [[u8; 64]]) -> Vec<Write<'a>> {
        let write =
            |(i, d): (usize, &'a [u8; 64])| Write { offset: i as u64 * 64, data: d, placement: Placement::Other };
        data.iter().enumerate().map(write).collect()
    }

    #[test]
    fn a_shallow_queue_writes_everything_too() {
        let (file, writer) = (tempfile::tempfile().unwrap(), Rings::default());
        writer.set_write_depth(3);
        let data: Vec<[u8; 64]> = (0..100).map(|i| [i; 64]).collect();
        let Some(result) = writer.write(&file, &writes(&data), false) else { return };
        result.unwrap();
        let mut got = vec![0; 6400];
        file.read_exact_at(&mut got, 0).unwrap();
        assert_eq!(got, data.concat());
    }

    #[test]
    fn more_writes_than_the_ring_holds() {
        let file = tempfile::tempfile().unwrap();
        let data: Vec<[u8; 64]> = (0..3 * RING_ENTRIES as usize).map(|i| [i as u8; 64]).collect();
        let Some(result) = Rings::default().write(&file, &writes(&data), false) else { return };
        result.unwrap();
        for (i, want) in data.iter().enumerate() {
            let mut got = [0; 64];
            file.read_exact_at(&mut got, i as u64 * 64).unwrap();
            assert_eq!(&got, want);
        }
    }

    #[test]
    fn a_refused_write_fails_the_batch_and_leaves_the_ring_usable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("read-only");
        std::fs::write(&path, b"").unwrap();
        let read_only = File::open(&path).unwrap();
        let data = vec![[1; 64]; 300];
        let writer = Rings::default();
        let Some(result) = writer.write(&read_only, &writes(&data), false) else { return };
        assert_eq!(result.unwrap_err().1.raw_os_error(), Some(libc::EBADF));
        let good = tempfile::tempfile().unwrap();
        writer.write(&good, &writes(&data), false).unwrap().unwrap();
        assert_eq!(good.metadata().unwrap().len(), 300 * 64);
    }

    /// Of many reads, more than the ring holds, each one is reported once, with its bytes; one beyond the end fails.
    #[test]
    fn more_reads_than_the_ring_holds() {
        let file = tempfile::tempfile().unwrap();
        let count = 3 * RING_ENTRIES as usize;
        let bytes: Vec<u8> = (0..count).flat_map(|n| [n as u8; 64]).collect();
        file.write_all_at(&bytes, 0).unwrap();
        let mut buffers = vec![[0; 64]; count + 1];
        let mut reads: Vec<Read<'_>> =
            buffers.iter_mut().zip((0..).step_by(64)).map(|(buf, offset)| Read { offset, buf }).collect();
        let mut seen = vec![0; count + 1];
        let rings = Rings::default();
        rings.read(&file, &mut reads, |n, result| {
            seen[n] += 1;
            match result {
                Ok(read) => assert_eq!(read, [n as u8; 64]),
                Err(error) => assert_eq!((n, error.kind()), (count, ErrorKind::UnexpectedEof)),
            }
        });
        assert!(seen == vec![1; count + 1] || rings.unavailable.load(Relaxed));
    }

    #[test]
    fn a_panic_of_who_is_told_waits_for_what_is_in_flight() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 64 * 32], 0).unwrap();
        let mut buffers = [[0; 64]; 32];
        let mut reads: Vec<Read<'_>> =
            buffers.iter_mut().zip((0..).step_by(64)).map(|(buf, offset)| Read { offset, buf }).collect();
        let rings = Rings::default();
        let told = catch_unwind(AssertUnwindSafe(|| rings.read(&file, &mut reads, |_, _| panic!("told"))));
        assert!(told.is_err() || rings.unavailable.load(Relaxed));
        assert!(buffers.iter().all(|buffer| *buffer == [7; 64]) || rings.unavailable.load(Relaxed));
    }

    #[test]
    fn without_a_ring_nothing_is_read_and_no_callback_is_called() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 64], 0).unwrap();
        let rings = Rings::default();
        rings.unavailable.store(true, Relaxed);
        let mut buf = [0; 64];
        rings.read(&file, &mut [Read { offset: 0, buf: &mut buf }], |_, _| panic!("told"));
        assert_eq!(buf, [0; 64]);
    }
}
