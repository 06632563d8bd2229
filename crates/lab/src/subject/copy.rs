//! Copies folders.

use highwater_bench::{Error, Result, interrupt};
use std::fs::File;
use std::path::Path;

/// Copies a folder with all files and folders below it, and syncs each file. Links, sockets and pipes are left out.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    copy_apart(from, to, &|_| to)
}

/// As [`copy_folder`]; a file in the root goes to the folder that `place` gives its name.
pub(crate) fn copy_apart<'p>(from: &Path, to: &'p Path, place: &dyn Fn(&str) -> &'p Path) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|e| Error::file(to, e))?;
    for entry in std::fs::read_dir(from).map_err(|e| Error::file(from, e))? {
        interrupt::check()?;
        let entry = entry.map_err(|e| Error::file(from, e))?;
        let (source, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(|e| Error::file(&source, e))?;
        if kind.is_dir() {
            copy_folder(&source, &to.join(&name))?;
        } else if kind.is_file() {
            copy_file(&source, &place(&name.to_string_lossy()).join(&name))?;
        }
    }
    Ok(())
}

/// Copies a file and syncs it.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let copied = std::fs::copy(from, to).and_then(|_| File::open(to)?.sync_all());
    copied.map_err(|e| Error::file(to, e))
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
        copy_apart(&from, &to, &|name| if name == "redo" { &log } else { &to }).unwrap();
        let found = [log.join("redo"), to.join("data"), to.join("deep/redo")].map(|path| std::fs::read(path).unwrap());
        assert_eq!(found, [&b"redo"[..], b"data", b"deep/redo"]);
        assert!(!to.join("redo").exists());
    }
}
