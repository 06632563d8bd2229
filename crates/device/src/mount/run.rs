//! A mount from setup to unmount: the loop of `highwater device mount`.

use super::{Mount, MountOptions, MountSample};
use crate::error::{DeviceError, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An event that [`run`] reports.
pub enum Event<'a> {
    /// The device is being aged; the completed share.
    Ageing(f64),
    /// Everything is set up.
    Mounted(&'a Mount),
    /// A sample of the counters, at each interval and at the end.
    Sample(&'a MountSample),
    /// Unmounting failed, usually because the file system is in use; it is retried.
    Busy(&'a DeviceError),
}

/// Interval at which `stop` is checked.
const STEP: Duration = Duration::from_millis(50);

/// Pause before another attempt to unmount a busy file system.
const BUSY_STEP: Duration = Duration::from_secs(1);

/// Mounts, samples every `interval` until `stop` is set, and unmounts. While the file system is in use it stays
/// mounted, and unmounting is tried again until `give_up` is set too. The last sample includes the writeback of
/// unmounting. If `stop` is set during setup, that is not an error.
pub fn run(
    options: &MountOptions,
    interval: Duration,
    stop: &AtomicBool,
    give_up: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<()> {
    let mut ageing = |share| {
        tell(Event::Ageing(share));
        if stop.load(Ordering::Relaxed) { Err(DeviceError::Stopped) } else { Ok(()) }
    };
    let mut mount = match Mount::with_progress(options, &mut ageing) {
        // The signal may also have ended a program that the setup runs.
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
        mount => mount?,
    };
    tell(Event::Mounted(&mount));
    watch(&mut mount, interval, stop, tell);
    let ended = end(&mut mount, give_up, tell);
    // The recording is kept even if unmounting was given up.
    let recorded = mount.finish_recording();
    ended.and(recorded)
}

/// Samples until `stop` is set.
fn watch(mount: &mut Mount, interval: Duration, stop: &AtomicBool, tell: &mut dyn FnMut(Event<'_>)) {
    let mut next = Instant::now() + interval;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STEP.min(interval));
        if Instant::now() >= next {
            tell(Event::Sample(&mount.sample()));
            // Samples missed meanwhile are not taken later.
            next = Instant::now() + interval;
        }
    }
}

/// Unmounts, takes the last sample, and tears the device down.
fn end(mount: &mut Mount, give_up: &AtomicBool, tell: &mut dyn FnMut(Event<'_>)) -> Result<()> {
    let unmounted = insist(give_up, tell, || mount.try_unmount_file_system());
    tell(Event::Sample(&mount.sample()));
    unmounted?;
    insist(give_up, tell, || mount.tear_down())
}

/// Calls `act` until it succeeds or `give_up` is set.
fn insist(give_up: &AtomicBool, tell: &mut dyn FnMut(Event<'_>), mut act: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        match act() {
            Err(error) if !give_up.load(Ordering::Relaxed) => {
                tell(Event::Busy(&error));
                std::thread::sleep(BUSY_STEP);
            }
            done => return done,
        }
    }
}
