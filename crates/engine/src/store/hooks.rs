//! Hooks that run before a device reads or syncs; they may be set and replaced at any time.

use crate::sync::Mutex;
use highwater_storage::{Device, Request, TestDevice};
use std::sync::Arc;

pub(super) type Hook = Box<dyn FnMut() + Send>;

#[derive(Default)]
pub(super) struct Hooks {
    pub before_read: Mutex<Option<Hook>>,
    pub before_sync: Mutex<Option<Hook>>,
}

/// A hook that reads or syncs itself is not run for that.
fn run(hook: &Mutex<Option<Hook>>) {
    let taken = hook.lock().take();
    if let Some(mut taken) = taken {
        taken();
        hook.lock().get_or_insert(taken);
    }
}

impl Hooks {
    /// The device, with these hooks.
    pub(super) fn over(self: &Arc<Hooks>, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        let hooks = self.clone();
        Arc::new(TestDevice::over(inner).before(move |request| {
            match request {
                Request::Read { .. } => run(&hooks.before_read),
                Request::Sync => run(&hooks.before_sync),
                _ => {}
            }
            Ok(())
        }))
    }
}
