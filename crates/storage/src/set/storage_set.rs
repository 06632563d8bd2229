//! The set of a database's devices: its opening, and the origin of its devices.

use super::found::{Found, look};
use super::redo::{create_log_dir, is_block_device, redo_path, sync_log_dir};
use crate::encryption::{Opening, keys_for, rotate_key_of_locked};
use crate::os::folder::{self, Access, FolderLock, failed};
use crate::{
    CopyKey, DataKeys, Device, EncryptedDevice, EncryptionError, EncryptionKey, FileDevice, FileRole, FlushMethod,
    Holder, KeyTable, MemoryDevice, OpenError, Overlay, SetFile, StorageError,
};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of an opening.
#[derive(Clone, Debug, Default)]
pub struct SetOptions {
    /// Folder of the redo file, if it is not the database's own; or a block device that is the redo file.
    pub log_dir: Option<PathBuf>,
    /// The flush method.
    pub flush_method: FlushMethod,
    /// Redo goes through the page cache whatever the method: for commits that only write (not sync) their redo.
    pub cached_redo: bool,
    /// Make the folder and the files if there is no database.
    pub create: bool,
    /// The key of an encrypted database; a database that is created with a key is encrypted.
    pub encryption_key: Option<EncryptionKey>,
}

/// The devices of one database. Clones share them.
#[derive(Clone)]
pub struct StorageSet {
    /// Pages in place.
    pub data: Arc<dyn Device>,
    /// The redo ring.
    pub redo: Arc<dyn Device>,
    /// The doublewrite file.
    pub doublewrite: Arc<dyn Device>,
    origin: Arc<Origin>,
    temporary: Arc<MakeTemporary>,
    read_only: bool,
    /// The data keys of an encrypted set.
    keys: Option<Arc<DataKeys>>,
}

/// Creates a temporary device.
type MakeTemporary = dyn Fn() -> Result<Arc<dyn Device>, StorageError> + Send + Sync;

/// Temporary devices in memory.
fn temporary_in_memory() -> Arc<MakeTemporary> {
    Arc::new(|| Ok(Arc::new(MemoryDevice::named("temporary", 1))))
}

/// Temporary files in a folder.
fn temporary_in(folder: &Path, method: FlushMethod) -> Arc<MakeTemporary> {
    let folder = folder.to_path_buf();
    Arc::new(move || Ok(Arc::new(FileDevice::temporary(&folder, method)?)))
}

