//! The promises of a device about power cuts. [`crash`](crate::crash) chooses one of the outcomes that these promises
//! allow.
//!
//! The five fault classes are those that Zheng, Tucek, Qin and Lillibridge ("Understanding the Robustness of SSDs under
//! Power Fault", FAST 2013) saw on 13 of 15 drives; the sixth, a flush that does nothing, makes all the others
//! matter.

use crate::error::{DeviceError, Result};
use highwater_storage::power_cut::Guarantees;
use serde::{Deserialize, Serialize};

/// The guarantees of a device, and its faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Promises {
    /// An aligned piece of this size (a power of two, 512 or more) that one write request covers survives whole or not
    /// at all. Smaller pieces tear at 512-byte sectors.
    pub atomic_write_bytes: u32,
    /// A request no longer than the atomic unit survives whole or not at all wherever it begins, not only where it is
    /// aligned (NVMe's AWUPF without boundaries).
    pub atomic_anywhere: bool,
    /// Completed writes that were not flushed may be lost in a power cut. False for a device with power-loss
    /// protection.
    pub volatile_cache: bool,
    /// The unflushed writes that survive are a prefix in the order of completion.
    pub ordered: bool,
    /// The faults by which the device breaks its promises.
    pub faults: Faults,
}

impl Default for Promises {
    /// An honest device with a volatile cache and 4 KiB atomic writes, which promises no order.
    fn default() -> Promises {
        Promises {
            atomic_write_bytes: 4096,
            atomic_anywhere: false,
            volatile_cache: true,
            ordered: false,
            faults: Faults::default(),
        }
    }
}

/// Switches for the faults of a device at a power cut. All are off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// A 4 KiB block of an unflushed write is left with its first 3/8 or 7/8 new and the rest old, whatever the atomic
    /// unit.
    pub shorn_writes: bool,
    /// Writes that were flushed may be lost although later ones survive.
    pub unserializable_writes: bool,
    /// Bits flip in recently written blocks.
    pub bit_corruption: bool,
    /// The mapping of a range of the device is lost: its blocks cannot be read until they are written again.
    pub metadata_corruption: bool,
    /// The device does not start again.
    pub dead_device: bool,
    /// Flush returns at once and makes nothing durable.
    pub lying_flush: bool,
}

impl Promises {
    /// A device that keeps every completed write, with atomic writes of `atomic_write_bytes`.
    pub fn protected(atomic_write_bytes: u32) -> Promises {
        Promises { atomic_write_bytes, volatile_cache: false, ordered: true, ..Promises::default() }
    }

    /// The subset of the promises that determines which writes survive.
    pub(crate) fn guarantees(&self) -> Guarantees {
        Guarantees {
            atomic_write_bytes: self.atomic_write_bytes,
            atomic_anywhere: self.atomic_anywhere,
            volatile_cache: self.volatile_cache,
            ordered: self.ordered,
            shorn_writes: self.faults.shorn_writes,
            unserializable_writes: self.faults.unserializable_writes,
        }
    }

    /// Whether the values make sense.
    pub fn validate(&self) -> Result<()> {
        let unit = self.atomic_write_bytes;
        if !unit.is_power_of_two() || unit < 512 {
            let what = format!("atomic_write_bytes must be a power of two and at least 512, not {unit}");
            return Err(DeviceError::Config(what));
        }
        Ok(())
    }
}
