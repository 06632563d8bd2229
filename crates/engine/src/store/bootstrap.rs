//! A store before it is open: detection, page size, creation, repair, and reading its pages.
//!
//! The facts that are needed to read a page (page size, database id, kind of store) are at the start of page 0
//! ([`super::header`]), and page 0, as it was created, begins at the first byte of the data file in every kind of
//! store. Only this file chooses between the kinds.
//!
//! Rules
//! 1. Creation: the file of copies, then page 1 and zeros for all others, durable; then page 0, durable. After a crash
//!    before that, the store counts as not created ([`is_uncreated`]), and can be created again.
//! 2. Finding changes nothing. [`FoundStore::repair`] changes nothing if it refuses, and may be repeated.
//! 3. A store is opened only after it was repaired ([`FoundStore::expect`] before that), and by one caller: its files
//!    belong to it from then on.
//! 4. Reading pages without opening relies only on pages that verify: without a readable header the page size is the
//!    one under which most pages verify.

use super::header::{self, PAGE_SIZES};
use super::in_place::{self, InPlace, Mark, RawInPlace};
pub(crate) use super::out_of_place::READERS;
use super::out_of_place::{self, OutOfPlace, RawOutOfPlace, ScannedStore, StoreGeometry};
use super::{FileHeader, PageSource, PageStore, Protection, Settings, StoreKind};
use crate::error::{Error, Result};
use crate::page;
use crate::stats::Stats;
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device, StorageSet};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that hold the fixed fields of page 0: the smallest page.
const START_BYTES: usize = PAGE_SIZES[0];
/// Pages tried to find out the page size of a file without header.
const PROBED_PAGES: usize = 64;

/// A store that was found and is not open.
pub(crate) struct FoundStore {
    data: Arc<dyn Device>,
    doublewrite: Arc<dyn Device>,
    header: FileHeader,
    /// The scan of a store out of place.
    scanned: Option<ScannedStore>,
    /// Images of pages in place that may be newer than what is in their places.
    journal: in_place::ScannedJournal,
}

/// A store that can be inspected, in any state.
pub(crate) struct InspectedStore<'d> {
    pub pages: Box<dyn PageSource + 'd>,
    /// The file header in page 0, or the reason why it cannot be read.
    pub header: std::result::Result<FileHeader, String>,
}

/// Whether creation never finished, of a store that creation makes `new_pages` pages long.
pub(crate) fn is_uncreated(storage: &StorageSet, new_pages: u32) -> Result<bool> {
    let data = &*storage.data;
    if data.has_fixed_len() { out_of_place::is_uncreated_device(data) } else { in_place::is_uncreated(data, new_pages) }
}

/// Whether the store was ever used, though its data file is empty; if so, the name of the file that shows it.
pub(crate) fn trace_of_use(storage: &StorageSet) -> Result<Option<String>> {
    let file = &*storage.doublewrite;
    Ok(in_place::was_used(file)?.then(|| file.name()))
}

/// Whether a store of this kind can be created there.
///
/// # Errors
/// [`Error::Incompatible`] if not: pages in place need a file, since a page that was never written reads as zeros.
pub(crate) fn check_kind(storage: &StorageSet, kind: StoreKind) -> Result<()> {
    if kind == StoreKind::InPlace && storage.data.has_fixed_len() {
        let name = storage.data.name();
        return Err(Error::Incompatible(format!(
            "{name} is a block device: pages can be kept on one only with --page-store out-of-place"
        )));
    }
    Ok(())
}

/// Creates a store of `pages` pages, of which all but the first two are zeros. `first` is page 0, `second` page 1, both
/// sealed (rule 1).
pub(crate) fn create(storage: &StorageSet, pages: u32, first: &[u8], second: &[u8]) -> Result<()> {
    let (data, header) = (&*storage.data, header::parse(first)?);
    match geometry_of(&header) {
        Some(geometry) if data.has_fixed_len() => {
            out_of_place::create_on_device(data, geometry, pages, [first, second])
        }
        Some(_) => in_place::create(data, None, pages, [first, second]),
        None => in_place::create(data, Some(&*storage.doublewrite), pages, [first, second]),
    }
}

/// Finds the store in these files.
///
/// # Errors
/// [`Error::Incompatible`] if they hold none that this build reads. An I/O error.
pub(crate) fn find(storage: &StorageSet) -> Result<FoundStore> {
    find_by(storage, READERS)
}

/// As [`find`], by this many threads; by one always in the same order.
pub(crate) fn find_by(storage: &StorageSet, readers: usize) -> Result<FoundStore> {
    let data = &*storage.data;
    if data.len_bytes()? < START_BYTES as u64 {
        return Err(Error::Incompatible(format!("{} is too short to be a database", data.name())));
    }
    let header = read_start(data)?.map_err(|error| match error {
        Error::Incompatible(what) => Error::Incompatible(format!("{}: {what}", data.name())),
        other => other,
    })?;
    let scanned = geometry_of(&header).map(|geometry| out_of_place::scan(data, geometry, readers)).transpose()?;
    let (data, doublewrite) = (storage.data.clone(), storage.doublewrite.clone());
    Ok(FoundStore { data, doublewrite, header, scanned, journal: in_place::ScannedJournal::default() })
}

/// The geometry of the file, if its pages are out of place.
fn geometry_of(header: &FileHeader) -> Option<StoreGeometry> {
    let FileHeader { page_bytes, database_id, kind } = *header;
    match kind {
        StoreKind::InPlace => None,
        StoreKind::OutOfPlace { segment_bytes } => Some(StoreGeometry { page_bytes, segment_bytes, database_id }),
    }
}

