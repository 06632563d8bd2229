//! A memory limit that includes the page cache: a control group of the kernel's memory controller.
//!
//! Rules
//! 1. The limit covers the members' allocations and the file pages that they bring into the page cache while they are
//!    in the group. It emulates a machine with that much memory.
//! 2. Version 1 or 2 of the interface is used, whichever has the memory controller; without one there is an error.
//! 3. A group is removed when it is dropped; its members must have left or ended. A group of a killed process is empty
//!    and is removed when the next one is made.

use highwater_bench::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Mount point of the memory controller of version 1.
const V1: &str = "/sys/fs/cgroup/memory";
/// Possible mount points of version 2.
const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

const PREFIX: &str = "highwater-";

/// One control group with a limit on memory.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    version: u8,
}

impl MemoryGroup {
    /// Creates a group whose members together get `limit_bytes`, page cache included.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no memory controller, or this user may not use it.
    pub fn new(limit_bytes: u64) -> Result<MemoryGroup> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (root, version) = root().ok_or_else(|| {
            Error::Usage("memory cannot be limited: no control group with a memory controller on this machine".into())
        })?;
        remove_left_behind(&root);
        let path = root.join(format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
        std::fs::create_dir(&path).map_err(|e| not_ours(&path, &e))?;
        let group = MemoryGroup { path, version };
        match version {
            1 => group.write("memory.limit_in_bytes", limit_bytes)?,
            _ => {
                group.write("memory.max", limit_bytes)?;
                // Without a swap device there is nothing to limit, and the file may be missing.
                let _ = group.write("memory.swap.max", 0);
            }
        }
        Ok(group)
    }

    /// Creates a group if one is requested and possible; also returns a text with its limit, or with the reason why
    /// there is none.
    pub fn where_possible(limit_bytes: Option<u64>) -> (Option<MemoryGroup>, String) {
        let Some(bytes) = limit_bytes else { return (None, "none".into()) };
        match MemoryGroup::new(bytes) {
            Ok(group) => (Some(group), format!("{} MiB", bytes >> 20)),
            Err(error) => (None, format!("none: {error}")),
        }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that the members use now, page cache included.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn used_bytes(&self) -> Result<u64> {
        let name = if self.version == 1 { "memory.usage_in_bytes" } else { "memory.current" };
        let path = self.path.join(name);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::file(&path, e))?;
        text.trim().parse().map_err(|_| Error::Data(format!("{}: {text:?} is not a number", path.display())))
    }

    /// Whether the kernel has killed a member because the group had reached its limit.
    pub fn has_ended_a_member(&self) -> bool {
        let name = if self.version == 1 { "memory.oom_control" } else { "memory.events" };
        let text = std::fs::read_to_string(self.path.join(name)).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
    }

    /// Moves this process, with all its threads, into the group until the returned value is dropped. Memory it has
    /// already stays charged to where it was.
    ///
    /// # Errors
    /// [`Error::Usage`] when this process may not be moved.
    pub fn enter(self) -> Result<InMemoryGroup> {
        let home = own_group(self.version)?;
        self.write("cgroup.procs", u64::from(std::process::id()))?;
        Ok(InMemoryGroup { group: self, home })
    }

    fn write(&self, name: &str, value: u64) -> Result<()> {
        let path = self.path.join(name);
        std::fs::write(&path, value.to_string()).map_err(|e| not_ours(&path, &e))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A process that was just killed may leave its group shortly after it has been waited for.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// This process in a group; dropping it moves it back.
#[derive(Debug)]
pub struct InMemoryGroup {
    group: MemoryGroup,
    home: PathBuf,
}

impl InMemoryGroup {
    pub fn group(&self) -> &MemoryGroup {
        &self.group
    }
}

impl Drop for InMemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.home.join("cgroup.procs"), std::process::id().to_string());
    }
}

fn not_ours(path: &Path, error: &std::io::Error) -> Error {
    Error::Usage(format!("memory cannot be limited: {}: {error} (control groups need root)", path.display()))
}

