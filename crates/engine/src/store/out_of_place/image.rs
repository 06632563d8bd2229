//! The division of the file into segments, the places of the images of a batch, and reading one image.

use super::capacity::Sizes;
use super::codec;
use super::format::{self, BLOCK_BYTES, ImageEntry, header_bytes};
use super::map::{Location, MAX_IMAGE_BYTES};
use crate::error::Result;
use crate::store::PageLocation;
use crate::types::PageNo;
use highwater_storage::{AlignedBuf, Device};
use std::cell::RefCell;
use std::ops::Range;

/// The geometry of a store, which never changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreGeometry {
    pub page_bytes: usize,
    pub segment_bytes: u64,
    pub database_id: u64,
}

thread_local! {
    static SCRATCH: RefCell<AlignedBuf> = RefCell::default();
}

impl StoreGeometry {
    /// Bytes of a segment that batches may take, when its summary lists pages that are not compressed. (Of compressed
    /// ones the summary lists more.)
    pub(crate) fn segment_room(&self) -> u64 {
        let images = self.segment_bytes as usize / self.page_bytes;
        self.segment_bytes - format::end_bytes(format::summary_bytes(2 * images)) as u64
    }

    /// The sizes of a store that keeps this many lifetimes apart.
    pub(crate) fn sizes(&self, lifetime_streams: usize) -> Sizes {
        Sizes { page_bytes: self.page_bytes, segment_room: self.segment_room(), lifetime_streams }
    }

    /// The identity in the headers and the footer of a segment.
    pub(crate) fn identity(&self, segment: u32) -> u64 {
        format::identity(self.database_id, segment.into())
    }

    /// File offset of a segment.
    pub(crate) fn start_of(&self, segment: u32) -> u64 {
        u64::from(segment) * self.segment_bytes
    }

    /// File offset of an image.
    pub(crate) fn offset_of(&self, location: Location) -> u64 {
        self.start_of(location.segment) + location.offset as u64
    }

    /// The location as a [`PageLocation`], for inspection.
    pub(crate) fn place(&self, location: Location) -> PageLocation {
        PageLocation { offset: self.offset_of(location), bytes: location.bytes as u64 }
    }

    /// A page as it was created.
    pub(crate) fn as_created(&self, page: PageNo) -> Location {
        Location::new(0, page.0 as usize * self.page_bytes, self.page_bytes, 0)
    }

    /// Reads the image of `page` into `buf`.
    ///
    /// # Errors
    /// [`Error::CorruptPage`](crate::Error::CorruptPage) for an image that cannot be decompressed, an I/O error.
    pub(crate) fn read(&self, device: &dyn Device, page: PageNo, location: Location, buf: &mut [u8]) -> Result<()> {
        let at = self.offset_of(location);
        if location.bytes == buf.len() && at.is_multiple_of(BLOCK_BYTES as u64) {
            return Ok(device.read_at(at, buf)?);
        }
        self.look_at(device, location, |image| codec::read_image(image, buf))?
            .map_err(|unreadable| unreadable.of_page(page))
    }

    /// Reads the stored bytes of an image and passes them to `look`.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn look_at<R>(
        &self,
        device: &dyn Device,
        location: Location,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let blocks = self.blocks_of(location);
        with_scratch(blocks.bytes.max(self.page_bytes + 2 * BLOCK_BYTES), |scratch| {
            let scratch = &mut scratch[..blocks.bytes];
            device.read_at(blocks.offset, scratch)?;
            Ok(look(&scratch[blocks.image]))
        })
    }

    /// The blocks that have to be read for an image.
    pub(crate) fn blocks_of(&self, location: Location) -> Blocks {
        let (at, block) = (self.offset_of(location), BLOCK_BYTES as u64);
        let offset = at / block * block;
        let start = (at - offset) as usize;
        let image = start..start + location.bytes;
        Blocks { offset, bytes: image.end.next_multiple_of(BLOCK_BYTES), image }
    }
}

/// Blocks of the file, and where among them an image is.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub offset: u64,
    pub bytes: usize,
    pub image: Range<usize>,
}

/// The images of a batch that begins at `at` in its segment, and where they are.
pub(super) fn located(
    segment: u32,
    at: usize,
    life: u64,
    entries: impl ExactSizeIterator<Item = ImageEntry>,
) -> impl Iterator<Item = (ImageEntry, Location)> {
    let mut offset = at + header_bytes(entries.len());
    let entries = entries.filter(|entry| (1..=MAX_IMAGE_BYTES).contains(&entry.bytes));
    entries.map(move |entry| {
        let location = Location::new(segment, offset, entry.bytes, life);
        offset += entry.bytes;
        (entry, location)
    })
}

/// Lends this thread's memory for reading blocks, this many bytes or more.
pub(super) fn with_scratch<R>(bytes: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    codec::with_kept(&SCRATCH, |scratch| {
        if scratch.len() < bytes {
            *scratch = AlignedBuf::zeroed(bytes);
        }
        work(scratch)
    })
}
