//! The files of one database: `data`, `redo`, `doublewrite`.
//!
//! Rules
//! 1. A set is open at most once: its folder, and the folder of the redo, stay locked until the last clone is dropped.
//! 2. Opening never removes or shortens a file. New files are empty, and all three names are durable before anyone can
//!    write into one of them.
//! 3. Hence, if a file is missing while another one has contents, the missing one was lost: an error that names it. If
//!    all that is there is empty, a creation was interrupted (or never begun), and can be done again. What an empty or
//!    half-written `data` means beyond that, its owner decides.
//! 4. The redo may be a block device of its own (`log_dir` names it, or is a folder in which `redo` links to it). It counts
//!    as empty while it begins with zeros; a database is never created over anything else.
//! 5. A set opened to be read takes no file open for writing, makes nothing and shares its lock with other readers. Its
//!    devices are overlays: what is written into them is kept in memory and forgotten.
//! 6. Any other file in the folder is left alone.

use crate::error::REDO_ZEROS_BYTES;
use crate::os::folder::{self, Access, FolderLock, failed};
use crate::{Device, FileDevice, FileRole, FlushMethod, MemoryDevice, OpenError, Overlay, Placement, StorageError};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a folder.
#[derive(Clone, Debug, Default)]
pub struct SetOptions {
    /// Folder of the redo file, if it is not the database's own; or a block device that is the redo file.
    pub log_dir: Option<PathBuf>,
    /// How files are written and made durable.
    pub flush_method: FlushMethod,
    /// Redo goes through the page cache whatever the method: for commits that only write (not sync) their redo.
    pub cached_redo: bool,
    /// Make the folder and the files if there is no database.
    pub create: bool,
}

/// The devices of one database. Clones share them.
#[derive(Clone)]
pub struct StorageSet {
    /// Pages in place.
    pub data: Arc<dyn Device>,
    /// The redo ring.
    pub redo: Arc<dyn Device>,
    /// Copies of pages on their way to their place.
    pub doublewrite: Arc<dyn Device>,
    origin: Arc<Origin>,
    read_only: bool,
}

/// Where the devices come from.
enum Origin {
    Folder { _locks: Vec<FolderLock> },
    Memory([MemoryDevice; 3]),
    Devices,
}

impl StorageSet {
    /// Opens the folder `dir`; see [`open`](StorageSet::open).
    ///
    /// # Errors
    /// As [`open`](StorageSet::open).
    pub fn open_dir(
        dir: &Path,
        log_dir: Option<&Path>,
        flush_method: FlushMethod,
        create: bool,
    ) -> Result<StorageSet, OpenError> {
        let log_dir = log_dir.map(Path::to_path_buf);
        StorageSet::open(dir, &SetOptions { log_dir, flush_method, create, ..SetOptions::default() })
    }

    /// Opens the files in the folder `dir` and locks it. If there are none, or only empty ones, and `options.create` is
    /// set, makes those that are missing.
    ///
    /// # Errors
    /// [`OpenError`] names the folder or file and what is wrong with it.
    pub fn open(dir: &Path, options: &SetOptions) -> Result<StorageSet, OpenError> {
        let log_dir = options.log_dir.as_deref().unwrap_or(dir);
        if options.create {
            folder::create(dir)?;
            create_log_dir(log_dir)?;
        }
        let locks = lock_folders(dir, log_dir, Access::Write)?;
        let paths = [dir.join("data"), redo_path(log_dir), dir.join("doublewrite")];
        let found = look(&paths)?;
        if found == Found::Nothing && !options.create {
            return Err(OpenError::NotFound(dir.to_path_buf()));
        }
        let redo_role = if options.cached_redo { FileRole::RedoCached } else { FileRole::Redo };
        let open = |path: &Path, role| open_device(path, role, options.flush_method, found == Found::Nothing);
        let data = open(&paths[0], FileRole::Data)?;
        let redo = open(&paths[1], redo_role)?;
        let doublewrite = open(&paths[2], FileRole::Doublewrite)?;
        if found == Found::Nothing {
            folder::sync(dir)?;
            sync_log_dir(log_dir)?;
        }
        let origin = Arc::new(Origin::Folder { _locks: locks });
        Ok(StorageSet { data, redo, doublewrite, origin, read_only: false })
    }