/// The folder groups are made in, and the version of the interface.
fn root() -> Option<(PathBuf, u8)> {
    if Path::new(V1).join("memory.limit_in_bytes").exists() {
        return Some((V1.into(), 1));
    }
    V2.iter().map(PathBuf::from).find(|root| turned_on(root)).map(|root| (root, 2))
}

/// Whether the groups of a version 2 hierarchy have the memory controller, which is turned on if it can be.
fn turned_on(root: &Path) -> bool {
    let lists = |name: &str| {
        let text = std::fs::read_to_string(root.join(name)).unwrap_or_default();
        text.split_whitespace().any(|controller| controller == "memory")
    };
    lists("cgroup.controllers")
        && (lists("cgroup.subtree_control") || std::fs::write(root.join("cgroup.subtree_control"), "+memory").is_ok())
}

/// The group this process is in now.
fn own_group(version: u8) -> Result<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").map_err(|e| Error::file("/proc/self/cgroup", e))?;
    let path = group_in(&text, version).ok_or_else(|| Error::Data("no memory group in /proc/self/cgroup".into()))?;
    let root = root().map_or_else(PathBuf::new, |(root, _)| root);
    Ok(root.join(path.trim_start_matches('/')))
}

/// The path of the memory controller's line (`4:memory:/path`; version 2: `0::/path`).
fn group_in(text: &str, version: u8) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let ours = if version == 1 { controllers.split(',').any(|c| c == "memory") } else { controllers.is_empty() };
        ours.then_some(path)
    })
}

/// Removes groups of processes that have ended. A group that still has members cannot be removed and stays.
fn remove_left_behind(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_line_is_found() {
        let text = "5:devices:/\n4:memory,blkio:/a/b\n0::/c\n";
        assert_eq!(group_in(text, 1), Some("/a/b"));
        assert_eq!(group_in(text, 2), Some("/c"));
        assert_eq!(group_in("1:cpu:/\n", 1), None);
    }

    /// Runs a script of the shell in the group.
    fn run_in(group: &MemoryGroup, script: &str) -> std::process::ExitStatus {
        let script = format!("echo $$ > {}/cgroup.procs && {script}", group.path().display());
        std::process::Command::new("/bin/sh").args(["-c", &script]).status().unwrap()
    }

    /// Reading a file of 64 MiB in a group of 24 MiB leaves at most the limit in use: the page cache is counted and
    /// reclaimed.
    #[test]
    fn the_page_cache_is_limited() {
        let group = match MemoryGroup::new(24 << 20) {
            Ok(group) => group,
            // Nothing to test where groups cannot be made; the error must then say so.
            Err(error) => return assert!(error.to_string().starts_with("memory cannot be limited"), "{error}"),
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let script = format!("dd if=/dev/zero of={} bs=1M count=64 2>/dev/null", file.display());
        assert!(run_in(&group, &script).success());
        let used = group.used_bytes().unwrap();
        assert!((4 << 20..=24 << 20).contains(&used), "{used}");
        let path = group.path().to_path_buf();
        drop(group);
        assert!(!path.exists());
    }

    /// A program that wants more memory than the group has is ended, and the group knows it.
    #[test]
    fn who_wants_more_is_ended() {
        let Ok(group) = MemoryGroup::new(24 << 20) else { return };
        assert!(run_in(&group, "true").success() && !group.has_ended_a_member());
        // What `tail` keeps of a file without lines is all of it.
        assert!(!run_in(&group, "head -c 64M /dev/zero | tail > /dev/null").success());
        assert!(group.has_ended_a_member());
    }

    /// This process goes in and comes back out. The limit is far above what tests use: those that run meanwhile are in
    /// the group, too.
    #[test]
    fn this_process_enters_and_leaves() {
        let Ok(group) = MemoryGroup::new(4 << 30) else { return };
        let (version, path) = (group.version, group.path().to_path_buf());
        let home = own_group(version).unwrap();
        let inside = group.enter().unwrap();
        assert_eq!(own_group(version).unwrap(), path);
        drop(inside);
        assert_eq!((own_group(version).unwrap(), path.exists()), (home, false));
    }
}
