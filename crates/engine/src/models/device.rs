//! A device at which threads take turns: the schedule may continue with another one before and after each request.

use crate::sync::thread::yield_now;
use highwater_storage::{Device, TestDevice};
use std::sync::Arc;

/// See the head of this file.
pub(crate) fn taking_turns(inner: Arc<dyn Device>) -> Arc<dyn Device> {
    let turn = |_: highwater_storage::Request<'_>| {
        yield_now();
        Ok(())
    };
    Arc::new(TestDevice::over(inner).before(turn).after(|_| yield_now()))
}
