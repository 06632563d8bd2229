//! A device with hooks for tests.
//!
//! Rules
//! 1. It does what the device below does. A hook sees each request before it, and may fail it; another one sees it
//!    after it, if it succeeded.
//! 2. Hooks run in the thread of the request, several at once, and under no lock: they may wait, and use the device.
//! 3. The writes of a batch reach the device below as one, once the hook has seen each of them; reads reach it one by
//!    one.

use crate::{Device, Placement, Result, StorageError, Write};
use parking_lot::Mutex;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// The requests to a [`TestDevice`].
#[derive(Debug)]
pub enum Request<'a> {
    /// To fill `buf` from `offset` on; before the request it holds anything.
    Read {
        /// First byte.
        offset: u64,
        /// The bytes that were read; a hook after the request may change them.
        buf: &'a mut [u8],
    },
    /// To write, alone or in a batch.
    Write {
        /// First byte.
        offset: u64,
        /// The bytes to write.
        data: &'a [u8],
    },
    /// To have this length in bytes.
    SetLen(u64),
    /// To make writes durable.
    Sync,
    /// To reserve these bytes.
    Reserve(Range<u64>),
    /// To discard these bytes.
    Discard(Range<u64>),
    /// To begin to write these bytes back.
    WriteBack(Range<u64>),
}

impl Request<'_> {
    /// Name of the operation for messages.
    pub fn operation(&self) -> &'static str {
        match self {
            Request::Read { .. } => "read",
            Request::Write { .. } => "write",
            Request::SetLen(_) => "set length",
            Request::Sync => "sync",
            Request::Reserve(_) => "reserve",
            Request::Discard(_) => "discard",
            Request::WriteBack(_) => "write back",
        }
    }

    /// The range of the request: for a length, all bytes of the new length; empty for a sync.
    pub fn range(&self) -> Range<u64> {
        match self {
            Request::Read { offset, buf } => *offset..*offset + buf.len() as u64,
            Request::Write { offset, data } => *offset..*offset + data.len() as u64,
            Request::SetLen(len) => 0..*len,
            Request::Sync => 0..0,
            Request::Reserve(range) | Request::Discard(range) | Request::WriteBack(range) => range.clone(),
        }
    }
}

