//! Reading pages of a data file that is not open as a store: nothing is repaired, nothing is written.

use super::{beyond_the_end, offset_of};
use crate::error::Result;
use crate::store::{PageSource, Place};
use crate::types::PageNo;
use highwater_storage::Device;

/// A data file and the page size that it is read with.
pub struct RawInPlace<'d> {
    data: &'d dyn Device,
    page_bytes: usize,
}

impl<'d> RawInPlace<'d> {
    pub fn new(data: &'d dyn Device, page_bytes: usize) -> RawInPlace<'d> {
        RawInPlace { data, page_bytes }
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
        Ok(self.data.read_at(offset, buf)?)
    }

    fn place(&self, page: PageNo) -> Result<Option<Place>> {
        let place = Place { offset: offset_of(page, self.page_bytes), bytes: self.page_bytes as u64 };
        Ok((place.offset + place.bytes <= self.len_bytes()?).then_some(place))
    }
}