/// The origin of the devices.
enum Origin {
    Folder(Locked),
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
        let locked = Locked::of(dir, log_dir, Access::Write)?;
        let paths = locked.files();
        let found = look(&paths)?;
        if found == Found::Nothing && !options.create {
            return Err(OpenError::NotFound(dir.to_path_buf()));
        }
        let opening = if found == Found::Nothing { Opening::New } else { Opening::Existing };
        let keys = keys_for(&locked.dir, options.encryption_key.as_ref(), opening)?;
        let redo_role = if options.cached_redo { FileRole::RedoCached } else { FileRole::Redo };
        let open = |path: &Path, role| open_device(path, role, options.flush_method, found == Found::Nothing);
        let data = open(&paths[0], FileRole::Data)?;
        let redo = open(&paths[1], redo_role)?;
        let doublewrite = open(&paths[2], FileRole::Doublewrite)?;
        if found == Found::Nothing {
            folder::sync(&locked.dir)?;
            sync_log_dir(&locked.log_dir)?;
        }
        let temporary = temporary_in(&locked.dir, options.flush_method);
        let origin = Arc::new(Origin::Folder(locked));
        let set = StorageSet { data, redo, doublewrite, origin, temporary, read_only: false, keys: None };
        Ok(set.encrypted_if(keys.map(Arc::new)))
    }

    /// Opens the files in the folder `dir` (the redo in `log_dir`, if that is another) to read them only, through the
    /// page cache: also on a file system mounted read-only. Writes into the set do not reach the files ([`Overlay`]).
    /// `key` opens an encrypted database.
    ///
    /// # Errors
    /// [`OpenError`] names the folder or file and what is wrong with it.
    pub fn open_read_only(
        dir: &Path,
        log_dir: Option<&Path>,
        key: Option<&EncryptionKey>,
    ) -> Result<StorageSet, OpenError> {
        let log_dir = log_dir.unwrap_or(dir);
        let locked = Locked::of(dir, log_dir, Access::Read)?;
        let paths = locked.files();
        if look(&paths)? == Found::Nothing {
            return Err(OpenError::NotFound(dir.to_path_buf()));
        }
        let keys = keys_for(&locked.dir, key, Opening::Existing)?;
        let open = |path: &Path| FileDevice::open_read_only(path).map(|file| Arc::new(file) as Arc<dyn Device>);
        let [data, redo, doublewrite] = [open(&paths[0])?, open(&paths[1])?, open(&paths[2])?];
        let (origin, temporary) = (Arc::new(Origin::Folder(locked)), temporary_in_memory());
        let set = StorageSet { data, redo, doublewrite, origin, temporary, read_only: false, keys: None };
        Ok(set.encrypted_if(keys.map(Arc::new)).overlaid()?)
    }

    /// This set for reading only: no write reaches its devices; writes stay in memory.
    ///
    /// # Errors
    /// The length of a device cannot be read.
    pub fn overlaid(&self) -> Result<StorageSet, StorageError> {
        let over = |device: &Arc<dyn Device>| {
            Overlay::new(Arc::clone(device), self.is_encrypted()).map(|overlay| Arc::new(overlay) as Arc<dyn Device>)
        };
        let (data, redo, doublewrite) = (over(&self.data)?, over(&self.redo)?, over(&self.doublewrite)?);
        let (origin, temporary) = (Arc::clone(&self.origin), temporary_in_memory());
        Ok(StorageSet { data, redo, doublewrite, origin, temporary, read_only: true, keys: self.keys.clone() })
    }

    /// This set with encrypted devices. Earlier, unencrypted contents read as arbitrary bytes. A set of an encrypted
    /// folder is already encrypted.
    pub fn encrypted(&self, keys: Arc<DataKeys>) -> StorageSet {
        let through = |file, device: &Arc<dyn Device>| keys.wrap(file, Arc::clone(device));
        StorageSet {
            data: through(SetFile::Data, &self.data),
            redo: through(SetFile::Redo, &self.redo),
            doublewrite: through(SetFile::Doublewrite, &self.doublewrite),
            keys: Some(keys),
            ..self.clone()
        }
    }

    fn encrypted_if(self, keys: Option<Arc<DataKeys>>) -> StorageSet {
        match keys {
            Some(keys) => self.encrypted(keys),
            None => self,
        }
    }

    /// As [`rotate_key`](crate::rotate_key), for the folder that this set was opened in and has locked. Other calls of
    /// it must not run at the same time.
    ///
    /// # Errors
    /// As [`rotate_key`](crate::rotate_key); a set that is not of files has no table of keys.
    pub fn rotate_key(&self, old: &EncryptionKey, new: &EncryptionKey) -> Result<(), OpenError> {
        match &*self.origin {
            Origin::Folder(locked) => rotate_key_of_locked(&locked.dir, old, new),
            Origin::Memory(_) | Origin::Devices => Err(EncryptionError::NotEncrypted(self.data.name().into()).into()),
        }
    }

    /// The key that encrypts copies of an encrypted set, and the table that is stored with the copies.
    ///
    /// # Errors
    /// [`EncryptionError::NoTable`]; the table cannot be read.
    pub fn copy_key(&self) -> Result<Option<(CopyKey, KeyTable)>, OpenError> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let table = match &*self.origin {
            Origin::Folder(locked) => KeyTable::of(&locked.dir)?,
            Origin::Memory(_) | Origin::Devices => keys.table().cloned(),
        };
        let table = table.ok_or_else(|| EncryptionError::NoTable(self.data.name()))?;
        Ok(Some((keys.copy_key(), table)))
    }

    /// Whether everything that is written into this set is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether writes into this set are discarded.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The folder that this set was opened in, and its redo's (or the block device that is the redo): absolute and
    /// without links.
    pub fn folders(&self) -> Option<(&Path, &Path)> {
        match &*self.origin {
            Origin::Folder(locked) => Some((&locked.dir, &locked.log_dir)),
            Origin::Memory(_) | Origin::Devices => None,
        }
    }

    /// Whether `path`, which need not exist, is the folder of this set or is in it, by whatever names.
    pub fn encloses(&self, path: &Path) -> bool {
        match &*self.origin {
            Origin::Folder(locked) => locked.own.encloses(path),
            Origin::Memory(_) | Origin::Devices => false,
        }
    }

    /// A new, empty set in memory.
    pub fn memory() -> StorageSet {
        StorageSet::in_memory(["data", "redo", "doublewrite"].map(|name| MemoryDevice::named(name, 1)))
    }

    /// A set of any three devices.
    pub fn of_devices(data: Arc<dyn Device>, redo: Arc<dyn Device>, doublewrite: Arc<dyn Device>) -> StorageSet {
        let (origin, temporary) = (Arc::new(Origin::Devices), temporary_in_memory());
        StorageSet { data, redo, doublewrite, origin, temporary, read_only: false, keys: None }
    }

    /// A set of these devices (data, redo, doublewrite), which can [lose its power](StorageSet::cut).
    pub fn of_memory(devices: [MemoryDevice; 3]) -> StorageSet {
        StorageSet::in_memory(devices)
    }

    fn in_memory(devices: [MemoryDevice; 3]) -> StorageSet {
        let [data, redo, doublewrite] = devices.clone().map(|d| Arc::new(d) as Arc<dyn Device>);
        let (origin, temporary) = (Arc::new(Origin::Memory(devices)), temporary_in_memory());
        StorageSet { data, redo, doublewrite, origin, temporary, read_only: false, keys: None }
    }

    /// A set as a power cut now could leave it, chosen by `seed`. It must be in memory; it does not change. The three
    /// devices lose their power at the same moment, also when threads are writing. An encrypted set stays encrypted.
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
        let left = StorageSet::in_memory(MemoryDevice::cut_at_once(devices, seeds));
        left.encrypted_if(self.keys.clone())
    }

    /// The devices (data, redo, doublewrite) of a set in memory, below any wrapper.
    pub fn memory_devices(&self) -> Option<&[MemoryDevice; 3]> {
        match &*self.origin {
            Origin::Memory(devices) => Some(devices),
            Origin::Folder(_) | Origin::Devices => None,
        }
    }

    /// The same set with each device (data, redo, doublewrite) put through `wrap`.
    pub fn map(&self, mut wrap: impl FnMut(Arc<dyn Device>) -> Arc<dyn Device>) -> StorageSet {
        let mut through = |device: &Arc<dyn Device>| wrap(Arc::clone(device));
        StorageSet {
            data: through(&self.data),
            redo: through(&self.redo),
            doublewrite: through(&self.doublewrite),
            ..self.clone()
        }
    }

    /// The same set with only its data device put through `wrap`.
    pub fn map_data(&self, wrap: impl FnOnce(Arc<dyn Device>) -> Arc<dyn Device>) -> StorageSet {
        StorageSet { data: wrap(Arc::clone(&self.data)), ..self.clone() }
    }

    /// A new, empty temporary device: a file without a name in the folder of the database, or memory if the set is not
    /// of files. It is encrypted if the set is.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn temporary(&self) -> Result<Arc<dyn Device>, StorageError> {
        let device = (self.temporary)()?;
        if self.is_encrypted() { EncryptedDevice::temporary(device) } else { Ok(device) }
    }

    /// The same set, with temporary devices by `make`.
    pub fn with_temporary(
        &self,
        make: impl Fn() -> Result<Arc<dyn Device>, StorageError> + Send + Sync + 'static,
    ) -> StorageSet {
        StorageSet { temporary: Arc::new(make), ..self.clone() }
    }
}

