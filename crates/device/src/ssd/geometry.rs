//! Geometry: the layout of flash, and the arithmetic between its addresses.
//!
//! Terms
//! - A *slot* holds one 4 KiB block of the host. Slots are numbered through the whole device.
//! - A *flash page* is what one plane programs at once, several slots.
//! - A *program* writes the same page of every plane of one die (multi-plane program): [`Geometry::slots_per_program`]
//!   slots.
//! - An *erase unit* (superblock, FDP: reclaim unit) is one block of every plane of `dies_per_unit` dies;
//!   it is opened, filled, collected and erased as a whole.
//!
//! Rules
//! 1. Programs go round the dies of the unit: program `i` of a unit is page `i / dies_per_unit` of die `i %
//!    dies_per_unit`. So filling a unit slot by slot programs each block's pages in order.
//! 2. `slots_per_unit` is a multiple of 64: the validity bitmap has whole words per unit.

use crate::error::{DeviceError, Result};
use serde::{Deserialize, Serialize};

/// Bytes of the mapping unit, of a host block and of a slot.
pub const BLOCK_BYTES: u32 = 4096;

/// The shape of the flash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Buses between the controller and the dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die that program together.
    pub planes_per_die: u32,
    /// Blocks in each plane.
    pub blocks_per_plane: u32,
    /// Flash pages in each block.
    pub pages_per_block: u32,
    /// Bytes of a flash page, a multiple of 4096.
    pub page_bytes: u32,
    /// Dies an erase unit spans; divides the number of dies.
    pub dies_per_unit: u32,
}

