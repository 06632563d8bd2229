//! Scanning a data file that cannot be opened: each page's checksum and place, to locate the damage.
//!
//! Rules
//! 1. Only pages that verify are used: without a readable file header the page size is the one under which
//!    most pages verify; without a readable extent map its pages count as in use unless they are zeros.
//! 2. Nothing is written.
//! 3. A crash leaves pages torn that opening would repair; a scan after a failed opening shows these pages as damaged.

use super::file::RawFile;
use crate::check::report::{CheckReport, Finding, OnProgress, Progress};
use crate::error::Result;
use crate::page::{self, PageType, header};
use crate::space::layout::EXTENT_PAGES;
use crate::types::PageNo;
use highwater_storage::Device;

/// Scans the file.
///
/// # Errors
/// [`Incompatible`](crate::Error::Incompatible) if not a single page verifies: this is not a database. An I/O error.
pub fn scan(data: &dyn Device, tell: &mut OnProgress<'_>) -> Result<CheckReport> {
    let file = RawFile::open(data)?;
    let mut scan = ExtentScan { report: CheckReport::default(), progress: Progress::new(tell), file: &file };
    let counts = &mut scan.report.counts;
    counts.page_bytes = file.page_bytes() as u64;
    counts.pages = file.page_count();
    scan.progress.total = file.page_count();
    if let Err(reason) = file.header() {
        scan.find(Some(PageNo(0)), reason.clone());
    }
    scan.check_length(file.len_bytes());
    for extent in 0..file.page_count().div_ceil(u64::from(EXTENT_PAGES)) as u32 {
        scan.check_extent(extent)?;
    }
    Ok(scan.report)
}

struct ExtentScan<'a> {
    report: CheckReport,
    progress: Progress<'a>,
    file: &'a RawFile<'a>,
}

impl ExtentScan<'_> {
    fn find(&mut self, page: Option<PageNo>, text: String) {
        self.report.add(Finding { page, table: None, index: None, text });
    }

    fn check_length(&mut self, len: u64) {
        let whole = len / self.file.layout().extent_bytes();
        if let Some(extents) = self.file.extents()
            && u64::from(extents) > whole
        {
            self.find(None, format!("the data file is cut off: it has {whole} of {extents} extents"));
        } else if let Some(last) = self.file.last_used_extent()
            && u64::from(last) >= whole
        {
            self.find(None, format!("the data file is cut off: it has {whole} extents, but extent {last} is in use"));
        }
    }

    fn check_extent(&mut self, extent: u32) -> Result<()> {
        let known = self.file.extent(extent);
        for at in 0..EXTENT_PAGES {
            let page_no = PageNo(extent * EXTENT_PAGES + at);
            if u64::from(page_no.0) >= self.file.page_count() {
                break;
            }
            match known {
                Some(known) if known.used >> at & 1 == 0 => {}
                _ => self.check_page(page_no, known.is_some()),
            }
        }
        self.progress.advance(u64::from(EXTENT_PAGES));
        Ok(())
    }

    /// `is_used`: by the extent map; false = there is no readable extent map.
    fn check_page(&mut self, page_no: PageNo, is_used: bool) {
        let page = match self.file.page(page_no) {
            Ok(page) => page,
            Err(error) => return self.find(Some(page_no), error.to_string()),
        };
        if !is_used && page.iter().all(|byte| *byte == 0) {
            return;
        }
        self.report.counts.pages_used += 1;
        let verified = header::verify(&page, page_no).and_then(|()| page::check_not_lost(&page, page_no));
        match verified.and_then(|()| header::page_type(&page)) {
            Ok(found) => self.count(found),
            // Page 0 was reported with the file header.
            Err(_) if page_no.0 == 0 && self.file.header().is_err() => {}
            Err(error) => {
                let reason = error.into_reason();
                self.find(
                    Some(page_no),
                    self.file.name_of(page_no).map_or(reason.clone(), |name| format!("{name}: {reason}")),
                );
            }
        }
    }

    fn count(&mut self, found: PageType) {
        let counts = &mut self.report.counts;
        counts.pages_verified += 1;
        debug_assert!(counts.pages_verified <= counts.pages_used, "a page is counted twice: {counts:?}");
        *counts.pages_of(found) += 1;
    }
}
