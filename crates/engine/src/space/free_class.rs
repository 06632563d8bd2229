//! Free classes: a bound of the free space in the leaves of non-unique secondary indexes, known without reading them.
//!
//! Terms: class `c` of a page says that at least `c` times a [`CLASSES`]th of half of the page is free; 0: no lower
//! bound.
//!
//! Rules
//! 1. At every point of the log, a leaf to which all its logged changes are applied has at least the free bytes of its
//!    class. So a change that uses space lowers the class in the same mini-transaction; a change that frees space may
//!    raise it or not.
//! 2. The class of a page changes only under the page's exclusive latch or, while the page is not in the pool, by the
//!    change buffer, which keeps it from being read in meanwhile.
//! 3. A free page has class 0.
//!
//! Differs from InnoDB: sixteen classes instead of four (`ibuf0ibuf`: 0, 1/32, 2/32 and 4/32 of the page), in the
//! extent map instead of a bitmap page of their own.

use super::Space;
use super::layout::CLASS_BITS;
use crate::context::Context;
use crate::mtr::Mtr;
use crate::types::PageNo;

/// Number of classes.
const CLASSES: usize = 1 << CLASS_BITS;

const fn class_bytes(page_bytes: usize) -> usize {
    page_bytes / (2 * CLASSES)
}

impl Space {
    /// A lower bound of the leaf's free bytes.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool.
    pub(crate) fn min_free_bytes(&self, ctx: &Context, page: PageNo) -> std::result::Result<usize, PageNo> {
        let (map, word_at, shift) = self.layout.class_of(page);
        let word = ctx.pool.peek_u64(map, usize::from(word_at)).ok_or(map)?;
        Ok((word >> shift) as usize % CLASSES * class_bytes(ctx.pool.page_bytes()))
    }

    /// Notes in `mtr` that the leaf has at least `free_bytes` free from now on; rule 2 has the allowed callers. The mtr
    /// has changed nothing yet.
    ///
    /// # Errors
    /// The leaf's extent map, which is not in the pool: the caller loads it without latches and starts again.
    pub(crate) fn note_free_bytes(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageNo,
        free_bytes: usize,
    ) -> std::result::Result<(), PageNo> {
        let unit = class_bytes(mtr.context().pool.page_bytes());
        let class = (free_bytes / unit).min(CLASSES - 1);
        if self.min_free_bytes(mtr.context(), page)? == class * unit {
            return Ok(());
        }
        let (map, word_at, shift) = self.layout.class_of(page);
        if !mtr.pin(map) {
            return Err(map);
        }
        debug_assert!(class * unit <= free_bytes, "rule 1: class {class} says more than {free_bytes} bytes");
        let (class, all) = (class as u64, (CLASSES - 1) as u64);
        for (set, bits) in [(false, all & !class), (true, class)] {
            if bits != 0 {
                mtr.defer(map, word_at, set, bits << shift);
            }
        }
        Ok(())
    }

    /// As [`Space::note_free_bytes`], if the mtr keeps the leaf's map ([`Space::try_keep_map`]); else nothing is noted.
    /// The mtr may have changed pages.
    pub(crate) fn note_free_bytes_if_kept(&self, mtr: &mut Mtr<'_>, page: PageNo, free_bytes: usize) {
        if mtr.is_pinned(self.layout.class_of(page).0) {
            // It is pinned, so it is in the pool.
            let _ = self.note_free_bytes(mtr, page, free_bytes);
        }
    }

    /// Gives pages that are freed class 0. Their map is kept, and they share a word of it.
    pub(super) fn clear_free_classes(&self, mtr: &mut Mtr<'_>, first: PageNo, pages: u32) {
        let (map, word_at, shift) = self.layout.class_of(first);
        debug_assert!(shift + pages * CLASS_BITS <= u64::BITS, "the classes of {pages} pages are not in one word");
        let mask = ((1_u64 << (pages * CLASS_BITS)) - 1) << shift;
        if mtr.context().pool.peek_u64(map, usize::from(word_at)).is_none_or(|word| word & mask != 0) {
            mtr.defer(map, word_at, false, mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::small_parts;

    #[test]
    fn a_class_is_what_was_noted_rounded_down() {
        let parts = small_parts();
        let (ctx, space) = (&parts.ctx, &parts.space);
        let page = PageNo(40);
        for (noted, known) in [(4096, 15 * 128), (1000, 896), (127, 0), (128, 128), (0, 0), (1919, 1792)] {
            let mut mtr = ctx.mtr().unwrap();
            space.keep_map(&mut mtr, page).unwrap();
            space.note_free_bytes(&mut mtr, page, noted).unwrap();
            mtr.commit();
            assert_eq!(space.min_free_bytes(ctx, page), Ok(known), "{noted}");
            assert_eq!(space.min_free_bytes(ctx, PageNo(41)), Ok(0));
        }
    }
}
