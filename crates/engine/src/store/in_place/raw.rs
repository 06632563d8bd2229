//! Reading pages of a data file that is not open as a store; nothing is written. Where the journal has a newer image of
//! a page, that image is read.

use super::journal_scan::{self, ScannedJournal};
use super::{beyond_the_end, offset_of};
use crate::error::Result;
use crate::store::{PageLocation, PageSource};
use crate::types::PageNo;
use highwater_storage::{AlignedBuf, Device};

/// A data file and the page size that it is read with.
pub(crate) struct RawInPlace<'d> {
    data: &'d dyn Device,
    page_bytes: usize,
    /// The file of the journal and what is in it.
    journal: Option<(&'d dyn Device, &'d ScannedJournal)>,
}

impl<'d> RawInPlace<'d> {
    /// Pages as they are in the file.
    pub(crate) fn new(data: &'d dyn Device, page_bytes: usize) -> RawInPlace<'d> {
        RawInPlace { data, page_bytes, journal: None }
    }

    /// Pages as the journal's images in `file` will make them.
    pub(crate) fn with_journal(
        data: &'d dyn Device,
        page_bytes: usize,
        file: &'d dyn Device,
        scanned: &'d ScannedJournal,
    ) -> RawInPlace<'d> {
        RawInPlace { data, page_bytes, journal: Some((file, scanned)) }
    }
}

impl PageSource for RawInPlace<'_> {
    fn name(&self) -> String {
        self.data.name()
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(self.data.len_bytes()?)
    }

    fn read(&self, first: PageNo, buf: &mut [u8]) -> Result<()> {
        let offset = offset_of(first, self.page_bytes);
        if offset + buf.len() as u64 > self.len_bytes()? {
            return Err(beyond_the_end(first));
        }
        self.data.read_at(offset, buf)?;
        let Some((file, scanned)) = self.journal else { return Ok(()) };
        let mut image = AlignedBuf::zeroed(self.page_bytes);
        for (page_no, page) in (first.0..).map(PageNo).zip(buf.chunks_exact_mut(self.page_bytes)) {
            if scanned.image(file, page_no, &mut image)?.is_whole && journal_scan::replaces(&image, page, page_no) {
                page.copy_from_slice(&image);
            }
        }
        Ok(())
    }

    fn place(&self, page: PageNo) -> Result<Option<PageLocation>> {
        let place = PageLocation { offset: offset_of(page, self.page_bytes), bytes: self.page_bytes as u64 };
        Ok((place.offset + place.bytes <= self.len_bytes()?).then_some(place))
    }
}
