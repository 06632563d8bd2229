//! An emulated disk mounted as a real block device under a real file system: FUSE file -> loop device -> ext4.
//!
//! Rules
//! 1. Set up in this order: FUSE, loop device, file system made, journal found and tagged, file system mounted. Undone in the reverse order, also
//!    when a step fails, and by [`guard`] if this process dies.
//! 2. Only the loop device and the mount points made here are ever touched.
//! 3. Counters begin at zero when the file system has been mounted: making it does not count.
//! 4. A power cut makes every request fail; whoever uses the file system sees errors. [`Mount::power_cycle`] then unmounts, brings power back
//!    and mounts again, as a reboot does.

pub mod access;
pub mod ext4;
pub mod file_system;
pub mod guard;
pub mod host;
pub mod options;
pub mod pages;
pub mod run;
pub mod sample;
pub mod traffic;

pub use access::AccessReport;
pub use options::{FileSystemKind, JournalMode, MountOptions};
pub use run::{Event, run};
pub use sample::MountSample;

use crate::age::Progress;
use crate::crash::CutReport;
use crate::disk::Disk;
use crate::error::{DeviceError, Result};
use crate::image::Image;
use crate::labels::Labels;
use crate::trace::ranges::{NamedRange, StreamRule};
use crate::trace::record::Recorder;
use access::Access;
use file_system::{DiskFileSystem, FILE_NAME, Label, Shared};
use fuser::{BackgroundSession, Config, MountOption, Session};
use guard::{Guard, Thing};
use parking_lot::RwLock;
use sample::Sampler;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use traffic::{Region, Traffic};

/// A mounted emulated disk. Dropping it unmounts as well as it can; [`unmount`](Mount::unmount) tells what went wrong.
pub struct Mount {
    options: MountOptions,
    shared: Arc<Shared>,
    folder: PathBuf,
    session: Option<BackgroundSession>,
    loop_device: Option<String>,
    mounted: bool,
    /// Whether the mount point's folder was made here.
    made_folder: bool,
    guard: Option<Guard>,
    journal: Vec<NamedRange>,
    sampler: Sampler,
}

impl Mount {
    /// Sets everything up.
    pub fn new(options: &MountOptions) -> Result<Mount> {
        Mount::with_progress(options, &mut |_| Ok(()))
    }

    /// Sets everything up; `progress` hears of the ageing and may end it.
    pub fn with_progress(options: &MountOptions, progress: &mut Progress<'_>) -> Result<Mount> {
        options.validate()?;
        host::check(&["losetup", "mount", "umount", "mkfs.ext4"])?;
        host::is_free(&options.mountpoint)?;
        let disk = Disk::with_progress(&options.disk, progress)?;
        has_streams(&disk, &options.rules)?;
        let labels = Labels::all(Label { stream: 0, region: Region::Main });
        let traffic = options.classify.then(Traffic::default);
        let recorder = options.record.as_deref().map(Recorder::create).transpose()?;
        let access = Access::new((disk.capacity_bytes() / 4096) as u32)?;
        let shared = Arc::new(Shared { disk, labels: RwLock::new(labels), access, traffic, recorder });
        let mut mount = Mount {
            options: options.clone(),
            sampler: Sampler::new(&shared),
            shared,
            folder: PathBuf::new(),
            session: None,
            loop_device: None,
            mounted: false,
            made_folder: false,
            guard: Some(Guard::new()?),
            journal: Vec::new(),
        };
        mount.set_up()?;
        Ok(mount)
    }

    fn set_up(&mut self) -> Result<()> {
        self.serve()?;
        self.attach()?;
        if self.options.format {
            self.make_file_system()?;
        }
        self.tag()?;
        self.mount()?;
        self.reset_counters();
        Ok(())
    }

