//! The page map: the location of the newest durable copy of each page.
//!
//! Rules
//! 1. A location changes only while the mutex of [`super::segments`] is held, together with the live bytes of the
//!    segments concerned. Readers take no mutex.
//! 2. After a reader has read an image, it checks the map again: if the location has changed, the bytes may be of
//!    another page, and it reads again. A location includes the life of its segment, which changes with each reuse, so
//!    one location never refers to two images.

use super::format::UNIT_BYTES;
use crate::sync::RwLock;
use crate::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use crate::types::PageNo;

const SEGMENT_BITS: u32 = 22;
const UNIT_BITS: u32 = 18;
const LENGTH_BITS: u32 = 8;
const LIFE_BITS: u32 = 64 - SEGMENT_BITS - UNIT_BITS - LENGTH_BITS;

/// Most bytes of a segment: its units have numbers of 18 bits.
pub(crate) const MAX_SEGMENT_BYTES: u64 = (1 << UNIT_BITS) * UNIT_BYTES as u64;
/// Most bytes of an image.
pub(super) const MAX_IMAGE_BYTES: usize = ((1 << LENGTH_BITS) - 1) * UNIT_BYTES;
/// Most segments, region 0 counted.
pub(super) const MAX_SEGMENTS: u32 = 1 << SEGMENT_BITS;

/// The location of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// Number of the segment; 0 for a page as it was created.
    pub segment: u32,
    /// First byte, from the start of the segment.
    pub offset: usize,
    /// Bytes that it takes.
    pub bytes: usize,
    /// The lowest bits of the segment's life.
    life: u32,
}

impl Location {
    /// `offset` and `bytes` are whole units; an image has at most [`MAX_IMAGE_BYTES`].
    pub(crate) fn new(segment: u32, offset: usize, bytes: usize, life: u64) -> Location {
        debug_assert!(segment < MAX_SEGMENTS, "segment {segment} is named");
        debug_assert!((1..=MAX_IMAGE_BYTES).contains(&bytes), "an image of {bytes} bytes is named");
        Location { segment, offset, bytes, life: (life & ((1 << LIFE_BITS) - 1)) as u32 }
    }

    /// In 64 bits, never 0.
    pub(crate) fn pack(self) -> u64 {
        let (offset, length) = ((self.offset / UNIT_BYTES) as u64, (self.bytes / UNIT_BYTES) as u64);
        let high = u64::from(self.segment) << UNIT_BITS | offset;
        (high << LENGTH_BITS | length) << LIFE_BITS | u64::from(self.life)
    }

    /// `None` for 0: the page has no image.
    pub(crate) fn unpack(word: u64) -> Option<Location> {
        let part = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
        let bytes = part(LIFE_BITS, LENGTH_BITS) as usize * UNIT_BYTES;
        (bytes > 0).then(|| Location {
            segment: part(LIFE_BITS + LENGTH_BITS + UNIT_BITS, SEGMENT_BITS) as u32,
            offset: part(LIFE_BITS + LENGTH_BITS, UNIT_BITS) as usize * UNIT_BYTES,
            bytes,
            life: part(0, LIFE_BITS) as u32,
        })
    }
}

/// The map; its length is the number of pages that the store has.
#[derive(Default)]
pub(crate) struct PageMap {
    words: RwLock<Vec<AtomicU64>>,
}

impl PageMap {
    /// Of [packed](Location::pack) locations.
    pub(crate) fn of(mut words: Vec<AtomicU64>) -> PageMap {
        // It may have been made in place of something larger.
        words.shrink_to_fit();
        PageMap { words: RwLock::new(words) }
    }

    /// Pages that the store has.
    pub(crate) fn pages(&self) -> u32 {
        self.words.read().len() as u32
    }

    /// Adds pages without images, up to `pages` of them.
    pub(crate) fn grow(&self, pages: u32) {
        let mut words = self.words.write();
        let new = (pages as usize).max(words.len());
        words.resize_with(new, AtomicU64::default);
    }

    /// The store ends after `pages` pages. The others have no images any more.
    pub(crate) fn cut(&self, pages: u32) {
        let mut words = self.words.write();
        let are_empty = words.iter().skip(pages as usize).all(|word| word.load(Acquire) == 0);
        debug_assert!(are_empty, "the map is cut to {pages} pages, and has places of others");
        words.truncate(pages as usize);
    }

    /// The location of the page's image; `None` if it has none.
    pub(crate) fn get(&self, page: PageNo) -> Option<Location> {
        self.words.read().get(page.0 as usize).and_then(|word| Location::unpack(word.load(Acquire)))
    }

    /// Sets where the page is, and says where it was (rule 1). A page that the store does not have stays unknown.
    pub(crate) fn set(&self, page: PageNo, location: Option<Location>) -> Option<Location> {
        let words = self.words.read();
        let word = words.get(page.0 as usize)?;
        let old = word.load(Acquire);
        word.store(location.map_or(0, Location::pack), Release);
        Location::unpack(old)
    }

    /// Looks at every page that has an image, with its location.
    pub(crate) fn each(&self, mut look: impl FnMut(PageNo, Location)) {
        for (page, word) in self.words.read().iter().enumerate() {
            Location::unpack(word.load(Acquire)).into_iter().for_each(|location| look(PageNo(page as u32), location));
        }
    }

    /// Every page that has an image, with its location.
    pub(crate) fn all(&self) -> Vec<(PageNo, Location)> {
        let mut all = Vec::new();
        self.each(|page, location| all.push((page, location)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_survives_packing() {
        let last = MAX_SEGMENT_BYTES as usize - UNIT_BYTES;
        for (segment, offset, bytes, life) in [
            (0, 0, 16384, 0),
            (1, 128, 128, 1),
            (MAX_SEGMENTS - 1, last, 255 * 128, u64::MAX),
            (77, 4096, 4096, 1 << LIFE_BITS),
        ] {
            let location = Location::new(segment, offset, bytes, life);
            assert_eq!(Location::unpack(location.pack()), Some(location));
        }
        assert_eq!(Location::unpack(0), None);
    }

    #[test]
    fn a_page_is_found_where_it_was_put() {
        let map = PageMap::default();
        map.grow(8);
        let location = Location::new(3, 4096, 1024, 5);
        assert_eq!(map.set(PageNo(7), Some(location)), None);
        assert_eq!((map.get(PageNo(7)), map.get(PageNo(6)), map.get(PageNo(8))), (Some(location), None, None));
        assert_eq!(map.set(PageNo(7), None), Some(location));
        assert_eq!(map.set(PageNo(8), Some(location)), None);
        assert_eq!(map.all(), []);
        map.grow(4);
        assert_eq!(map.pages(), 8, "growing never makes it shorter");
        map.cut(5);
        assert_eq!((map.pages(), map.get(PageNo(7))), (5, None));
    }
}
