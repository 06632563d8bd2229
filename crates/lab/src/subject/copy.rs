//! Copies folders.

use highwater_bench::{Error, Result, interrupt};
use std::fs::File;
use std::io::{Read, Result as IoResult};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Unit of a sparse copy, which leaves out blocks of zeros: a block of the file system.
const BLOCK_BYTES: usize = 4096;
const PIECE_BYTES: usize = 256 * BLOCK_BYTES;

/// Copies a folder with all files and folders below it, and syncs each file. Links, sockets and pipes are left out.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    copy_apart(from, to, &|_| to, copy_file)
}

/// As [`copy_folder`], each file by `copy`; one in the root goes to the folder that `place` gives its name.
pub(crate) fn copy_apart<'p>(
    from: &Path,
    to: &'p Path,
    place: &dyn Fn(&str) -> &'p Path,
    copy: fn(&Path, &Path) -> Result<()>,
) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|e| Error::file(to, e))?;
    for entry in std::fs::read_dir(from).map_err(|e| Error::file(from, e))? {
        interrupt::check()?;
        let entry = entry.map_err(|e| Error::file(from, e))?;
        let (source, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(|e| Error::file(&source, e))?;
        if kind.is_dir() {
            let folder = to.join(&name);
            copy_apart(&source, &folder, &|_| folder.as_path(), copy)?;
        } else if kind.is_file() {
            copy(&source, &place(&name.to_string_lossy()).join(&name))?;
        }
    }
    Ok(())
}

/// Copies a file and syncs it.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let copied = std::fs::copy(from, to).and_then(|_| File::open(to)?.sync_all());
    copied.map_err(|e| Error::file(to, e))
}

/// Copies a file and syncs it; blocks of zeros become holes.
pub(crate) fn copy_sparse(from: &Path, to: &Path) -> Result<()> {
    write_sparse(from, to).map_err(|e| Error::file(to, e))
}

fn write_sparse(from: &Path, to: &Path) -> IoResult<()> {
    let (mut source, target) = (File::open(from)?, File::create(to)?);
    let len = source.metadata()?.len();
    target.set_len(len)?;
    target.set_permissions(source.metadata()?.permissions())?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < len {
        let part = &mut piece[..(len - at).min(PIECE_BYTES as u64) as usize];
        source.read_exact(part)?;
        for (n, block) in part.chunks(BLOCK_BYTES).enumerate().filter(|(_, block)| block.iter().any(|b| *b != 0)) {
            target.write_all_at(block, at + (n * BLOCK_BYTES) as u64)?;
        }
        at += part.len() as u64;
    }
    target.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_whole_and_its_root_may_be_split() {
        let root = tempfile::tempdir().unwrap();
        let [from, to, log] = ["from", "to", "log"].map(|name| root.path().join(name));
        std::fs::create_dir_all(from.join("deep")).unwrap();
        std::fs::create_dir(&log).unwrap();
        for name in ["redo", "data", "deep/redo"] {
            std::fs::write(from.join(name), name).unwrap();
        }
        copy_apart(&from, &to, &|name| if name == "redo" { &log } else { &to }, copy_file).unwrap();
        let found = [log.join("redo"), to.join("data"), to.join("deep/redo")].map(|path| std::fs::read(path).unwrap());
        assert_eq!(found, [&b"redo"[..], b"data", b"deep/redo"]);
        assert!(!to.join("redo").exists());
    }

    #[test]
    fn a_sparse_copy_reads_the_same_and_takes_less() {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| root.path().join(name));
        let mut bytes = vec![0; PIECE_BYTES + 3 * BLOCK_BYTES + 100];
        bytes[..10].fill(1);
        bytes[PIECE_BYTES + BLOCK_BYTES + 7] = 2;
        std::fs::write(&from, &bytes).unwrap();
        copy_sparse(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        let taken = |path: &Path| std::fs::metadata(path).unwrap().blocks();
        assert!(taken(&to) * 10 < taken(&from), "{} of {}", taken(&to), taken(&from));
    }
}
