//! The flash itself: the physical rules, asserted, and the wear.
//!
//! Rules (a breach is a bug of the FTL and panics; no host request can cause one)
//! 1. A page is programmed only in an erased block and only in order: page n after page n-1.
//! 2. A page is never programmed twice between two erases.
//! 3. Only programmed pages are read.
//!
//! A "row" is the block of each plane of one die that belongs to one erase unit: multi-plane operations
//! keep those in step, so one write pointer serves them all.

use super::geometry::Geometry;
use super::table::table;
use crate::error::Result;

/// Write pointers and erase counts of all blocks.
pub struct Nand {
    dies_per_unit: u32,
    pages_per_block: u16,
    /// Next page to program, by unit and die within the unit.
    next_page: Box<[u16]>,
    /// Erases so far, by unit: the blocks of a unit are always erased together.
    erases: Box<[u32]>,
}

impl Nand {
    /// Erased flash without wear.
    pub fn new(geometry: &Geometry) -> Result<Nand> {
        Ok(Nand {
            dies_per_unit: geometry.dies_per_unit,
            pages_per_block: geometry.pages_per_block as u16,
            next_page: table(geometry.units() as usize * geometry.dies_per_unit as usize, 0)?,
            erases: table(geometry.units() as usize, 0)?,
        })
    }

    /// Programs the pages of program number `program` of `unit`.
    #[inline]
    pub fn program(&mut self, unit: u32, program: u32) {
        let (die, page) = (program % self.dies_per_unit, program / self.dies_per_unit);
        let next = &mut self.next_page[(unit * self.dies_per_unit + die) as usize];
        assert!(page == u32::from(*next), "unit {unit} die {die}: program of page {page}, but page {next} is next");
        assert!(*next < self.pages_per_block, "unit {unit} die {die}: program of a full block");
        *next += 1;
    }

    /// Asserts that program number `program` of `unit` has happened, so that it may be read.
    #[inline]
    pub fn assert_programmed(&self, unit: u32, program: u32) {
        let (die, page) = (program % self.dies_per_unit, program / self.dies_per_unit);
        let next = self.next_page[(unit * self.dies_per_unit + die) as usize];
        assert!(page < u32::from(next), "unit {unit} die {die}: read of page {page}, but only {next} are programmed");
    }

    /// Erases all blocks of `unit`.
    pub fn erase(&mut self, unit: u32) {
        let first = (unit * self.dies_per_unit) as usize;
        self.next_page[first..first + self.dies_per_unit as usize].fill(0);
        self.erases[unit as usize] += 1;
    }

    /// Erases so far by unit.
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.next_page.len() * 2 + self.erases.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nand() -> Nand {
        let geometry = Geometry { dies_per_channel: 2, dies_per_unit: 2, ..Geometry::simple(4, 64) };
        Nand::new(&geometry).unwrap()
    }

    #[test]
    fn in_order_programs_and_erase_work() {
        let mut nand = nand();
        for program in 0..128 {
            nand.program(1, program);
        }
        nand.assert_programmed(1, 127);
        nand.erase(1);
        nand.program(1, 0);
        assert_eq!(nand.erases(), [0, 1, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "page 0 is next")]
    fn skipping_a_page_panics() {
        nand().program(0, 2);
    }

    #[test]
    #[should_panic(expected = "page 1 is next")]
    fn overwriting_without_erase_panics() {
        let mut nand = nand();
        nand.program(0, 0);
        nand.program(0, 0);
    }

    #[test]
    #[should_panic(expected = "is next")]
    fn programming_a_full_block_panics() {
        let mut nand = nand();
        (0..129).for_each(|p| nand.program(0, p % 128));
    }

    #[test]
    #[should_panic(expected = "read of page 0")]
    fn reading_an_erased_page_panics() {
        nand().assert_programmed(0, 0);
    }
}