impl Geometry {
    /// One die whose erase units hold `slots_per_unit` slots: the plain model of the literature.
    pub fn simple(units: u32, slots_per_unit: u32) -> Geometry {
        Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: units,
            pages_per_block: slots_per_unit,
            page_bytes: BLOCK_BYTES,
            dies_per_unit: 1,
        }
    }

    /// Number of dies.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Slots written by one multi-plane program.
    pub fn slots_per_program(&self) -> u32 {
        self.planes_per_die * (self.page_bytes / BLOCK_BYTES)
    }

    /// Programs that fill an erase unit.
    pub fn programs_per_unit(&self) -> u32 {
        self.dies_per_unit * self.pages_per_block
    }

    /// Slots in an erase unit.
    pub fn slots_per_unit(&self) -> u32 {
        self.programs_per_unit() * self.slots_per_program()
    }

    /// Groups of dies that share erase units.
    pub fn die_groups(&self) -> u32 {
        self.dies() / self.dies_per_unit
    }

    /// Erase units on the device.
    pub fn units(&self) -> u32 {
        self.blocks_per_plane * self.die_groups()
    }

    /// Slots on the device.
    pub fn slots(&self) -> u64 {
        u64::from(self.units()) * u64::from(self.slots_per_unit())
    }

    /// The die that program `program` of `unit` goes to.
    #[inline]
    pub fn die_of(&self, unit: u32, program: u32) -> u32 {
        (unit % self.die_groups()) * self.dies_per_unit + program % self.dies_per_unit
    }

    /// The channel a die hangs on.
    #[inline]
    pub fn channel_of(&self, die: u32) -> u32 {
        die % self.channels
    }

    /// Whether the numbers make a device.
    pub fn validate(&self) -> Result<()> {
        let counts = [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
            ("dies_per_unit", self.dies_per_unit),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, n)| *n == 0) {
            return Err(DeviceError::Config(format!("{name} must not be 0")));
        }
        if self.page_bytes == 0 || !self.page_bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(DeviceError::Config(format!("page_bytes must be a multiple of 4096, not {}", self.page_bytes)));
        }
        self.validate_units()
    }

    fn validate_units(&self) -> Result<()> {
        self.validate_products()?;
        if !self.dies().is_multiple_of(self.dies_per_unit) {
            let (dies, per_unit) = (self.dies(), self.dies_per_unit);
            return Err(DeviceError::Config(format!("dies_per_unit {per_unit} does not divide the {dies} dies")));
        }
        let per_unit = u64::from(self.programs_per_unit()) * u64::from(self.slots_per_program());
        if per_unit > u64::from(u32::MAX) / 4 {
            let what = format!("an erase unit of {per_unit} slots of 4 KiB is too large: a smaller --erase-unit");
            return Err(DeviceError::Config(what));
        }
        if !per_unit.is_multiple_of(64) {
            return Err(DeviceError::Config(format!("an erase unit must hold a multiple of 64 slots, not {per_unit}")));
        }
        if self.pages_per_block > u32::from(u16::MAX) {
            return Err(DeviceError::Config(format!("pages_per_block {} is over 65535", self.pages_per_block)));
        }
        if self.slots() >= u64::from(u32::MAX) {
            return Err(DeviceError::Config(format!("{} slots are more than 32 bits address", self.slots())));
        }
        Ok(())
    }

    /// Refuses numbers with which the arithmetic above would leave its 32 bits; each product is 64 bits wide at most.
    fn validate_products(&self) -> Result<()> {
        let product = |name: &str, one: u32, other: u64| {
            let product = u64::from(one) * other;
            let what = || format!("{name} are {product}, and more than 32 bits number");
            u32::try_from(product).map_err(|_| DeviceError::Config(what()))
        };
        product("channels times dies_per_channel", self.channels, self.dies_per_channel.into())?;
        let program = u64::from(self.page_bytes / BLOCK_BYTES);
        let program = product("the slots of a program, in planes_per_die pages,", self.planes_per_die, program)?;
        let unit = product("dies_per_unit times pages_per_block", self.dies_per_unit, self.pages_per_block.into())?;
        product("the slots of an erase unit", unit, program.into())?;
        let groups = self.dies() / self.dies_per_unit;
        product("the erase units, blocks_per_plane for each group of dies,", self.blocks_per_plane, groups.into())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Geometry {
        Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 10,
            pages_per_block: 16,
            page_bytes: 16384,
            dies_per_unit: 2,
        }
    }

    #[test]
    fn sizes_multiply_out() {
        let g = example();
        g.validate().unwrap();
        assert_eq!((g.dies(), g.slots_per_program(), g.slots_per_unit(), g.units()), (4, 8, 256, 20));
        assert_eq!(g.slots(), 20 * 256);
    }

    #[test]
    fn programs_go_round_the_dies_of_their_group() {
        let g = example();
        assert_eq!((0..4).map(|p| g.die_of(0, p)).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!((0..4).map(|p| g.die_of(3, p)).collect::<Vec<_>>(), [2, 3, 2, 3]);
        assert_eq!((0..4).map(|d| g.channel_of(d)).collect::<Vec<_>>(), [0, 1, 0, 1]);
    }

    #[test]
    fn nonsense_is_refused() {
        let bad = |change: fn(&mut Geometry)| {
            let mut g = example();
            change(&mut g);
            g.validate().unwrap_err().to_string()
        };
        assert!(bad(|g| g.channels = 0).contains("channels"));
        assert!(bad(|g| g.page_bytes = 6000).contains("page_bytes"));
        assert!(bad(|g| g.dies_per_unit = 3).contains("divide"));
        assert!(bad(|g| (g.pages_per_block, g.page_bytes) = (3, 4096)).contains("multiple of 64"));
        assert!(bad(|g| g.blocks_per_plane = 1 << 29).contains("32 bits"));
        for change in [
            (|g| (g.channels, g.dies_per_channel) = (u32::MAX, 2)) as fn(&mut Geometry),
            |g| (g.planes_per_die, g.page_bytes) = (u32::MAX, 1 << 20),
            |g| (g.dies_per_unit, g.pages_per_block) = (2, u32::MAX),
            |g| (g.pages_per_block, g.planes_per_die) = (1 << 20, 1 << 20),
            |g| (g.channels, g.blocks_per_plane) = (1 << 20, 1 << 20),
        ] {
            assert!(bad(change).contains("more than 32 bits number"), "{}", bad(change));
        }
    }
}
