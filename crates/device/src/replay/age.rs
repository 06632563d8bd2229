//! Ageing: what was written to the device before the trace begins.

use super::plan::Plan;
use crate::error::{DeviceError, Result};
use crate::model::{BlockModel, Request};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde::{Deserialize, Serialize};

/// What happens to the device first. Blocks are written in the stream the rules give them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Age {
    /// Every block is written once, in order.
    pub fill: bool,
    /// Then so many times the capacity is overwritten, block by block at random.
    pub overwrites: f64,
    /// Seed of the overwrites.
    pub seed: u64,
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
            None if text == "none" => Ok(Age { fill: false, ..Age::default() }),
            None if text == "fill" => Ok(Age::default()),
            Some(("random", times)) => match times.parse::<f64>() {
                Ok(overwrites) if (0.0..=1000.0).contains(&overwrites) => Ok(Age { overwrites, ..Age::default() }),
                _ => Err(DeviceError::Config(format!("age random:{times}: expected a number from 0 to 1000"))),
            },
            _ => Err(DeviceError::Config(format!("age \"{text}\" is none of none, fill, random:N"))),
        }
    }
}

/// Ages a new device. Takes no time.
pub fn apply(age: &Age, model: &mut dyn BlockModel, plan: &Plan) -> Result<()> {
    const RUN: u32 = 1024;
    let capacity = model.capacity_blocks();
    if age.fill {
        for lba in (0..capacity).step_by(RUN as usize) {
            write(model, plan, lba, RUN.min(capacity - lba))?;
        }
    }
    let mut rng = SmallRng::seed_from_u64(age.seed);
    for _ in 0..(f64::from(capacity) * age.overwrites) as u64 {
        write(model, plan, rng.random_range(0..capacity), 1)?;
    }
    Ok(())
}

fn write(model: &mut dyn BlockModel, plan: &Plan, lba: u32, blocks: u32) -> Result<()> {
    plan.labels.split(lba, blocks, |lba, blocks, label| {
        model.submit(0, &Request::write(lba, blocks, label.stream)).map(|_| ())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
