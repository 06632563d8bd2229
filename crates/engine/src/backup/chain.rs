//! Backups that belong together: a full one and incremental ones, each based on the previous one.
//!
//! Rule: everything in the files is verified before a restore writes anything: order and identity by the manifests,
//! each page by its checksum and number, each group of redo by its checksum and place, each file by its sum. The number
//! of pages in a manifest is accepted only as far as the extent maps of their groups exist.

use super::files::SummedFile;
use super::manifest::BackupManifest;
use super::maps::Maps;
use super::until::Target;
use super::{BackupProgress, OnBackupProgress};
use crate::error::{Error, Result};
use crate::log::StreamGroups;
use crate::page::header;
use crate::space::layout::SpaceLayout;
use crate::types::{Lsn, PageNo};
use highwater_storage::{CopyKey, CopyKeys};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One backup of a chain.
#[derive(Debug)]
pub(super) struct BackupLink {
    pub dir: PathBuf,
    pub manifest: BackupManifest,
    /// With which its files are encrypted, if they are.
    pub key: Option<CopyKey>,
}

/// Reads the manifests, finds the keys and compares the backups.
///
/// # Errors
/// [`Error::Incompatible`] says which backup does not follow on which; as [`BackupManifest::read`] and
/// [`CopyKeys::get`].
pub(super) fn open(dirs: &[PathBuf], keys: &CopyKeys) -> Result<Vec<BackupLink>> {
    let mut links: Vec<BackupLink> = Vec::with_capacity(dirs.len());
    for dir in dirs {
        let manifest = BackupManifest::read(dir)?;
        let key = keys.get(manifest.key_number(), dir)?.cloned();
        let link = BackupLink { dir: dir.clone(), manifest, key };
        check_follows(links.last(), &link)?;
        links.push(link);
    }
    match links.is_empty() {
        true => Err(Error::Usage("name a full backup, and the incremental ones that follow it".into())),
        false => Ok(links),
    }
}

fn check_follows(before: Option<&BackupLink>, link: &BackupLink) -> Result<()> {
    let name = link.dir.display();
    let refuse = |what: String| Err(Error::Incompatible(what));
    let (before, base) = match (before, &link.manifest.base) {
        (None, None) => return Ok(()),
        (None, Some(base)) => {
            return refuse(format!(
                "{name} is an incremental backup; the backup {} (up to LSN {}) that it adds to is missing before it",
                base.backup_id, base.end_lsn
            ));
        }
        (Some(before), None) => {
            return refuse(format!("{name} is a full backup; it cannot follow {}", before.dir.display()));
        }
        (Some(before), Some(base)) => (before, base),
    };
    let (earlier, own) = (&before.manifest, &link.manifest);
    if earlier.backup_id != base.backup_id || earlier.end_lsn != base.end_lsn {
        return refuse(format!(
            "{name} adds to backup {} (up to LSN {}), but {} before it is backup {} (up to LSN {})",
            base.backup_id,
            base.end_lsn,
            before.dir.display(),
            earlier.backup_id,
            earlier.end_lsn
        ));
    }
    let identity = |m: &BackupManifest| (m.database_id.clone(), m.page_bytes, m.segment_bytes);
    match identity(earlier) == identity(own) {
        true => Ok(()),
        false => refuse(format!("{name} and {} before it are of different databases", before.dir.display())),
    }
}

impl BackupLink {
    pub(super) fn redo_lsns(&self) -> Range<Lsn> {
        Lsn(self.manifest.start_lsn)..Lsn(self.manifest.end_lsn)
    }

    /// Hands each page to `take`. Each was verified.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the file, an I/O error, that of `take`.
    pub(super) fn pages(&self, mut take: impl FnMut(PageNo, &mut [u8]) -> Result<()>) -> Result<()> {
        let manifest = &self.manifest;
        let mut file = SummedFile::open(&self.dir, &manifest.files[0], self.key.as_ref())?;
        let mut record = vec![0; 4 + manifest.page_bytes as usize];
        let mut next = 0;
        for _ in 0..manifest.pages_copied {
            file.read_all(&mut record)?;
            let (number, page) = record.split_at_mut(4);
            let page_no = PageNo(u32::from_le_bytes(std::array::from_fn(|n| number[n])));
            if page_no.0 < next || page_no.0 >= manifest.page_count {
                return Err(file.corrupt(format!("page {page_no} does not belong there")));
            }
            next = page_no.0 + 1;
            self.check_page(page_no, page).map_err(|what| file.corrupt(what))?;
            take(page_no, page)?;
        }
        file.finish()
    }

