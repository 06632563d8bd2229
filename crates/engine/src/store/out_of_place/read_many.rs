//! Reading many pages concurrently: the blocks of all their images are in flight together.
//!
//! Rules
//! 1. Rule 2 of [`super::map`]: the bytes are used if the map still points there. A page that has moved is read again,
//!    alone.
//! 2. Consecutive pages are not contiguous in the store, so a read of several is made page by page.

use super::OutOfPlace;
use super::codec;
use super::image::{Blocks, with_scratch};
use super::map::Location;
use crate::error::{Error, Result};
use crate::store::{PageRead, PageReadCallback, PageSource};
use highwater_storage::Read;

/// A page that is read with others.
struct Wanted {
    /// Index of the read.
    index: usize,
    location: Location,
    blocks: Blocks,
}

impl OutOfPlace {
    /// See [`PageStore::read_many`](crate::store::PageStore::read_many).
    pub(super) fn read_together(&self, reads: &mut [PageRead<'_>], done: &mut PageReadCallback<'_>) {
        let wanted: Vec<Wanted> = reads.iter().enumerate().filter_map(|(n, read)| self.wanted(n, read)).collect();
        let mut is_done = vec![false; reads.len()];
        with_scratch(wanted.iter().map(|one| one.blocks.bytes).sum(), |scratch| {
            let mut ranges = ranges_of(&wanted, scratch);
            self.device().read_batch(&mut ranges, &mut |n, blocks| {
                let Wanted { index, location, blocks: Blocks { image, .. } } = &wanted[n];
                let PageRead { first, buf } = &mut reads[*index];
                let decoded = blocks.map_err(Error::from).and_then(|blocks| {
                    codec::read_image(&blocks[image.clone()], buf).map_err(|unreadable| unreadable.of_page(*first))
                });
                if self.segments.map.get(*first) == Some(*location) {
                    debug_assert!(!is_done[*index], "page {first} is given on twice");
                    is_done[*index] = true;
                    done(*index, decoded.map(|()| &**buf));
                } else {
                    self.stats.store_read_retries.inc();
                }
            });
        });
        for (index, read) in reads.iter_mut().enumerate().filter(|(index, _)| !is_done[*index]) {
            let result: Result<()> = self.read(read.first, read.buf);
            done(index, result.map(|()| &*read.buf));
        }
    }

    /// The read of a page's image in a batch; `None` for several pages, and for a page without an image.
    fn wanted(&self, index: usize, read: &PageRead<'_>) -> Option<Wanted> {
        let is_one = read.buf.len() == self.geometry.page_bytes;
        let location = is_one.then(|| self.segments.map.get(read.first)).flatten()?;
        Some(Wanted { index, location, blocks: self.geometry.blocks_of(location) })
    }
}

/// The reads of the device, one after another in memory.
fn ranges_of<'b>(wanted: &[Wanted], scratch: &'b mut [u8]) -> Vec<Read<'b>> {
    let mut rest = scratch;
    let range = |one: &Wanted| {
        let (buf, behind) = std::mem::take(&mut rest).split_at_mut(one.blocks.bytes);
        rest = behind;
        Read { offset: one.blocks.offset, buf }
    };
    wanted.iter().map(range).collect()
}
