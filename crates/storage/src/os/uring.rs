//! Batches of writes through io_uring: many writes in flight with few system calls.
//!
//! Rules
//! 1. `write` returns only when the kernel has finished with every buffer, also when one of the writes failed.
//! 2. Every completion is looked at: an error fails the batch, a short write is sent again for its rest.
//! 3. A ring is used by one batch at a time; a batch that finds none idle makes one, so batches do not wait for each
//!    other.
//! 4. After a ring that cannot be made, or that fails to take requests, none is used again; the caller writes one by
//!    one.

use crate::Write;
use io_uring::{IoUring, opcode, types::Fd};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Writes in flight at most.
const RING_ENTRIES: u32 = 128;

/// Result of a batch: the index of a write that failed, and why.
type BatchResult = Result<(), (usize, Error)>;

/// As many rings as there were batches at once.
pub(super) struct BatchWriter {
    idle: Mutex<Vec<IoUring>>,
    unavailable: AtomicBool,
    depth: AtomicU32,
}

impl Default for BatchWriter {
    fn default() -> BatchWriter {
        let depth = AtomicU32::new(RING_ENTRIES);
        BatchWriter { idle: Mutex::default(), unavailable: AtomicBool::new(false), depth }
    }
}

impl std::fmt::Debug for BatchWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BatchWriter")
    }
}

impl BatchWriter {
    /// The most writes in flight, at most [`RING_ENTRIES`].
    pub(super) fn set_depth(&self, writes: u32) {
        self.depth.store(writes.clamp(1, RING_ENTRIES), Relaxed);
    }

    /// Writes all of `writes`, in any order; with `is_untorn` no power cut tears one of them. `None` if io_uring is not
    /// to be had and nothing was written.
    pub(super) fn write(&self, file: &File, writes: &[Write<'_>], is_untorn: bool) -> Option<BatchResult> {
        let mut ring = self.take_ring()?;
        let mut batch = Batch::new(file, writes, self.depth.load(Relaxed) as usize);
        batch.flags = if is_untorn { libc::RWF_ATOMIC } else { 0 };
        batch.run(&mut ring);
        if batch.ring_failed {
            self.unavailable.store(true, Relaxed);
        } else {
            self.idle.lock().push(ring);
        }
        batch.outcome()
    }

    fn take_ring(&self) -> Option<IoUring> {
        if self.unavailable.load(Relaxed) {
            return None;
        }
        let idle = self.idle.lock().pop();
        let ring = idle.or_else(|| IoUring::new(RING_ENTRIES).ok());
        self.unavailable.fetch_or(ring.is_none(), Relaxed);
        ring
    }
}

/// A batch on its way.
struct Batch<'a> {
    fd: Fd,
    writes: &'a [Write<'a>],
    /// Bytes of each write that are done.
    done: Vec<usize>,
    /// Writes to be sent (again).
    to_send: Vec<usize>,
    in_flight: usize,
    depth: usize,
    flags: libc::c_int,
    completed: usize,
    failure: Option<(usize, Error)>,
    ring_failed: bool,
}

impl<'a> Batch<'a> {
    fn new(file: &File, writes: &'a [Write<'a>], depth: usize) -> Batch<'a> {
        Batch {
            fd: Fd(file.as_raw_fd()),
            writes,
            done: vec![0; writes.len()],
            to_send: (0..writes.len()).rev().collect(),
            in_flight: 0,
            depth,
            flags: 0,
            completed: 0,
            failure: None,
            ring_failed: false,
        }
    }

    fn run(&mut self, ring: &mut IoUring) {
        loop {
            self.push(ring);
            if self.in_flight == 0 {
                return;
            }
            self.wait(ring);
            self.reap(ring);
        }
    }

    /// Queues writes until the ring is full; none once something failed.
    fn push(&mut self, ring: &mut IoUring) {
        if self.failure.is_some() || self.ring_failed {
            return;
        }
        let mut queue = ring.submission();
        while !queue.is_full() && self.in_flight < self.depth {
            let Some(index) = self.to_send.pop() else { return };
            let rest = &self.writes[index].data[self.done[index]..];
            let len = u32::try_from(rest.len()).unwrap_or(1 << 30);
            let offset = self.writes[index].offset + self.done[index] as u64;
            let entry = opcode::Write::new(self.fd, rest.as_ptr(), len).offset(offset).rw_flags(self.flags);
            let entry = entry.build().user_data(index as u64);
            // SAFETY: the buffer and the file are borrowed until `run` returns, which is after the completion of every
            // request was reaped (`in_flight` is 0).
            if unsafe { queue.push(&entry) }.is_err() {
                self.to_send.push(index);
                return;
            }
            self.in_flight += 1;
        }
    }

    /// Submits what is queued and waits for a completion.
    fn wait(&mut self, ring: &mut IoUring) {
        if self.ring_failed {
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

    /// The kernel takes no more requests: those it never took are not in flight, the others complete by themselves.
    fn give_up(&mut self, ring: &mut IoUring, error: Error) {
        self.in_flight -= ring.submission().len().min(self.in_flight);
        self.ring_failed = true;
        self.failure.get_or_insert((0, error));
    }

    fn reap(&mut self, ring: &mut IoUring) {
        for completion in ring.completion() {
            self.in_flight -= 1;
            self.completed += 1;
            let index = completion.user_data() as usize;
            match completion.result() {
                0 => self.fail(index, Error::from(ErrorKind::WriteZero)),
                n if n > 0 => self.advance(index, n as usize),
                n if n == -libc::EINTR || n == -libc::EAGAIN => self.to_send.push(index),
                n => self.fail(index, Error::from_raw_os_error(-n)),
            }
        }
    }

    fn advance(&mut self, index: usize, bytes: usize) {
        self.done[index] += bytes;
        if self.done[index] < self.writes[index].data.len() {
            self.to_send.push(index);
        }
    }

    fn fail(&mut self, index: usize, error: Error) {
        self.failure.get_or_insert((index, error));
    }

    fn outcome(self) -> Option<BatchResult> {
        if self.ring_failed && self.completed == 0 {
            return None;
        }
        Some(self.failure.map_or(Ok(()), Err))
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
        let (file, writer) = (tempfile::tempfile().unwrap(), BatchWriter::default());
        writer.set_depth(3);
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
        let Some(result) = BatchWriter::default().write(&file, &writes(&data), false) else { return };
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
        let writer = BatchWriter::default();
        let Some(result) = writer.write(&read_only, &writes(&data), false) else { return };
        assert_eq!(result.unwrap_err().1.raw_os_error(), Some(libc::EBADF));
        let good = tempfile::tempfile().unwrap();
        writer.write(&good, &writes(&data), false).unwrap().unwrap();
        assert_eq!(good.metadata().unwrap().len(), 300 * 64);
    }
}