    /// Opens the files in the folder `dir` (the redo in `log_dir`, if that is another) to read them only, through the page
    /// cache: also on a file system mounted read-only. What is written into the set stays in memory ([`Overlay`]).
    ///
    /// # Errors
    /// [`OpenError`] names the folder or file and what is wrong with it.
    pub fn open_read_only(dir: &Path, log_dir: Option<&Path>) -> Result<StorageSet, OpenError> {
        let log_dir = log_dir.unwrap_or(dir);
        let locks = lock_folders(dir, log_dir, Access::Read)?;
        let paths = [dir.join("data"), redo_path(log_dir), dir.join("doublewrite")];
        if look(&paths)? == Found::Nothing {
            return Err(OpenError::NotFound(dir.to_path_buf()));
        }
        let open = |path: &Path| FileDevice::open_read_only(path).map(|file| Arc::new(file) as Arc<dyn Device>);
        let [data, redo, doublewrite] = [open(&paths[0])?, open(&paths[1])?, open(&paths[2])?];
        let origin = Arc::new(Origin::Folder { _locks: locks });
        Ok(StorageSet { data, redo, doublewrite, origin, read_only: false }.overlaid()?)
    }

    /// This set to be read only: nothing reaches its devices, what is written is kept in memory.
    ///
    /// # Errors
    /// A device does not tell its length.
    pub fn overlaid(&self) -> Result<StorageSet, StorageError> {
        let over = |device: &Arc<dyn Device>| Overlay::new(Arc::clone(device)).map(|o| Arc::new(o) as Arc<dyn Device>);
        let (data, redo, doublewrite) = (over(&self.data)?, over(&self.redo)?, over(&self.doublewrite)?);
        Ok(StorageSet { data, redo, doublewrite, origin: Arc::clone(&self.origin), read_only: true })
    }

    /// Whether what is written into this set is forgotten.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// A new, empty set in memory.
    pub fn memory() -> StorageSet {
        StorageSet::in_memory(["data", "redo", "doublewrite"].map(|name| MemoryDevice::named(name, 1)))
    }

    /// A set of any three devices.
    pub fn of_devices(data: Arc<dyn Device>, redo: Arc<dyn Device>, doublewrite: Arc<dyn Device>) -> StorageSet {
        StorageSet { data, redo, doublewrite, origin: Arc::new(Origin::Devices), read_only: false }
    }

    /// A set of these devices (data, redo, doublewrite), which can [lose its power](StorageSet::cut).
    pub fn of_memory(devices: [MemoryDevice; 3]) -> StorageSet {
        StorageSet::in_memory(devices)
    }

    fn in_memory(devices: [MemoryDevice; 3]) -> StorageSet {
        let [data, redo, doublewrite] = devices.clone().map(|d| Arc::new(d) as Arc<dyn Device>);
        StorageSet { data, redo, doublewrite, origin: Arc::new(Origin::Memory(devices)), read_only: false }
    }

    /// What a power cut now could leave of a set in memory, chosen by `seed`; this set goes on untouched. The three devices
    /// lose their power at the same moment, also when threads are writing.
    ///
    /// # Panics
    /// If the set is not in memory.
    pub fn cut(&self, seed: u64) -> StorageSet {
        let devices = self.memory_devices().expect("only a set in memory can lose its power");
        let mut seed = seed;
        let seeds = std::array::from_fn(|_| {
            seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x632B_E5AB);
            seed
        });
        StorageSet::in_memory(MemoryDevice::cut_at_once(devices, seeds))
    }

    /// The devices (data, redo, doublewrite) of a set in memory, below any wrapper.
    pub fn memory_devices(&self) -> Option<&[MemoryDevice; 3]> {
        match &*self.origin {
            Origin::Memory(devices) => Some(devices),
            Origin::Folder { .. } | Origin::Devices => None,
        }
    }

    /// The same set with each device (data, redo, doublewrite) put through `wrap`.
    pub fn map(&self, mut wrap: impl FnMut(Arc<dyn Device>) -> Arc<dyn Device>) -> StorageSet {
        let mut through = |device: &Arc<dyn Device>| wrap(Arc::clone(device));
        StorageSet {
            data: through(&self.data),
            redo: through(&self.redo),
            doublewrite: through(&self.doublewrite),
            origin: Arc::clone(&self.origin),
            read_only: self.read_only,
        }
    }
}

impl std::fmt::Debug for StorageSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StorageSet({}, {}, {})", self.data.name(), self.redo.name(), self.doublewrite.name())
    }
}

/// What a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// No file, or empty ones only.
    Nothing,
    /// All three files, and something in them.
    Files,
}

fn look(paths: &[PathBuf; 3]) -> Result<Found, OpenError> {
    let mut missing = None;
    let mut with_contents = None;
    for path in paths {
        match contents_of(path)? {
            None => drop(missing.get_or_insert(path)),
            Some(0) => {}
            Some(_) => drop(with_contents.get_or_insert(path)),
        }
    }
    match (missing, with_contents) {
        (_, None) => Ok(Found::Nothing),
        (None, Some(_)) => Ok(Found::Files),
        (Some(_), Some(present)) if is_block_device(present) => Err(OpenError::NotEmpty(present.clone())),
        (Some(missing), Some(present)) => {
            Err(OpenError::Incomplete { missing: missing.clone(), present: present.clone() })
        }
    }
}

