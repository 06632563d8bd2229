//! A signal that ends the pause of a background thread early.

use crate::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Default)]
pub struct Wake {
    asked: Mutex<bool>,
    bell: Condvar,
}

impl Wake {
    /// Asks for a step now.
    pub fn wake(&self) {
        let mut asked = self.asked.lock();
        if !*asked {
            *asked = true;
            self.bell.notify_one();
        }
    }

    /// Waits until asked or until `timeout` has passed.
    pub fn wait(&self, timeout: Duration) {
        let mut asked = self.asked.lock();
        if !*asked {
            self.bell.wait_for(&mut asked, timeout);
        }
        *asked = false;
    }
}
