//! What the mount needs of the host: root, FUSE, and the programs that make loop devices and file systems.

use crate::error::{DeviceError, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// An error that says what is missing, if the host cannot mount.
pub fn check(programs: &[&str]) -> Result<()> {
    if !is_root() {
        return Err(DeviceError::Host(
            "mounting needs root: loop devices and file systems belong to the system".into(),
        ));
    }
    for node in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(node).exists() {
            return Err(DeviceError::Host(format!("{node} is missing: the kernel has no FUSE or no loop devices")));
        }
    }
    for program in programs {
        if !is_installed(program) {
            return Err(DeviceError::Host(format!("the program {program} is not installed (util-linux, e2fsprogs)")));
        }
    }
    Ok(())
}

/// Whether the process runs as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// Folders of system programs, which a user's PATH may lack.
const SYSTEM_FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

fn search_path() -> String {
    format!("{}:{SYSTEM_FOLDERS}", std::env::var("PATH").unwrap_or_default())
}

/// Whether a program can be found.
pub fn is_installed(program: &str) -> bool {
    search_path().split(':').filter(|f| !f.is_empty()).any(|folder| Path::new(folder).join(program).is_file())
}

/// Runs a program; its output, or an error with what it said.
pub fn run(program: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).env("PATH", search_path()).stdin(Stdio::null());
    let output = command.output().map_err(|e| DeviceError::io(format!("running {program}"), e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().replace('\n', "; ");
        return Err(DeviceError::Host(format!("{program} {} failed ({}): {said}", args.join(" "), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_answer_or_explain() {
        assert_eq!(run("echo", &["a", "b"]).unwrap(), "a b");
        let error = run("ls", &["/no/such/folder"]).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder"), "{error}");
        assert!(run("no-such-program", &[]).unwrap_err().to_string().contains("no-such-program"));
        assert!(is_installed("sh") && !is_installed("no-such-program"));
        assert!(check(&["no-such-program"]).is_err());
    }
}
