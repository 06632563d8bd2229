//! A device that says when it is about to read or sync.

use crate::sync::Mutex;
use highwater_storage::{Device, Placement};
use std::sync::Arc;

pub type Hook = Box<dyn FnMut() + Send>;

#[derive(Default)]
pub struct Hooks {
    pub before_read: Mutex<Option<Hook>>,
    pub before_sync: Mutex<Option<Hook>>,
}

pub struct TestDevice {
    pub inner: Arc<dyn Device>,
    pub hooks: Arc<Hooks>,
}

/// A hook that reads or syncs itself is not run for that.
fn run(hook: &Mutex<Option<Hook>>) {
    let taken = hook.lock().take();
    if let Some(mut taken) = taken {
        taken();
        hook.lock().get_or_insert(taken);
    }
}

impl Device for TestDevice {
    highwater_storage::pass_on!();

    fn set_len_bytes(&self, len: u64) -> highwater_storage::Result<()> {
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> highwater_storage::Result<()> {
        run(&self.hooks.before_read);
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> highwater_storage::Result<()> {
        self.inner.write_at(offset, data, placement)
    }

    fn sync(&self) -> highwater_storage::Result<()> {
        run(&self.hooks.before_sync);
        self.inner.sync()
    }

    fn discard(&self, offset: u64, len: u64) -> highwater_storage::Result<()> {
        self.inner.discard(offset, len)
    }
}