    /// Serves the disk as a file through FUSE.
    fn serve(&mut self) -> Result<()> {
        self.folder = run_folder()?;
        self.hold(Thing::Folder, &self.folder.display().to_string())?;
        let mountpoint = self.fuse_folder();
        std::fs::create_dir(&mountpoint).map_err(|e| DeviceError::io(format!("making {}", mountpoint.display()), e))?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("highwater-device".into())];
        config.n_threads = Some(self.options.threads);
        config.clone_fd = true;
        let session = Session::new(DiskFileSystem::new(self.shared.clone()), &mountpoint, &config);
        let session = session.and_then(Session::spawn);
        self.session = Some(session.map_err(|e| DeviceError::io("mounting FUSE", e))?);
        self.hold(Thing::Fuse, &mountpoint.display().to_string())
    }

    fn fuse_folder(&self) -> PathBuf {
        self.folder.join("fuse")
    }

    /// Attaches a loop device to the file.
    fn attach(&mut self) -> Result<()> {
        let file = self.fuse_folder().join(FILE_NAME).display().to_string();
        let sector = self.options.sector_bytes.to_string();
        let args = ["--find", "--show", "--direct-io=on", "--sector-size", &sector, &file];
        // Two that look for a free device at once may find the same one: the loser looks again.
        let device = retry(|| host::run("losetup", &args))?;
        self.hold(Thing::Loop, &device)?;
        self.loop_device = Some(device);
        Ok(())
    }

    fn make_file_system(&self) -> Result<()> {
        let FileSystemKind::Ext4 { journal_bytes, .. } = self.options.file_system else { return Ok(()) };
        let discard = if self.options.discard { "discard" } else { "nodiscard" };
        let extended = format!("lazy_itable_init=0,lazy_journal_init=0,{discard}");
        let journal = journal_bytes.map(|bytes| format!("size={}", bytes >> 20));
        let mut args = vec!["-q", "-F", "-b", "4096", "-E", &extended];
        if let Some(journal) = &journal {
            args.extend(["-J", journal]);
        }
        args.push(self.device());
        host::run("mkfs.ext4", &args).map(|_| ())
    }

    /// Finds the journal and gives every block its stream.
    fn tag(&mut self) -> Result<()> {
        let disk = &self.shared.disk;
        if let FileSystemKind::Ext4 { .. } = self.options.file_system {
            let read = |at: u64, buf: &mut [u8]| disk.read(at, buf);
            let ranges = ext4::journal_ranges(&read, disk.capacity_bytes())?;
            self.journal = ranges.iter().map(journal_range).collect();
        }
        let capacity_blocks = (disk.capacity_bytes() / 4096) as u32;
        *self.shared.labels.write() = labels_of(&self.journal, &self.options.rules, capacity_blocks)?;
        Ok(())
    }

    fn mount(&mut self) -> Result<()> {
        let FileSystemKind::Ext4 { journal_mode, .. } = self.options.file_system else { return Ok(()) };
        let path = self.options.mountpoint.clone();
        self.made_folder |= !path.exists();
        std::fs::create_dir_all(&path).map_err(|e| DeviceError::io(format!("making {}", path.display()), e))?;
        host::is_free(&path)?;
        let discard = if self.options.discard { ",discard" } else { "" };
        let with = format!("noatime,data={}{discard}", journal_mode.mount_option());
        let path = path.display().to_string();
        host::run("mount", &["-t", "ext4", "-o", &with, self.device(), &path])?;
        self.mounted = true;
        self.hold(Thing::Mount, &path)
    }

    fn hold(&mut self, thing: Thing, name: &str) -> Result<()> {
        self.guard.as_mut().map_or(Ok(()), |guard| guard.holds(thing, name))
    }

    fn released(&mut self, thing: Thing) {
        if let Some(guard) = &mut self.guard {
            // If the shell is gone there is nobody to tell, and nothing it could undo.
            let _ = guard.gone(thing);
        }
    }

    /// The loop device's path.
    pub fn device(&self) -> &str {
        self.loop_device.as_deref().unwrap_or("")
    }

    /// Where the file system is mounted.
    pub fn mountpoint(&self) -> &Path {
        &self.options.mountpoint
    }

    /// Where the file system's journal lies.
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

    /// How often the blocks of the journal and of the rest were written since the counters began.
    pub fn access(&self) -> AccessReport {
        self.shared.access.report(&self.shared.labels.read())
    }

    /// Counters begin at zero again.
    pub fn reset_counters(&mut self) {
        self.shared.access.reset();
        self.sampler = Sampler::new(&self.shared);
    }

    /// After a power cut: unmounts what fails anyway, brings power back and mounts again. Counters go on.
    ///
    /// Everything that used the file system must have been stopped.
    pub fn power_cycle(&mut self) -> Result<()> {
        self.unmount_file_system()?;
        self.detach()?;
        self.shared.disk.power_on()?;
        self.attach()?;
        self.mount()
    }

    /// The disk's bytes with the file system cleanly unmounted. Everything that used it must have been stopped.
    pub fn image(&mut self) -> Result<Image> {
        self.unmount_file_system()?;
        self.detach()?;
        let image = self.shared.disk.image();
        self.attach()?;
        self.mount()?;
        image
    }

    /// Puts an image on the disk and mounts the file system in it, whatever state the disk was in. Counters go on.
    pub fn restore(&mut self, image: &Image) -> Result<()> {
        self.unmount_file_system()?;
        self.detach()?;
        self.shared.disk.restore(image)?;
        self.attach()?;
        self.tag()?;
        self.mount()
    }

    /// Cuts the power by `seed`; see [`Disk::power_cut`].
    pub fn power_cut(&self, seed: u64) -> Result<CutReport> {
        self.shared.disk.power_cut(seed)
    }

    fn unmount_file_system(&mut self) -> Result<()> {
        self.unmount_with(&|path| retry(|| host::run("umount", &[path])))
    }

    /// As [`unmount_file_system`](Self::unmount_file_system), without patience.
    fn try_unmount_file_system(&mut self) -> Result<()> {
        self.unmount_with(&|path| host::run("umount", &[path]))
    }

    fn unmount_with(&mut self, umount: &dyn Fn(&str) -> Result<String>) -> Result<()> {
        if self.mounted && host::is_mounted(self.device()) {
            host::is_on_top(&self.options.mountpoint, self.device())?;
            umount(&self.options.mountpoint.display().to_string())?;
        }
        if self.mounted {
            self.mounted = false;
            self.released(Thing::Mount);
        }
        Ok(())
    }

    /// Lets the loop device go. It stays ours until it is really gone: FUSE must not end under it.
    fn detach(&mut self) -> Result<()> {
        if let Some(device) = self.loop_device.clone() {
            if self.is_attached(&device) {
                retry(|| host::run("losetup", &["-d", &device]))?;
            }
            self.wait_until_detached(&device)?;
            self.loop_device = None;
            self.released(Thing::Loop);
        }
        Ok(())
    }

    /// Whether the loop device still stands on our file; somebody else may have its name by now. What cannot be seen is taken for ours.
    fn is_attached(&self, device: &str) -> bool {
        let block = Path::new("/sys/block").join(device.trim_start_matches("/dev/"));
        match std::fs::read_to_string(block.join("loop/backing_file")) {
            Ok(backing) => Path::new(backing.trim_end()).starts_with(&self.folder),
            Err(error) => error.kind() != ErrorKind::NotFound || !block.is_dir(),
        }
    }

    /// `losetup -d` of a device in use only marks it; waits until it is really gone.
    fn wait_until_detached(&self, device: &str) -> Result<()> {
        for _ in 0..100 {
            if !self.is_attached(device) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(DeviceError::Host(format!("{device} is still in use")))
    }

    fn stop_serving(&mut self) -> Result<()> {
        if let Some(session) = self.session.take() {
            let stopped = session.umount_and_join();
            stopped.map_err(|e| DeviceError::io("unmounting FUSE", e))?;
            self.released(Thing::Fuse);
        }
        if !self.folder.as_os_str().is_empty() {
            let fuse = self.fuse_folder();
            let removed = std::fs::remove_dir(&fuse).and_then(|()| std::fs::remove_dir(&self.folder));
            removed.map_err(|e| DeviceError::io(format!("removing {}", self.folder.display()), e))?;
            self.folder = PathBuf::new();
            self.released(Thing::Folder);
        }
        Ok(())
    }

    fn tear_down(&mut self) -> Result<()> {
        self.unmount_file_system()?;
        if std::mem::take(&mut self.made_folder) {
            // One that holds something by now is somebody's.
            let _ = std::fs::remove_dir(&self.options.mountpoint);
        }
        self.detach()?;
        self.stop_serving()?;
        if let Some(guard) = self.guard.take() {
            guard.finish();
        }
        Ok(())
    }

    /// Ends the recorded trace, if there is one. An error met while recording is told here, once.
    fn finish_recording(&self) -> Result<()> {
        self.shared.recorder.as_ref().map_or(Ok(()), |recorder| recorder.finish(&self.journal))
    }

    /// Unmounts everything and ends the recorded trace. An error (the file system is busy, say) leaves what could not be undone; call it again.
    pub fn unmount(&mut self) -> Result<()> {
        self.tear_down()?;
        self.finish_recording()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What fails here is left to the clean-up shell, which sees its pipe close. What was recorded is kept all the same.
        let _ = self.tear_down();
        let _ = self.finish_recording();
    }
}