type Before = dyn Fn(Request<'_>) -> io::Result<()> + Send + Sync;
type After = dyn Fn(Request<'_>) + Send + Sync;

/// See the head of this file: made by [`TestDevice::over`]; further calls set its differences from the device below.
///
/// ```
/// use highwater_storage::{Device, MemoryDevice, Request, TestDevice};
/// use std::io::Error;
/// use std::sync::Arc;
///
/// let device = TestDevice::over(Arc::new(MemoryDevice::new())).before(|request| match request {
///     Request::Sync => Err(Error::other("the cache is broken")),
///     _ => Ok(()),
/// });
/// assert!(device.sync().unwrap_err().to_string().contains("the cache is broken"));
/// ```
pub struct TestDevice {
    inner: Arc<dyn Device>,
    before: Box<Before>,
    after: Box<After>,
    skips_syncs: bool,
    has_fixed_len: bool,
    prefers_discards: bool,
    identity: Option<String>,
}

impl TestDevice {
    /// A device that does what `inner` does.
    pub fn over(inner: Arc<dyn Device>) -> TestDevice {
        TestDevice {
            inner,
            before: Box::new(|_| Ok(())),
            after: Box::new(|_| ()),
            skips_syncs: false,
            has_fixed_len: false,
            prefers_discards: false,
            identity: None,
        }
    }

    /// Calls `hook` before each request, which fails if the hook does, and reaches the device below otherwise.
    pub fn before(self, hook: impl Fn(Request<'_>) -> io::Result<()> + Send + Sync + 'static) -> TestDevice {
        TestDevice { before: Box::new(hook), ..self }
    }

    /// Calls `hook` after each request that succeeded.
    pub fn after(self, hook: impl Fn(Request<'_>) + Send + Sync + 'static) -> TestDevice {
        TestDevice { after: Box::new(hook), ..self }
    }

    /// Syncs do not reach the device below, and succeed.
    pub fn without_syncs(self) -> TestDevice {
        TestDevice { skips_syncs: true, ..self }
    }

    /// Fixes the length, as a block device does: a longer one is an error, a shorter one changes nothing.
    pub fn of_fixed_len(self) -> TestDevice {
        TestDevice { has_fixed_len: true, ..self }
    }

    /// Makes it prefer discards ([`Device::prefers_discards`]).
    pub fn preferring_discards(self) -> TestDevice {
        TestDevice { prefers_discards: true, ..self }
    }

    /// Gives it an identity ([`Device::identity`]).
    pub fn identified_as(self, identity: &str) -> TestDevice {
        TestDevice { identity: Some(identity.to_string()), ..self }
    }

    /// Reads that touch `bad` fail, until a write that touches it has succeeded: then nothing is bad any more. Replaces
    /// both hooks.
    pub fn with_bad_blocks(self, bad: Arc<Mutex<Range<u64>>>) -> TestDevice {
        fn touches(request: &Request<'_>, bad: &Range<u64>) -> bool {
            let range = request.range();
            range.start < bad.end && bad.start < range.end
        }
        let written = bad.clone();
        let before = move |request: Request<'_>| match request {
            Request::Read { .. } if touches(&request, &bad.lock()) => Err(io::Error::other("a bad block")),
            _ => Ok(()),
        };
        let after = move |request: Request<'_>| {
            let mut bad = written.lock();
            if matches!(request, Request::Write { .. }) && touches(&request, &bad) {
                *bad = 0..0;
            }
        };
        self.before(before).after(after)
    }

    fn before_it(&self, request: Request<'_>) -> Result<()> {
        let (operation, range) = (request.operation(), request.range());
        (self.before)(request).map_err(|source| self.error(operation, range, source))
    }

    /// Calls the hook before the request, the device below, and the hook after the request.
    fn ask<'a>(&self, request: impl Fn() -> Request<'a>, do_it: impl FnOnce() -> Result<()>) -> Result<()> {
        self.before_it(request())?;
        do_it()?;
        (self.after)(request());
        Ok(())
    }

    fn error(&self, operation: &'static str, range: Range<u64>, source: io::Error) -> StorageError {
        StorageError { operation, device: self.name(), offset: range.start, len: range.end - range.start, source }
    }
}

impl Device for TestDevice {
    crate::pass_on!(all but steered);

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        let set = || {
            let has = self.inner.len_bytes()?;
            match self.has_fixed_len {
                false => self.inner.set_len_bytes(len),
                true if len <= has => Ok(()),
                true => {
                    let full = io::Error::new(ErrorKind::StorageFull, format!("the device has {has} bytes"));
                    Err(self.error("set length", 0..len, full))
                }
            }
        };
        self.ask(|| Request::SetLen(len), set)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.before_it(Request::Read { offset, buf: &mut *buf })?;
        self.inner.read_at(offset, buf)?;
        (self.after)(Request::Read { offset, buf });
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.ask(|| Request::Write { offset, data }, || self.inner.write_at(offset, data, placement))
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        let requests = || writes.iter().map(|Write { offset, data, .. }| Request::Write { offset: *offset, data });
        requests().try_for_each(|request| self.before_it(request))?;
        self.inner.write_batch(writes)?;
        requests().for_each(|request| (self.after)(request));
        Ok(())
    }

    fn begin_write_back(&self, offset: u64, len: u64) -> Result<()> {
        self.ask(|| Request::WriteBack(offset..offset + len), || self.inner.begin_write_back(offset, len))
    }

    fn sync(&self) -> Result<()> {
        self.ask(|| Request::Sync, || if self.skips_syncs { Ok(()) } else { self.inner.sync() })
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.ask(|| Request::Reserve(offset..offset + len), || self.inner.reserve(offset, len))
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.ask(|| Request::Discard(offset..offset + len), || self.inner.discard(offset, len))
    }

    fn discard_keeps_room(&self) -> bool {
        self.has_fixed_len || self.inner.discard_keeps_room()
    }

    fn has_fixed_len(&self) -> bool {
        self.has_fixed_len || self.inner.has_fixed_len()
    }

    fn prefers_discards(&self) -> bool {
        self.prefers_discards || self.inner.prefers_discards()
    }

    fn identity(&self) -> Option<String> {
        self.identity.clone().or_else(|| self.inner.identity())
    }
}

#[cfg(test)]
#[path = "test_device_test.rs"]
mod tests;
