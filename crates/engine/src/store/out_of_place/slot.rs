//! Writing the two slots: the number of pages in the store, and the segments that were cut off (rule 7 of [`super`]).

use super::OutOfPlace;
use super::format::{self, BLOCK_BYTES, SLOTS_AT, StoreSlot};
use crate::error::Result;
use highwater_storage::{AlignedBuf, Placement};

impl OutOfPlace {
    /// Makes the number of pages known to the next opening, if it changed. Durable with the next sync.
    pub(super) fn put_slot(&self) -> Result<()> {
        let mut slot = self.slot.lock();
        let pages = self.segments.map.pages();
        if slot.pages == pages {
            return Ok(());
        }
        *slot = self.put_next_slot(StoreSlot { pages, ..*slot })?;
        Ok(())
    }

    /// Makes known that the segments from `first` on are cut off. Durable with the next sync.
    pub(super) fn put_cut(&self, first: u32) -> Result<()> {
        let mut slot = self.slot.lock();
        let cut_from = if slot.cut_from == 0 { first } else { first.min(slot.cut_from) };
        let cut_sequence = self.appender.newest();
        debug_assert!(slot.cut_sequence <= cut_sequence, "the newest batch falls to {cut_sequence}: {slot:?}");
        let pages = self.segments.map.pages();
        *slot = self.put_next_slot(StoreSlot { pages, cut_from, cut_sequence, ..*slot })?;
        Ok(())
    }

    fn put_next_slot(&self, slot: StoreSlot) -> Result<StoreSlot> {
        let next = StoreSlot { sequence: slot.sequence + 1, ..slot };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
        format::put_slot(&mut block, self.geometry.database_id, &next);
        self.data.device().write_at(SLOTS_AT[next.sequence as usize % SLOTS_AT.len()], &block, Placement::Other)?;
        Ok(next)
    }
}