    fn check_page(&self, page_no: PageNo, page: &[u8]) -> std::result::Result<(), String> {
        let about = |what: &str| format!("page {page_no}: {what}");
        header::verify(page, page_no).map_err(|error| about(&error.into_reason()))?;
        let (lsn, end) = (header::lsn(page).0, self.manifest.end_lsn);
        let since = self.manifest.base.as_ref().map_or(0, |base| base.end_lsn);
        if lsn > end {
            return Err(about(&format!("its LSN {lsn} is after the backup's end, {end}")));
        }
        match lsn < since && page_no != PageNo(0) {
            true => Err(about(&format!("its LSN {lsn} is before the base's end, {since}"))),
            false => Ok(()),
        }
    }

    /// The end of its redo, as far as `target` admits the groups after the pages' LSN, and the frame of the last group
    /// there. All groups are verified.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the file, an I/O error.
    pub(super) fn follow_redo(&self, target: &mut Target) -> Result<(Lsn, Option<[u8; 8]>)> {
        let file = self.redo()?;
        let name = self.dir.join(&self.manifest.files[1].name);
        let mut groups = StreamGroups::new(file, self.redo_lsns(), self.manifest.generation);
        let (mut reached, mut frame) = (self.redo_lsns().start, None);
        loop {
            match groups.next() {
                Ok(Some(lsn)) if lsn.0 <= self.manifest.pages_lsn => {
                    target.note(lsn, groups.payload())?;
                    (reached, frame) = (lsn, Some(groups.frame()));
                }
                Ok(Some(lsn)) => {
                    if target.admits(lsn, groups.payload())? {
                        (reached, frame) = (lsn, Some(groups.frame()));
                    }
                }
                Ok(None) => break,
                Err(what) => return Err(Error::Corrupt(format!("{} is damaged: {what}", name.display()))),
            }
        }
        groups.into_inner().finish().map(|()| (reached, frame))
    }

    /// Its redo, from the start LSN on.
    pub(super) fn redo(&self) -> Result<SummedFile> {
        SummedFile::open(&self.dir, &self.manifest.files[1], self.key.as_ref())
    }
}

/// Verifies every byte of the chain, and says how many pages the database has after each backup.
///
/// # Errors
/// [`Error::Corrupt`] names the file.
pub(super) fn verify(links: &[BackupLink], tell: &mut OnBackupProgress<'_>) -> Result<Vec<u32>> {
    let total = links.iter().map(|link| link.manifest.pages_copied).sum();
    let (mut pages, mut target) = (0, Target::new(None));
    if let Some(first) = links.first() {
        target.maps = Maps::of(SpaceLayout::new(first.manifest.page_bytes as usize));
    }
    let verify = |link: &BackupLink| {
        link.pages(|page_no, _| {
            pages += 1;
            target.maps.note(page_no);
            match tell(BackupProgress { step: "verifying", pages, total }).is_break() {
                true => Err(super::interrupted()),
                false => Ok(()),
            }
        })?;
        link.follow_redo(&mut target)?;
        // A damaged map was left out: it is there, and the database says so.
        link.manifest.damaged_pages.iter().for_each(|page| target.maps.note(PageNo(*page)));
        Ok(link.manifest.page_count.min(target.maps.pages()))
    };
    links.iter().map(verify).collect()
}

/// Names of the chain's folders are not the target, nor in it.
pub(super) fn check_apart(links: &[BackupLink], target: &Path) -> Result<()> {
    let Ok(target) = target.canonicalize() else { return Ok(()) };
    let within = links.iter().find(|link| link.dir.canonicalize().is_ok_and(|dir| target.starts_with(dir)));
    match within {
        None => Ok(()),
        Some(link) => Err(Error::Usage(format!("{} is in the backup {}", target.display(), link.dir.display()))),
    }
}
