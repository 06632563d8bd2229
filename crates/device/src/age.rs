//! Ageing: writes to a device before it is measured. A new drive has no valid data to copy, so every workload looks
//! better on it.

use crate::error::{DeviceError, Result};
use crate::labels::Labels;
use crate::model::{BlockModel, Request};
use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// The writes that age a device. Each block is written in the stream that the rules assign to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Age {
    /// Every block is written once, in order.
    pub fill: bool,
    /// Then this many times the capacity is overwritten, block by block at random.
    pub overwrites: f64,
    /// Seed of the overwrites.
    pub seed: u64,
}

impl Age {
    /// A new device.
    pub const NONE: Age = Age { fill: false, overwrites: 0.0, seed: 1 };
}

impl Default for Age {
    /// Filled once.
    fn default() -> Age {
        Age { fill: true, overwrites: 0.0, seed: 1 }
    }
}

impl std::str::FromStr for Age {
    type Err = DeviceError;

    /// `none`, `fill`, or `random:N` (filled, then N times the capacity overwritten at random).
    fn from_str(text: &str) -> Result<Age> {
        match text.split_once(':') {
            None if text == "none" => Ok(Age::NONE),
            None if text == "fill" => Ok(Age::default()),
            Some(("random", times)) => match times.parse::<f64>() {
                Ok(overwrites) if (0.0..=1000.0).contains(&overwrites) => Ok(Age { overwrites, ..Age::default() }),
                _ => Err(DeviceError::Config(format!("age random:{times}: expected a number from 0 to 1000"))),
            },
            _ => Err(DeviceError::Config(format!("age \"{text}\" is not one of none, fill, random:N"))),
        }
    }
}

/// A callback that gets the completed share of the ageing, 0 to 1. An error from it ends the ageing.
pub type Progress<'a> = dyn FnMut(f64) -> Result<()> + 'a;

/// Ages a new device whose blocks belong to the given streams. Ageing takes no device time: afterwards the device is
/// idle at time 0 and its buffers are empty. `progress` is called repeatedly with the completed share; an error from it
/// ends the ageing.
pub fn apply(age: &Age, model: &mut dyn BlockModel, streams: &Labels<u8>, progress: &mut Progress<'_>) -> Result<()> {
    const RUN: u32 = 1024;
    const PROGRESS_EVERY: u64 = 1 << 18;
    let capacity = model.capacity_blocks();
    let (filled, overwritten) = (u64::from(capacity) * u64::from(age.fill), f64::from(capacity) * age.overwrites);
    let all = filled as f64 + overwritten;
    let mut done = 0;
    while done < filled {
        let lba = done as u32;
        let blocks = RUN.min(capacity - lba);
        write(model, streams, lba, blocks)?;
        done += u64::from(blocks);
        if done.is_multiple_of(PROGRESS_EVERY) {
            progress(done as f64 / all)?;
        }
    }
    let mut rng = Rng::with_seed(age.seed);
    for i in 0..overwritten as u64 {
        write(model, streams, rng.u32(0..capacity), 1)?;
        if i.is_multiple_of(PROGRESS_EVERY) {
            progress((filled + i) as f64 / all)?;
        }
    }
    model.rest();
    Ok(())
}

fn write(model: &mut dyn BlockModel, streams: &Labels<u8>, lba: u32, blocks: u32) -> Result<()> {
    streams.split(lba, blocks, |lba, blocks, stream| model.submit(0, &Request::write(lba, blocks, stream)).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::{self, PRESETS};

    /// What ageing wrote must neither delay the first requests nor be counted.
    #[test]
    fn ageing_takes_no_time_and_leaves_nothing_waiting() {
        let first_requests = |age: Age, model: &mut dyn BlockModel| {
            apply(&age, model, &Labels::all(0), &mut |_| Ok(())).unwrap();
            let aged = model.counters();
            let requests = [Request::write(7, 1, 0), Request::flush(), Request::write(99, 4, 0), Request::flush()];
            let times = requests.map(|request| model.submit(0, &request).unwrap());
            (times, model.counters().since(&aged))
        };
        for preset in PRESETS {
            let config = preset.config().scaled_to(1 << 16);
            let aged = first_requests(Age::default(), config.build(true).unwrap().as_mut());
            assert_eq!(aged, first_requests(Age::NONE, config.build(true).unwrap().as_mut()), "{}", preset.name);
        }
    }

    #[test]
    fn ageing_can_be_stopped() {
        for age in ["fill", "random:2"] {
            let mut model = preset::find("simple-2gb").unwrap().config().build(false).unwrap();
            let mut stop = |_| Err(DeviceError::Stopped);
            let stopped = apply(&age.parse().unwrap(), model.as_mut(), &Labels::all(0), &mut stop);
            assert!(matches!(stopped, Err(DeviceError::Stopped)), "{age}");
        }
    }

    #[test]
    fn text_forms() {
        assert!(!"none".parse::<Age>().unwrap().fill);
        assert_eq!("fill".parse::<Age>().unwrap(), Age::default());
        assert_eq!("random:1.5".parse::<Age>().unwrap().overwrites, 1.5);
        for bad in ["", "old", "random:", "random:-1", "random:x"] {
            assert!(bad.parse::<Age>().is_err(), "{bad}");
        }
    }
}