/// Length of the file, `None` if there is none. A block device without contents counts as 0 bytes long.
fn contents_of(path: &Path) -> Result<Option<u64>, OpenError> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(metadata) if metadata.file_type().is_block_device() => {
            begins_with_zeros(path).map(|zeros| Some(if zeros { 0 } else { u64::MAX }))
        }
        Ok(_) => Ok(Some(u64::MAX)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("look at", path, source).into()),
    }
}

fn begins_with_zeros(path: &Path) -> Result<bool, OpenError> {
    let mut bytes = Vec::with_capacity(REDO_ZEROS_BYTES);
    let read = File::open(path).and_then(|file| file.take(REDO_ZEROS_BYTES as u64).read_to_end(&mut bytes));
    read.map_err(|source| failed("look at", path, source))?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Where the redo is: in the folder `log_dir`, or the block device of that name.
pub fn redo_path(log_dir: &Path) -> PathBuf {
    if is_block_device(log_dir) { log_dir.to_path_buf() } else { log_dir.join("redo") }
}

/// Removes the redo file in the folder `log_dir`; a block device of that name gets the zeros that say nobody uses it.
///
/// # Errors
/// The operating system's, except that there is no such file.
pub fn forget_redo(log_dir: &Path) -> Result<(), StorageError> {
    let path = redo_path(log_dir);
    if is_block_device(&path) {
        let device = FileDevice::open(&path, FileRole::Redo, FlushMethod::Fsync, false)?;
        device.write_at(0, &[0; REDO_ZEROS_BYTES], Placement::Redo)?;
        return device.sync();
    }
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", &path, error)),
        _ => Ok(()),
    }
}

fn create_log_dir(log_dir: &Path) -> Result<(), OpenError> {
    if is_block_device(log_dir) { Ok(()) } else { folder::create(log_dir) }
}

fn sync_log_dir(log_dir: &Path) -> Result<(), OpenError> {
    if is_block_device(log_dir) { Ok(()) } else { folder::sync(log_dir) }
}

/// Locks the one or two folders. The order is that of the names, so that two openers cannot each take one.
fn lock_folders(dir: &Path, log_dir: &Path, access: Access) -> Result<Vec<FolderLock>, OpenError> {
    let mut folders = vec![real_path(dir)?, real_path(log_dir)?];
    // A block device is opened exclusively instead.
    folders.retain(|folder| !is_block_device(folder));
    folders.sort();
    folders.dedup();
    folders.iter().map(|f| folder::lock(f, access)).collect()
}

fn real_path(path: &Path) -> Result<PathBuf, OpenError> {
    path.canonicalize().map_err(|source| match source.kind() {
        ErrorKind::NotFound => OpenError::NotFound(path.to_path_buf()),
        ErrorKind::NotADirectory => OpenError::NotAFolder(path.to_path_buf()),
        _ => failed("look at", path, source).into(),
    })
}

fn open_device(path: &Path, role: FileRole, method: FlushMethod, create: bool) -> Result<Arc<dyn Device>, OpenError> {
    let device = FileDevice::open(path, role, method, create).map_err(|error| match error.source.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => not_writable(path, error.source),
        ErrorKind::ResourceBusy => OpenError::InUse(path.to_path_buf()),
        _ => error.into(),
    })?;
    Ok(Arc::new(device))
}

