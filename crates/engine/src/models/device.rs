//! A device at which threads take turns: the schedule may continue with another one before and after each request.

use crate::sync::thread::yield_now;
use highwater_storage::{Device, Placement, Result, pass_on};
use std::sync::Arc;

/// See the head of this file.
pub struct Turns {
    inner: Arc<dyn Device>,
}

impl Turns {
    pub fn over(inner: Arc<dyn Device>) -> Turns {
        Turns { inner }
    }

    fn turn<R>(&self, request: impl FnOnce(&dyn Device) -> R) -> R {
        yield_now();
        let done = request(&*self.inner);
        yield_now();
        done
    }
}

impl Device for Turns {
    pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.turn(|device| device.set_len_bytes(len))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.turn(|device| device.read_at(offset, buf))
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.turn(|device| device.write_at(offset, data, placement))
    }

    fn sync(&self) -> Result<()> {
        self.turn(|device| device.sync())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.turn(|device| device.discard(offset, len))
    }
}
