//! Reads the pages of a store in use for a backup, and verifies each.
//!
//! Rules
//! 1. Extents are read whole. A page that does not verify may be in the middle of a write: it is read again, alone,
//!    until it verifies, for at most the time of a write. After that it is copied from the pool if it is there, because
//!    the store may not have it yet. Only pages in the pool are written, so a page that is not there is read again only
//!    a few times.
//! 2. A page that still does not verify, or is zeros, is damaged if it is in use. If it is free, and not in the pool,
//!    it is left out: it was discarded, or never written, and no redo that the backup keeps changes it before a format.

use crate::context::Context;
use crate::error::{Error, PageDamage, Result};
use crate::page::{check_not_lost, header};
use crate::space::Space;
use crate::space::layout::EXTENT_PAGES;
use crate::types::PageNo;
use highwater_storage::AlignedBuf;
use std::time::Duration;

/// Reads of a page that does not verify, and those of them that find it outside of the pool.
const MAX_READS: u32 = 200;
const MAX_READS_OF_ABSENT: u32 = 5;
/// Pause between two reads of such a page.
const PAUSE: Duration = Duration::from_millis(5);

/// Reads and verifies the pages of one extent after another.
pub(super) struct ExtentReader<'a> {
    ctx: &'a Context,
    space: &'a Space,
    bytes: AlignedBuf,
    page: AlignedBuf,
}

impl<'a> ExtentReader<'a> {
    pub(super) fn new(ctx: &'a Context, space: &'a Space) -> ExtentReader<'a> {
        let page_bytes = ctx.pool.page_bytes();
        let (bytes, page) = (AlignedBuf::zeroed(page_bytes * EXTENT_PAGES as usize), AlignedBuf::zeroed(page_bytes));
        ExtentReader { ctx, space, bytes, page }
    }

    /// Calls `take` for each page of extent `number` that is not left out: with its bytes, or the error of a damaged
    /// page.
    pub(super) fn read(
        &mut self,
        number: u32,
        mut take: impl FnMut(PageNo, Result<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let (first, page_bytes) = (number * EXTENT_PAGES, self.ctx.pool.page_bytes());
        let whole = self.ctx.pool.store().read(PageNo(first), &mut self.bytes);
        for at in 0..EXTENT_PAGES {
            self.ctx.poison.check()?;
            let page_no = PageNo(first + at);
            let page = &self.bytes[at as usize * page_bytes..][..page_bytes];
            if whole.is_ok() && is_page(page, page_no).is_ok() {
                take(page_no, Ok(page))?;
                continue;
            }
            let may_be_zeros = || self.space.owner(page_no).is_none() || self.space.layout().is_unused(page_no);
            if whole.is_ok() && is_zeros(page) && may_be_zeros() {
                continue;
            }
            match self.read_again(page_no) {
                Ok(true) => take(page_no, Ok(&self.page))?,
                Ok(false) => {}
                Err(error) => take(page_no, Err(error))?,
            }
        }
        Ok(())
    }

    /// Reads a page until it verifies (rule 1); false if it is left out, an error if it is damaged (rule 2).
    fn read_again(&mut self, page_no: PageNo) -> Result<bool> {
        let (mut reads, mut reads_of_absent) = (0, 0);
        loop {
            let read = self.ctx.pool.store().read(page_no, &mut self.page);
            let Err(error) = read.and_then(|()| is_page(&self.page, page_no)) else { return Ok(true) };
            reads += 1;
            let is_free = self.space.owner(page_no).is_none();
            if let Some(resident) = self.ctx.pool.try_fix_s(page_no).filter(|page| !is_free || !is_zeros(page)) {
                self.page.copy_from_slice(&resident);
                header::stamp(&mut self.page, page_no);
                return Ok(true);
            }
            let is_resident = self.ctx.pool.is_resident(page_no);
            reads_of_absent += u32::from(!is_resident);
            if reads_of_absent >= MAX_READS_OF_ABSENT || reads >= MAX_READS {
                let kind = error.page_damage().unwrap_or(PageDamage::Contents);
                let damaged = || Error::damaged_page(page_no, kind, error.into_reason());
                return if is_free { Ok(false) } else { Err(damaged()) };
            }
            // No thread writes a free page that is not in the pool: there is nothing to wait for.
            if !is_free || is_resident {
                crate::sync::thread::sleep(PAUSE);
            }
        }
    }
}

/// Whether these are the bytes of that page.
fn is_page(page: &[u8], page_no: PageNo) -> Result<()> {
    header::verify(page, page_no)?;
    check_not_lost(page, page_no)?;
    match is_zeros(page) {
        true => Err(Error::corrupt_page(page_no, "it is in use, but reads as zeros")),
        false => Ok(()),
    }
}

fn is_zeros(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PageOp, header::PageType};
    use crate::testing::small_parts;

    /// A page that is being written may be torn in the store, and freed meanwhile: the redo of before needs it.
    #[test]
    fn a_free_page_that_the_store_does_not_have_is_taken_from_the_pool() {
        let parts = small_parts();
        let (ctx, space) = (&parts.ctx, &parts.space);
        space.prepare(ctx).unwrap();
        let segment = space.new_segment();
        let mut mtr = ctx.mtr_with(4096, 1).unwrap();
        let page_no = space.allocate(&mut mtr, segment, None).unwrap();
        let page = mtr.new_page(page_no);
        mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: segment.0 });
        mtr.commit();
        let mut mtr = ctx.mtr_with(4096, 1).unwrap();
        space.keep_map(&mut mtr, page_no).unwrap();
        space.free(&mut mtr, page_no);
        let end = mtr.commit();
        ctx.log.flush_to(end).unwrap();
        ctx.pool.flush_all().unwrap();
        let place = page_no.0 as usize * ctx.pool.page_bytes();
        parts.storage().memory_devices().unwrap()[0].damage(|bytes| bytes[place + 100] ^= 1);
        let mut taken = None;
        let mut reader = ExtentReader::new(ctx, space);
        reader
            .read(page_no.0 / EXTENT_PAGES, |at, page| {
                if at == page_no {
                    taken = Some(page.map(header::lsn));
                }
                Ok(())
            })
            .unwrap();
        assert!(taken.is_some_and(|page| page.is_ok_and(|lsn| lsn > crate::types::Lsn(0))));
    }
}
