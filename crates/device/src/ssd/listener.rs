//! Receives the flash operations of the translation layer. The translation layer determines the operations, the
//! listener their time.

/// The cause of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote.
    Host,
    /// Garbage collection moved a slot.
    CopyBack,
}

/// Receives every operation on the flash, in order.
pub trait MediaListener {
    /// Whether the listener uses the operations; the calls of a listener that does not are compiled away.
    const LISTENS: bool = true;
    /// Program number `program` of `unit` happens.
    fn program(&mut self, unit: u32, program: u32, cause: Cause);
    /// Garbage collection reads the pages of program number `program` of `unit`.
    fn copy_read(&mut self, unit: u32, program: u32);
    /// `unit` is erased; collecting it gained `freed_slots` slots for the host.
    fn erase(&mut self, unit: u32, freed_slots: u32);
}

/// Ignores all operations, to count wear as fast as the processor allows.
pub struct Silent;

impl MediaListener for Silent {
    const LISTENS: bool = false;
    #[inline(always)]
    fn program(&mut self, _: u32, _: u32, _: Cause) {}
    #[inline(always)]
    fn copy_read(&mut self, _: u32, _: u32) {}
    #[inline(always)]
    fn erase(&mut self, _: u32, _: u32) {}
}
