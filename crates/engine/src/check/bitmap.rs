//! A bit for each page of the file.

use crate::types::PageNo;

pub(super) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// No page.
    pub(super) fn new(pages: u32) -> Bitmap {
        Bitmap { words: vec![0; (pages as usize).div_ceil(64)] }
    }

    /// Adds a page; false if it was there already, or is beyond the file.
    pub(super) fn insert(&mut self, page: PageNo) -> bool {
        let Some(word) = self.words.get_mut(page.0 as usize / 64) else { return false };
        let bit = 1 << (page.0 % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// The bits of pages `64 * n ..`, an extent's.
    pub(super) fn extent(&self, n: u32) -> u64 {
        self.words.get(n as usize).copied().unwrap_or(0)
    }
}

const _: () = assert!(crate::space::layout::EXTENT_PAGES == 64);
