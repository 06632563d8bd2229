//! A mounted disk: the emulated disk with its loop device and file system.

use super::access::{Access, AccessReport};
use super::blocks::{PLAIN, has_streams, journal_range, labels_of};
use super::file_system::Shared;
use super::options::{FileSystemKind, MountOptions};
use super::sample::{MountSample, Sampler};
use super::stack::Stack;
use super::traffic::{PageCount, Traffic};
use super::{ext4, host};
use crate::age::Progress;
use crate::crash::CutReport;
use crate::disk::Disk;
use crate::error::Result;
use crate::image::Image;
use crate::labels::Labels;
use crate::trace::ranges::NamedRange;
use crate::trace::record::Recorder;
use parking_lot::RwLock;
use std::path::Path;
use std::sync::Arc;

/// A mounted emulated disk. A drop unmounts and ignores errors; [`unmount`](Mount::unmount) returns them.
pub struct Mount {
    shared: Arc<Shared>,
    pub(super) stack: Stack,
    journal: Vec<NamedRange>,
    sampler: Sampler,
}

impl Mount {
    /// Sets everything up.
    pub fn new(options: &MountOptions) -> Result<Mount> {
        Mount::with_progress(options, &mut |_| Ok(()))
    }

    /// Sets everything up; `progress` gets the completed share of the ageing, and an error from it ends the ageing.
    pub fn with_progress(options: &MountOptions, progress: &mut Progress<'_>) -> Result<Mount> {
        options.validate()?;
        host::check(&["losetup", "mount", "umount", "mkfs.ext4"])?;
        host::is_free(&options.mountpoint)?;
        let disk = Disk::with_progress(&options.disk, progress)?;
        has_streams(&disk, &options.rules)?;
        let labels = Labels::all(PLAIN);
        let traffic = options.classify.then(Traffic::default);
        let recorder = options.record.as_deref().map(Recorder::create).transpose()?;
        let access = Access::new((disk.capacity_bytes() / 4096) as u32)?;
        let shared = Arc::new(Shared { disk, labels: RwLock::new(labels), access, traffic, recorder });
        let mut mount =
            Mount { sampler: Sampler::new(&shared), shared, stack: Stack::new(options)?, journal: Vec::new() };
        mount.set_up()?;
        Ok(mount)
    }

    fn set_up(&mut self) -> Result<()> {
        self.stack.serve(self.shared.clone())?;
        self.stack.attach()?;
        if self.stack.options.format {
            self.stack.make_file_system()?;
        }
        self.tag()?;
        self.stack.mount()?;
        self.reset_counters();
        Ok(())
    }

    /// Finds the journal and gives every block its stream.
    fn tag(&mut self) -> Result<()> {
        let disk = &self.shared.disk;
        if let FileSystemKind::Ext4 { .. } = self.stack.options.file_system {
            let read = |at: u64, buf: &mut [u8]| disk.read(at, buf);
            let ranges = ext4::journal_ranges(&read, disk.capacity_bytes())?;
            self.journal = ranges.iter().map(journal_range).collect();
        }
        let capacity_blocks = (disk.capacity_bytes() / 4096) as u32;
        *self.shared.labels.write() = labels_of(&self.journal, &self.stack.options.rules, capacity_blocks)?;
        Ok(())
    }

    /// The loop device's path.
    pub fn device(&self) -> &str {
        self.stack.device()
    }

    /// The mount point.
    pub fn mountpoint(&self) -> &Path {
        &self.stack.options.mountpoint
    }

    /// The ranges of the file system's journal.
    pub fn journal(&self) -> &[NamedRange] {
        &self.journal
    }

    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.shared.disk
    }

    /// Counts since the file system was mounted, and since the last call.
    pub fn sample(&mut self) -> MountSample {
        self.sampler.take(&self.shared)
    }

    /// Pages read and written since the file system was mounted, by region and kind; none if they are not classified.
    pub fn pages(&self) -> Vec<PageCount> {
        self.sampler.pages_since(&self.shared)
    }

    /// Accesses to the blocks of the journal and of the rest since the counters began.
    pub fn access(&self) -> AccessReport {
        self.shared.access.report(&self.shared.labels.read())
    }

    /// Resets the counters.
    pub fn reset_counters(&mut self) {
        self.shared.access.reset();
        self.sampler = Sampler::new(&self.shared);
    }

    /// After a power cut: unmounts what fails anyway, brings power back and mounts again. Counters continue.
    ///
    /// Everything that used the file system must have been stopped.
    pub fn power_cycle(&mut self) -> Result<()> {
        self.power_on()?;
        self.mount_file_system()
    }

    /// The first half of [`power_cycle`](Self::power_cycle): the power is on again, the file system is not mounted. An
    /// error does not mean that the disk is damaged: a process may still use the file system.
    ///
    /// # Errors
    /// What was mounted cannot be unmounted, or the disk not be attached again.
    pub fn power_on(&mut self) -> Result<()> {
        self.stack.unmount_file_system()?;
        self.stack.detach()?;
        self.shared.disk.power_on()?;
        self.stack.attach()
    }

    /// The second half of [`power_cycle`](Self::power_cycle): an error means that the file system is damaged.
    ///
    /// # Errors
    /// The kernel's.
    pub fn mount_file_system(&mut self) -> Result<()> {
        self.stack.mount()
    }

    /// The disk's bytes with the file system cleanly unmounted. Everything that used it must have been stopped.
    pub fn image(&mut self) -> Result<Image> {
        self.stack.unmount_file_system()?;
        self.stack.detach()?;
        let image = self.shared.disk.image();
        self.stack.attach()?;
        self.stack.mount()?;
        image
    }

    /// Puts an image on the disk, in whatever state the disk is, and mounts its file system. Counters continue.
    pub fn restore(&mut self, image: &Image) -> Result<()> {
        self.stack.unmount_file_system()?;
        self.stack.detach()?;
        self.shared.disk.restore(image)?;
        self.stack.attach()?;
        self.tag()?;
        self.stack.mount()
    }

    /// Cuts the power by `seed`; see [`Disk::power_cut`].
    pub fn power_cut(&self, seed: u64) -> Result<CutReport> {
        self.shared.disk.power_cut(seed)
    }

    /// Ends the recorded trace, if there is one. An error of the recording is returned here, once.
    pub(super) fn finish_recording(&self) -> Result<()> {
        self.shared.recorder.as_ref().map_or(Ok(()), |recorder| recorder.finish(&self.journal))
    }

    /// Unmounts everything and ends the recorded trace. After an error, such as a busy file system, the call can be
    /// repeated.
    pub fn unmount(&mut self) -> Result<()> {
        self.tear_down()?;
        self.finish_recording()
    }

    /// Unmounts the file system; tries once.
    pub(super) fn try_unmount_file_system(&mut self) -> Result<()> {
        self.stack.try_unmount_file_system()
    }

    /// Unmounts the file system, detaches the loop device and ends FUSE.
    pub(super) fn tear_down(&mut self) -> Result<()> {
        self.stack.tear_down()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What fails here is left to the clean-up shell: its pipe closes. The recording is kept nevertheless.
        let _ = self.tear_down();
        let _ = self.finish_recording();
    }
}