fn not_writable(path: &Path, source: std::io::Error) -> OpenError {
    OpenError::NotWritable { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &Path, create: bool) -> Result<StorageSet, OpenError> {
        StorageSet::open_dir(dir, None, FlushMethod::Fsync, create)
    }

    fn fill(set: &StorageSet) {
        for device in [&set.data, &set.redo, &set.doublewrite] {
            device.set_len_bytes(4096).unwrap();
        }
    }

    fn made(dir: &Path) {
        fill(&open(dir, true).unwrap());
    }

    #[test]
    fn a_created_set_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b");
        made(&dir);
        let set = open(&dir, false).unwrap();
        assert_eq!(set.data.len_bytes().unwrap(), 4096);
    }

    #[test]
    fn an_interrupted_creation_can_be_done_again() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), true).unwrap());
        std::fs::remove_file(folder.path().join("redo")).unwrap();
        assert!(matches!(open(folder.path(), false), Err(OpenError::NotFound(_))));
        assert!(!folder.path().join("redo").exists());
        made(folder.path());
        open(folder.path(), false).unwrap();
    }

    #[test]
    fn the_folder_is_locked_until_the_last_clone_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        made(folder.path());
        let set = open(folder.path(), false).unwrap();
        let clone = set.clone();
        drop(set);
        assert!(matches!(open(folder.path(), true), Err(OpenError::InUse(_))));
        drop(clone);
        open(folder.path(), false).unwrap();
    }

    #[test]
    fn readers_share_a_folder_and_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = StorageSet::open_read_only(folder.path(), None).unwrap_err();
        assert!(matches!(nothing, OpenError::NotFound(_)), "{nothing}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        made(folder.path());
        let (one, two) =
            (StorageSet::open_read_only(folder.path(), None).unwrap(), StorageSet::open_read_only(folder.path(), None));
        assert!(matches!(open(folder.path(), false), Err(OpenError::InUse(_))));
        for device in [&one.data, &one.redo, &one.doublewrite] {
            device.write_at(0, &[7; 8192], Placement::Other).unwrap();
            device.sync().unwrap();
        }
        assert_eq!((one.data.len_bytes().unwrap(), two.unwrap().data.len_bytes().unwrap()), (8192, 4096));
        drop(one);
        for name in ["data", "redo", "doublewrite"] {
            assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), vec![0; 4096]);
        }
        let writer = open(folder.path(), false).unwrap();
        assert!(matches!(StorageSet::open_read_only(folder.path(), None), Err(OpenError::InUse(_))));
        drop(writer);
    }

    #[test]
    fn the_log_folder_is_locked_too() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two, log) = (folder.path().join("1"), folder.path().join("2"), folder.path().join("log"));
        let set = StorageSet::open_dir(&one, Some(&log), FlushMethod::Direct, true).unwrap();
        assert!(log.join("redo").exists() && !one.join("redo").exists());
        let error = StorageSet::open_dir(&two, Some(&log), FlushMethod::Direct, true).unwrap_err();
        assert!(matches!(error, OpenError::InUse(_)), "{error}");
        fill(&set);
        drop(set);
        let error = open(&one, false).unwrap_err();
        assert!(matches!(&error, OpenError::Incomplete { missing, .. } if missing.ends_with("redo")), "{error}");
        StorageSet::open_dir(&one, Some(&log), FlushMethod::Direct, false).unwrap();
        StorageSet::open_dir(&one, Some(&one.join(".")), FlushMethod::Direct, false).unwrap_err();
    }

    #[test]
    fn a_missing_file_is_named() {
        for name in ["data", "redo", "doublewrite"] {
            let folder = tempfile::tempdir().unwrap();
            made(folder.path());
            std::fs::remove_file(folder.path().join(name)).unwrap();
            for create in [false, true] {
                let error = open(folder.path(), create).unwrap_err();
                assert!(matches!(&error, OpenError::Incomplete { missing, .. } if missing.ends_with(name)), "{error}");
                assert!(!folder.path().join(name).exists());
            }
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        made(folder.path());
        open(folder.path(), true).unwrap();
        assert_eq!(std::fs::read(folder.path().join("notes.txt")).unwrap(), b"mine");
    }

    #[test]
    fn what_is_no_folder_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("below")] {
            for create in [false, true] {
                let error = open(&path, create).unwrap_err();
                assert!(matches!(error, OpenError::NotAFolder(_)), "{error}");
            }
        }
        let error = open(&folder.path().join("none"), false).unwrap_err();
        assert!(matches!(error, OpenError::NotFound(_)), "{error}");
        assert!(!folder.path().join("none").exists());
    }

    #[test]
    fn a_folder_without_write_permission_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = not_writable(folder.path(), ErrorKind::PermissionDenied.into());
        assert!(error.to_string().contains("cannot be written"), "{error}");
        let unwritable = Path::new("/proc/highwater-test");
        let error = open(unwritable, true).unwrap_err();
        assert!(error.to_string().contains("/proc"), "{error}");
    }

    #[test]
    fn a_set_in_memory_survives_a_cut_as_its_devices_do() {
        let set = StorageSet::memory();
        set.data.set_len_bytes(512).unwrap();
        set.data.write_at(0, &[1; 512], Placement::Other).unwrap();
        set.data.sync().unwrap();
        set.redo.set_len_bytes(512).unwrap();
        let lens: std::collections::BTreeSet<u64> = (0..50).map(|s| set.cut(s).redo.len_bytes().unwrap()).collect();
        assert_eq!(lens, [0, 512].into());
        assert!((0..50).all(|s| set.cut(s).data.len_bytes().unwrap() == 512));
    }

    #[test]
    fn a_wrapped_set_keeps_its_memory() {
        let faults = crate::Faults::new();
        let set = StorageSet::memory();
        let wrapped = set.map(|device| faults.wrap(device));
        wrapped.data.set_len_bytes(512).unwrap();
        assert_eq!(set.data.len_bytes().unwrap(), 512);
        assert_eq!(wrapped.memory_devices().unwrap()[0].len_bytes().unwrap(), 512);
        assert_eq!(faults.changes(), 1);
    }
}