impl std::fmt::Debug for StorageSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StorageSet({}, {}, {})", self.data.name(), self.redo.name(), self.doublewrite.name())
    }
}

/// The locked folders of a set. Their paths are absolute: the process may change its working directory.
struct Locked {
    dir: PathBuf,
    /// The redo's folder, or its block device, which is opened exclusively instead of locked.
    log_dir: PathBuf,
    own: FolderLock,
    _log: Option<FolderLock>,
}

impl Locked {
    /// Locks the one or two folders. They are locked in the order of their names, so two openings cannot deadlock.
    fn of(dir: &Path, log_dir: &Path, access: Access) -> Result<Locked, OpenError> {
        let (dir, log_dir) = (real_path(dir)?, real_path(log_dir)?);
        let lock_log = || match log_dir == dir || is_block_device(&log_dir) {
            true => Ok(None),
            false => folder::lock(&log_dir, access).map(Some),
        };
        let first = if log_dir < dir { lock_log()? } else { None };
        let own = folder::lock(&dir, access)?;
        let log = if log_dir < dir { first } else { lock_log()? };
        Ok(Locked { dir, log_dir, own, _log: log })
    }

    /// Paths of data, redo and doublewrite.
    fn files(&self) -> [PathBuf; 3] {
        [self.dir.join("data"), redo_path(&self.log_dir), self.dir.join("doublewrite")]
    }
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
        ErrorKind::ResourceBusy => OpenError::InUse { path: path.to_path_buf(), by: Holder::Unknown },
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

    #[test]
    fn a_refused_write_names_the_file() {
        let error = not_writable(Path::new("/db/data"), ErrorKind::PermissionDenied.into()).to_string();
        assert!(error.contains("/db/data") && error.contains("cannot be written"), "{error}");
    }
}