/// The fixed fields of page 0; the outer error is that of the device.
fn read_start(data: &dyn Device) -> Result<Result<FileHeader>> {
    let mut start = AlignedBuf::zeroed(START_BYTES);
    data.read_at(0, &mut start)?;
    Ok(header::parse(&start))
}

impl FoundStore {
    /// The file header in page 0.
    pub(crate) fn header(&self) -> FileHeader {
        self.header
    }

    /// The reason to doubt page 0, if it does not verify at the start of the file. A crash may have torn it, but not
    /// its fixed fields.
    pub(crate) fn doubt(&self) -> Option<String> {
        let mut first = AlignedBuf::zeroed(self.header.page_bytes);
        let read = self.data.read_at(0, &mut first).map_err(Error::from);
        read.and_then(|()| page::header::verify(&first, PageNo(0))).err().map(|error| error.to_string())
    }

    /// Finds what belongs to the pages besides the data file, of which the store noted `mark` ([`PageStore::mark`]). To
    /// be called before all that follows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if something of a journal that is needed was lost. An I/O error.
    pub(crate) fn expect(mut self, mark: u64) -> Result<FoundStore> {
        if self.header.kind == StoreKind::InPlace {
            self.journal = in_place::ScannedJournal::read(&*self.doublewrite, self.header, Mark::decode(mark))?;
        }
        let name = self.data.name();
        self.scanned.iter_mut().for_each(|scanned| scanned.expect(&name, mark));
        Ok(self)
    }

    /// Its pages; a crash may have torn some.
    pub(crate) fn pages(&self) -> Box<dyn PageSource + '_> {
        match (geometry_of(&self.header), &self.scanned) {
            (Some(geometry), Some(scanned)) => Box::new(RawOutOfPlace { data: &*self.data, geometry, scanned }),
            _ => {
                let (page_bytes, file) = (self.header.page_bytes, &*self.doublewrite);
                Box::new(RawInPlace::with_journal(&*self.data, page_bytes, file, &self.journal))
            }
        }
    }

    /// Repairs pages that a crash after the log's checkpoint left torn; `log` reaches from there to its end. Returns
    /// which pages. Durable on return.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a page shows that the log lost its end, or if it is not known which pages are damaged. An
    /// I/O error.
    pub(crate) fn repair(&self, log: Range<Lsn>) -> Result<Vec<PageNo>> {
        match &self.scanned {
            Some(scanned) => scanned.check_complete(&self.data.name(), log).map(|()| Vec::new()),
            None => in_place::repair(&*self.doublewrite, &*self.data, self.header, log, &self.journal),
        }
    }

    pub(crate) fn open(self, settings: &Settings, stats: Arc<Stats>) -> Result<Arc<dyn PageStore>> {
        let FoundStore { data, doublewrite, header, scanned, journal } = self;
        match (geometry_of(&header), scanned) {
            (Some(geometry), Some(scanned)) => {
                Ok(Arc::new(OutOfPlace::open(data, geometry, scanned, settings, stats)?))
            }
            _ => {
                let protection = if settings.is_read_only { Protection::None } else { settings.protection };
                Ok(Arc::new(InPlace::open(data, doublewrite, header, protection, &journal, stats)?))
            }
        }
    }
}

/// Looks at the store in a data file.
///
/// # Errors
/// [`Error::Incompatible`] if the page size can neither be read nor guessed. An I/O error.
pub(crate) fn look(data: &dyn Device) -> Result<InspectedStore<'_>> {
    let header = checked_header(data)?;
    let page_bytes = match &header {
        Ok(header) => header.page_bytes,
        Err(reason) => guess_page_bytes(data)?.ok_or_else(|| Error::Incompatible(reason.clone()))?,
    };
    let pages: Box<dyn PageSource + '_> = match header.as_ref().ok().and_then(geometry_of) {
        Some(geometry) => {
            Box::new(RawOutOfPlace { data, geometry, scanned: out_of_place::scan(data, geometry, READERS)? })
        }
        None => Box::new(RawInPlace::new(data, page_bytes)),
    };
    Ok(InspectedStore { pages, header })
}

/// The fixed fields of a page 0 that verifies, or in words why there are none.
fn checked_header(data: &dyn Device) -> Result<std::result::Result<FileHeader, String>> {
    let len = data.len_bytes()?;
    if len < START_BYTES as u64 {
        return Ok(Err(format!("{} has {len} bytes, too few for a database", data.name())));
    }
    let header = match read_start(data)? {
        Ok(header) => header,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if len < header.page_bytes as u64 {
        return Ok(Err(format!("the data file has {len} bytes, less than its first page")));
    }
    let mut page = AlignedBuf::zeroed(header.page_bytes);
    data.read_at(0, &mut page)?;
    let verified = page::header::verify(&page, PageNo(0));
    Ok(verified.map(|()| header).map_err(|error| error.to_string()))
}

/// The page size under which most pages at the start of the file verify, if any do.
fn guess_page_bytes(data: &dyn Device) -> Result<Option<usize>> {
    let mut best = (0, None);
    for page_bytes in PAGE_SIZES {
        let pages = RawInPlace::new(data, page_bytes);
        let mut page = AlignedBuf::zeroed(page_bytes);
        let mut sound = 0;
        for n in 0..pages.pages()?.min(PROBED_PAGES as u64) as u32 {
            pages.read(PageNo(n), &mut page)?;
            let is_zero = page.iter().all(|byte| *byte == 0);
            sound += usize::from(!is_zero && page::header::verify(&page, PageNo(n)).is_ok());
        }
        if sound > best.0 {
            best = (sound, Some(page_bytes));
        }
    }
    Ok(best.1)
}