/// What each block is: the journal's are the journal's, and rules give streams, later ones win.
fn labels_of(journal: &[NamedRange], rules: &[StreamRule], capacity_blocks: u32) -> Result<Labels<Label>> {
    let mut labels = Labels::all(Label { stream: 0, region: Region::Main });
    for range in journal {
        labels.paint(range.first_lba, range.blocks, Label { stream: 0, region: Region::Journal });
    }
    for rule in rules {
        for range in rule.resolve(journal)? {
            range.check(capacity_blocks)?;
            let mut pieces = Vec::new();
            labels.split(range.first_lba, range.blocks, |first, blocks, label| {
                pieces.push((first, blocks, label.region));
                Ok::<(), DeviceError>(())
            })?;
            for (first, blocks, region) in pieces {
                labels.paint(first, blocks, Label { stream: rule.stream, region });
            }
        }
    }
    Ok(labels)
}

/// Whether the disk has every stream that the rules name.
fn has_streams(disk: &Disk, rules: &[StreamRule]) -> Result<()> {
    let streams = disk.streams();
    match rules.iter().map(|rule| rule.stream).find(|stream| *stream >= streams) {
        Some(stream) => Err(DeviceError::NoSuchStream { stream: stream.into(), streams: streams.into() }),
        None => Ok(()),
    }
}

