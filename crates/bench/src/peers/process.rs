//! The kernel's counters of a process: this one, or a server's.
//!
//! Rules
//! 1. Bytes are those of `/proc/PID/io`: read from devices; written to them, or made dirty in the page cache and not
//!    dropped again. Bytes that the device took are the block layer's, no matter which process wrote them.
//! 2. Instructions are counted in user mode, of all threads of this process that start after [`Instructions::start`].
//!    They are absent if the processor's counters cannot be used (a virtual machine, a kernel that forbids it), and for
//!    a server.

use super::Process;
use crate::cpu::CpuTimes;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::time::Instant;

/// The processor's counter of instructions.
pub(super) struct Instructions(Option<File>);

/// `struct perf_event_attr`, as far as it is set; the rest is zero.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config_1: u64,
}

const HARDWARE: u32 = 0;
const INSTRUCTIONS: u64 = 1;
/// Bits of `flags`: inherited by threads, without the kernel's and the hypervisor's instructions.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

impl Instructions {
    /// Begins to count, if the kernel allows it.
    pub(super) fn start() -> Instructions {
        let attributes = Attributes {
            kind: HARDWARE,
            size: size_of::<Attributes>() as u32,
            config: INSTRUCTIONS,
            flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        // SAFETY: the structure has the size it says and lives through the call; the other arguments are numbers.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, 0) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0);
        // SAFETY: the call made the descriptor, and nothing else owns it.
        Instructions(fd.map(|fd| unsafe { File::from_raw_fd(fd) }))
    }

    fn now(&mut self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.as_mut()?.read_exact(&mut bytes).ok()?;
        #[allow(clippy::host_endian_bytes)] // The kernel's own order.
        Some(u64::from_ne_bytes(bytes)).filter(|count| *count > 0)
    }
}

/// Counters at one moment.
pub(super) struct Mark {
    read: u64,
    written: u64,
    device_written: Option<u64>,
    cpu: CpuTimes,
    /// The times of this process if the counters are a server's.
    client: Option<CpuTimes>,
    at: Instant,
    instructions: Option<u64>,
}

impl Mark {
    /// The counters now: of a process, and of the device of a folder.
    pub(super) fn now(pid: u32, instructions: &mut Instructions, folder: &Path) -> Mark {
        let own = std::process::id();
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let written = field(&io, "write_bytes:").saturating_sub(field(&io, "cancelled_write_bytes:"));
        Mark {
            read: field(&io, "read_bytes:"),
            written,
            device_written: device_written(folder),
            cpu: CpuTimes::now(pid),
            client: (pid != own).then(|| CpuTimes::now(own)),
            at: Instant::now(),
            instructions: instructions.now().filter(|_| pid == own),
        }
    }

    /// The counts since `earlier`.
    pub(super) fn since(&self, earlier: &Mark) -> Process {
        let cpu = self.cpu.since(&earlier.cpu);
        let cpu_s = cpu.process_s.unwrap_or_default();
        let client_cpu_s = self.client.zip(earlier.client).and_then(|(now, before)| now.since(&before).process_s);
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
        let own_pct = (cpu_s + client_cpu_s.unwrap_or(0.0)) * 100.0
            / processors
            / self.at.duration_since(earlier.at).as_secs_f64().max(1e-9);
        Process {
            cpu_others_pct: cpu.machine_pct.map(|all| (all - own_pct).max(0.0)),
            read_bytes: self.read.saturating_sub(earlier.read),
            written_bytes: self.written.saturating_sub(earlier.written),
            cpu_s,
            client_cpu_s,
            device_written_bytes: self.device_written.zip(earlier.device_written).map(|(now, before)| now - before),
            instructions: self.instructions.zip(earlier.instructions).map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// Bytes written to the device of a folder since the machine started.
fn device_written(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    // The folder may not have been made yet.
    let found = folder.ancestors().find_map(|folder| std::fs::metadata(folder).ok())?;
    let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
    let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    // Of the fields the seventh is sectors written, always of 512 bytes.
    text.split_whitespace().nth(6)?.parse::<u64>().ok().map(|sectors| sectors * 512)
}

/// Syncs the file system of a folder.
pub fn sync_folder(folder: &Path) {
    if let Ok(file) = File::open(folder) {
        // SAFETY: the descriptor is open.
        unsafe { libc::syncfs(file.as_raw_fd()) };
    }
}

/// The number after a name, in the kernel's texts.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Most memory a process had, mapped files included.
pub(super) fn peak_memory_bytes(pid: u32) -> u64 {
    field(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(), "VmHWM:") << 10
}

/// Drops the clean pages of a folder's files from the page cache.
pub(super) fn forget_cached(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            forget_cached(&path);
        } else if let Ok(file) = File::open(&path) {
            // SAFETY: the descriptor is open; the call only gives advice.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
    }
}

/// Disk space of a folder.
pub(crate) fn space_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => space_bytes(&entry.path()),
            Ok(found) => found.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_counted_and_takes_space() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut instructions = Instructions::start();
        let own = std::process::id();
        let before = Mark::now(own, &mut instructions, folder.path());
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        let file = File::create(folder.path().join("deep/file")).unwrap();
        std::io::Write::write_all(&mut &file, &vec![7; 3 << 20]).unwrap();
        file.sync_all().unwrap();
        let process = Mark::now(own, &mut instructions, folder.path()).since(&before);
        assert!(process.written_bytes >= 3 << 20, "{process:?}");
        assert!(process.device_written_bytes.is_none_or(|bytes| bytes >= 3 << 20), "{process:?}");
        assert!((3 << 20..4 << 20).contains(&space_bytes(folder.path())));
        assert!(peak_memory_bytes(own) > 1 << 20);
    }
}
