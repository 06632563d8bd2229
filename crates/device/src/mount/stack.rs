//! The layers above a disk: FUSE, loop device, file system. One function sets each of them up or takes it down, in the
//! order of the rules of [`mount`](super).

use super::file_system::{DiskFileSystem, FILE_NAME, Shared};
use super::host::{self, retry};
use super::options::{FileSystemKind, MountOptions};
use crate::error::{DeviceError, Result};
use crate::guard::{Guard, Guarded};
use fuser::{BackgroundSession, Config, MountOption, Session};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The layers that are set up.
pub(super) struct Stack {
    pub(super) options: MountOptions,
    /// The temporary folder of the FUSE mount; empty if there is none.
    pub(super) folder: PathBuf,
    session: Option<BackgroundSession>,
    loop_device: Option<String>,
    mounted: bool,
    /// Whether the mount point's folder was created for this mount.
    made_folder: bool,
    guard: Option<Guard>,
}

impl Stack {
    /// A stack without layers.
    pub(super) fn new(options: &MountOptions) -> Result<Stack> {
        let guard = Guard::new().map_err(|e| DeviceError::io("starting /bin/sh", e))?;
        Ok(Stack {
            options: options.clone(),
            folder: PathBuf::new(),
            session: None,
            loop_device: None,
            mounted: false,
            made_folder: false,
            guard: Some(guard),
        })
    }

    /// Serves the disk as a file through FUSE.
    pub(super) fn serve(&mut self, shared: Arc<Shared>) -> Result<()> {
        self.folder = run_folder()?;
        self.hold(Guarded::FuseFolder, &self.folder.display().to_string())?;
        let mountpoint = self.fuse_folder();
        std::fs::create_dir(&mountpoint).map_err(|e| DeviceError::io(format!("making {}", mountpoint.display()), e))?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("highwater-device".into())];
        config.n_threads = Some(self.options.threads);
        config.clone_fd = true;
        let session = Session::new(DiskFileSystem::new(shared), &mountpoint, &config);
        let session = session.and_then(Session::spawn);
        self.session = Some(session.map_err(|e| DeviceError::io("mounting FUSE", e))?);
        self.hold(Guarded::Fuse, &mountpoint.display().to_string())
    }

    fn fuse_folder(&self) -> PathBuf {
        self.folder.join("fuse")
    }

    /// Attaches a loop device to the file.
    pub(super) fn attach(&mut self) -> Result<()> {
        let file = self.fuse_folder().join(FILE_NAME).display().to_string();
        let sector = self.options.sector_bytes.to_string();
        let args = ["--find", "--show", "--direct-io=on", "--sector-size", &sector, &file];
        // Two processes that look for a free device at once may find the same one: the second tries again.
        let device = retry(|| host::run("losetup", &args))?;
        self.hold(Guarded::Loop, &device)?;
        self.loop_device = Some(device);
        Ok(())
    }

    pub(super) fn make_file_system(&self) -> Result<()> {
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

    pub(super) fn mount(&mut self) -> Result<()> {
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
        self.hold(Guarded::Mount, &path)
    }

    fn hold(&mut self, thing: Guarded, name: &str) -> Result<()> {
        let held = self.guard.as_mut().map_or(Ok(()), |guard| guard.holds(thing, name));
        held.map_err(|e| DeviceError::io("writing to the clean-up shell", e))
    }

    fn released(&mut self, thing: Guarded) {
        if let Some(guard) = &mut self.guard {
            // If the shell has ended it undoes nothing: no message is needed.
            let _ = guard.gone(thing);
        }
    }

    /// The loop device's path.
    pub(super) fn device(&self) -> &str {
        self.loop_device.as_deref().unwrap_or("")
    }

    pub(super) fn unmount_file_system(&mut self) -> Result<()> {
        self.unmount_with(&|path| retry(|| host::run("umount", &[path])))
    }

    /// As [`unmount_file_system`](Self::unmount_file_system), but tries once.
    pub(super) fn try_unmount_file_system(&mut self) -> Result<()> {
        self.unmount_with(&|path| host::run("umount", &[path]))
    }

    fn unmount_with(&mut self, umount: &dyn Fn(&str) -> Result<String>) -> Result<()> {
        if self.mounted && host::is_mounted(self.device()) {
            host::is_on_top(&self.options.mountpoint, self.device())?;
            umount(&self.options.mountpoint.display().to_string())?;
        }
        if self.mounted {
            self.mounted = false;
            self.released(Guarded::Mount);
        }
        Ok(())
    }

    /// Detaches the loop device and waits until it is free: FUSE must not end under it.
    pub(super) fn detach(&mut self) -> Result<()> {
        if let Some(device) = self.loop_device.clone() {
            // One that was in use may become free between the check and the command.
            retry(|| match self.is_attached(&device) {
                true => host::run("losetup", &["-d", &device]),
                false => Ok(String::new()),
            })?;
            self.wait_until_detached(&device)?;
            self.loop_device = None;
            self.released(Guarded::Loop);
        }
        Ok(())
    }

    /// Whether the loop device is still attached to the file of this mount; it may be attached to another file
    /// meanwhile. A device that cannot be checked is treated as attached.
    fn is_attached(&self, device: &str) -> bool {
        let block = Path::new("/sys/block").join(device.trim_start_matches("/dev/"));
        match std::fs::read_to_string(block.join("loop/backing_file")) {
            Ok(backing) => Path::new(backing.trim_end()).starts_with(&self.folder),
            Err(error) => error.kind() != ErrorKind::NotFound || !block.is_dir(),
        }
    }

    /// Waits until the loop device is free: `losetup -d` only marks a device that is in use.
    fn wait_until_detached(&self, device: &str) -> Result<()> {
        for _ in 0..100 {
            if !self.is_attached(device) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(DeviceError::Host(format!("{device} is still in use")))
    }

    /// Whether the disk is served as a file.
    #[cfg(test)]
    pub(super) fn is_served(&self) -> bool {
        self.session.is_some()
    }

    fn stop_serving(&mut self) -> Result<()> {
        if let Some(session) = self.session.take() {
            match session.umount_and_join() {
                // A thread that reads requests may find the connection closed by the kernel, instead of gone.
                Err(error) if error.kind() != ErrorKind::ConnectionAborted => {
                    return Err(DeviceError::io("unmounting FUSE", error));
                }
                _ => self.released(Guarded::Fuse),
            }
        }
        if !self.folder.as_os_str().is_empty() {
            let fuse = self.fuse_folder();
            let removed = std::fs::remove_dir(&fuse).and_then(|()| std::fs::remove_dir(&self.folder));
            removed.map_err(|e| DeviceError::io(format!("removing {}", self.folder.display()), e))?;
            self.folder = PathBuf::new();
            self.released(Guarded::FuseFolder);
        }
        Ok(())
    }

    pub(super) fn tear_down(&mut self) -> Result<()> {
        self.unmount_file_system()?;
        if std::mem::take(&mut self.made_folder) {
            // A folder that is no longer empty is in use by another program.
            let _ = std::fs::remove_dir(&self.options.mountpoint);
        }
        self.detach()?;
        self.stop_serving()?;
        if let Some(mut guard) = self.guard.take() {
            guard.finish();
        }
        Ok(())
    }
}

/// Creates the temporary folder of the FUSE mount.
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
