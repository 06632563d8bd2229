//! Files of the operating system behind the [`Device`](crate::Device) trait.
//!
//! `file` is the device, `sys` has what differs between operating systems, io_uring among it, `folder` locks folders,
//! compares them and makes their entries durable, `holder` says who has locked one. Which flags a file is opened with
//! follows from its [`FileRole`] and the [`FlushMethod`], in `method`. `temporary` creates devices without
//! a name. `sequential` is for large files that are no device: backups.

mod file;
pub(crate) mod folder;
mod holder;
mod method;
mod sequential;
pub(crate) mod sys;
mod temporary;
mod untorn;

pub use file::FileDevice;
pub use folder::{FolderLock, is_lock_file, is_within, lock_alone, lock_shared, real_path, sync as sync_folder};
pub use method::{FileRole, FlushMethod};
pub use sequential::SequentialFile;
pub use sys::forget_cached;