fn journal_range(range: &std::ops::Range<u64>) -> NamedRange {
    let (first, end) = (range.start / 4096, range.end.div_ceil(4096));
    let (first_lba, blocks) = (first as u32, (end - first) as u32);
    NamedRange { name: "journal".into(), first_lba, blocks, first_block_in_file: 0 }
}

/// A new folder of our own for the FUSE mount.
fn run_folder() -> Result<PathBuf> {
    let base = ["/run", "/tmp"].into_iter().map(Path::new).find(|p| p.is_dir()).unwrap_or(Path::new("/"));
    for number in 0..1000 {
        let folder = base.join(format!("highwater-device-{}-{number}", std::process::id()));
        match std::fs::create_dir(&folder) {
            // As the kernel will name it, whatever links lead there.
            Ok(()) => {
                return folder.canonicalize().map_err(|e| DeviceError::io(format!("finding {}", folder.display()), e));
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(DeviceError::io(format!("making {}", folder.display()), e)),
        }
    }
    Err(DeviceError::Host(format!("no free name for a folder in {}", base.display())))
}

/// Tries again for a while: programs that just ended may hold a file system a moment longer.
fn retry(mut act: impl FnMut() -> Result<String>) -> Result<String> {
    for _ in 0..30 {
        if let Ok(output) = act() {
            return Ok(output);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    act()
}

#[cfg(test)]
#[path = "mount_test.rs"]
mod tests;
