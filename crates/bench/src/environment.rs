//! The environment of a measurement, stored in every result: date, host, file system and build.
//!
//! Rules
//! 1. One function determines it, so every result has the same names.
//! 2. A value that the system does not report is `unknown`.
//! 3. The date is UTC. A build is the version, and the checksum of the program's file.

use highwater::DateTime;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const UNKNOWN: &str = "unknown";

/// Date, host, processor, number of processors, kernel, file system and build, as names and values of a configuration;
/// `dir` is where the data lie, `None` if they are in memory.
pub fn environment(dir: Option<&Path>) -> Vec<(String, String)> {
    let processors = std::thread::available_parallelism().map_or(0, |n| n.get());
    let file_system = dir.map_or("none: the data are in memory".to_string(), file_system_of);
    let values = [
        ("date", date()),
        ("host", one_line("/proc/sys/kernel/hostname").unwrap_or(UNKNOWN.into())),
        ("processor", processor(&read("/proc/cpuinfo"))),
        ("processors", processors.to_string()),
        ("kernel", kernel()),
        ("file_system", file_system),
        ("build", build(&[])),
    ];
    values.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// The version, and the checksums of this program's file and of `others` that measure for it.
pub fn build(others: &[PathBuf]) -> String {
    let checksum = |path: std::io::Result<PathBuf>| {
        let bytes = path.and_then(std::fs::read);
        bytes.map_or(UNKNOWN.into(), |bytes| format!("{:08x}", crc32c::crc32c(&bytes)))
    };
    let own = checksum(std::env::current_exe());
    let sums: Vec<String> = [own].into_iter().chain(others.iter().map(|path| checksum(Ok(path.clone())))).collect();
    format!("{}-{}", env!("CARGO_PKG_VERSION"), sums.join("-"))
}

/// Now, to the second: `2026-01-31T12:00:00Z`.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("{}Z", DateTime::from_unix_us((seconds * 1_000_000) as i64))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn one_line(path: &str) -> Option<String> {
    Some(read(path).trim().to_string()).filter(|text| !text.is_empty())
}

fn kernel() -> String {
    let (name, release) = (one_line("/proc/sys/kernel/ostype"), one_line("/proc/sys/kernel/osrelease"));
    let name = name.unwrap_or_else(|| std::env::consts::OS.to_string());
    format!("{name} {} {}", release.unwrap_or(UNKNOWN.into()), std::env::consts::ARCH)
}

/// The model that `/proc/cpuinfo` names; for a processor without a name, its architecture.
fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.trim_start().strip_prefix(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_string(), |model| model.trim().to_string())
}

/// The file system of a folder that may not be there yet.
fn file_system_of(dir: &Path) -> String {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.into());
    let real = absolute.ancestors().find_map(|path| path.canonicalize().ok());
    real.and_then(|path| file_system(&read("/proc/self/mountinfo"), &path)).unwrap_or(UNKNOWN.into())
}

/// The kind of file system that is mounted at a path or nearest above it: of several at the same path the last one.
fn file_system(mountinfo: &str, path: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        Some((unescaped(before.split(' ').nth(4)?), after.split(' ').next()?))
    });
    let above = mounts.filter(|(place, _)| path.starts_with(place));
    above.max_by_key(|(place, _)| Path::new(place).components().count()).map(|(_, kind)| kind.to_string())
}

/// A path of the kernel's table, where blanks and the like are octal numbers behind a backslash.
fn unescaped(text: &str) -> String {
    let mut pieces = text.split('\\');
    let mut path = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        match piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => path.extend([char::from(byte)].into_iter().chain(piece[3..].chars())),
            None => path.extend(['\\'].into_iter().chain(piece.chars())),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_says_which_file_system_it_is() {
        let table = "22 1 254:1 / / rw,relatime - ext4 /dev/root rw\n\
                     30 22 0:26 / /srv/data\\040base rw shared:1 - xfs /dev/sdb rw\n\
                     31 22 0:27 / /tmp rw - ext4 /dev/sdc rw\n\
                     32 22 0:28 / /tmp rw - tmpfs tmpfs rw\n";
        for (path, kind) in [
            ("/", "ext4"),
            ("/srv", "ext4"),
            ("/srv/data base/db", "xfs"),
            ("/srv/data base 2", "ext4"),
            ("/tmp", "tmpfs"),
            ("/tmpfiles", "ext4"),
        ] {
            assert_eq!(file_system(table, Path::new(path)).as_deref(), Some(kind), "{path}");
        }
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn a_processor_has_its_name_or_that_of_its_architecture() {
        let named = "processor\t: 0\nmodel name\t: A Processor 9000 @ 2.00GHz\nmodel\t\t: 1\n";
        assert_eq!(processor(named), "A Processor 9000 @ 2.00GHz");
        assert_eq!(processor("processor\t: 0\nBogoMIPS\t: 50.00\n"), std::env::consts::ARCH);
    }

    #[test]
    fn every_result_has_the_same_names() {
        let names = |dir| environment(dir).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let all = ["date", "host", "processor", "processors", "kernel", "file_system", "build"];
        assert_eq!(names(None), all);
        assert_eq!(names(Some(Path::new("not there"))), all);
        assert!(environment(None).iter().all(|(_, value)| !value.is_empty()));
        let date = date();
        assert!(date.len() == 20 && date.ends_with('Z') && date.as_bytes()[10] == b'T', "{date}");
    }
}
