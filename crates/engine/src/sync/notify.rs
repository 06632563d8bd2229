//! A signal that ends the pause of a background thread early.

use crate::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Notify {
    asked: Mutex<bool>,
    notify: Condvar,
}

impl Notify {
    /// Asks for a step now.
    pub(crate) fn wake(&self) {
        let mut asked = self.asked.lock();
        if !*asked {
            *asked = true;
            self.notify.notify_one();
        }
    }

    /// Waits until asked or until `timeout` has passed.
    pub(crate) fn wait(&self, timeout: Duration) {
        self.wait_for(Some(timeout));
    }

    /// As [`wait`](Self::wait); `None`: until asked.
    pub(crate) fn wait_for(&self, timeout: Option<Duration>) {
        let mut asked = self.asked.lock();
        match timeout {
            _ if *asked => {}
            Some(timeout) => drop(self.notify.wait_for(&mut asked, timeout)),
            None => {
                while !*asked {
                    self.notify.wait(&mut asked);
                }
            }
        }
        *asked = false;
    }
}
