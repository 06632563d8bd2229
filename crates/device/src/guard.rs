//! Removal of mounts, loop devices and folders after a crash of this process, by a shell in a separate process group
//! that outlives this process.
//!
//! Rules
//! 1. The shell reads from a pipe what has been set up, one thing on each line. The end of the pipe means that this
//!    process died: the shell undoes everything.
//! 2. A line `gone WHAT` removes one thing from the list; `done` ends the shell, which undoes nothing.
//! 3. The pipe does not end while a thread of this process waits for the file system that the process itself serves: a
//!    dying process keeps its files open until that thread gets an answer. So the shell also checks, once a second,
//!    whether this process is dying, and then aborts the FUSE connection, which fails the requests of such threads.
//! 4. Only the things named are undone. A folder is removed with its contents only if its name begins with
//!    `highwater-`.
//! 5. A server's process sends its process number to the shell before it executes the server, so the shell knows every
//!    server that runs. It closes the pipe. If the number was reused by another process since, the start time differs,
//!    and that process is not killed.

use std::ffi::OsStr;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A thing that is set up and must be undone. A guard holds at most one of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// A file system on a mount point.
    Mount,
    /// A loop device.
    Loop,
    /// A FUSE mount.
    Fuse,
    /// A folder in which an empty folder `fuse` is left.
    FuseFolder,
    /// A folder with everything in it; its name begins with `highwater-`.
    Folder,
    /// A memory control group.
    Group,
}

highwater_storage::names!(Guarded {
    Mount => "mount",
    Loop => "loop",
    Fuse => "fuse",
    FuseFolder => "fuse_folder",
    Folder => "folder",
    Group => "group",
});

const SCRIPT: &str = include_str!("guard.sh");

/// Executes the server, after it has told the shell, entered the memory group and closed the pipe.
const BECOME: &str = r#"
echo "server $$" >&0 || exit 126
if [ -n "$HIGHWATER_GROUP" ]; then echo $$ > "$HIGHWATER_GROUP/cgroup.procs" || exit 126; fi
unset HIGHWATER_GROUP
exec "$@" < /dev/null
"#;

/// The shell.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Starts the shell.
    ///
    /// # Errors
    /// There is no `/bin/sh`, or no process can be started.
    pub fn new() -> Result<Guard> {
        let owner = std::process::id().to_string();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "highwater-guard", &owner]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Guard { child: command.process_group(0).spawn()? })
    }

    /// Adds a thing that the shell undoes if this process dies. Names have no line breaks.
    ///
    /// # Errors
    /// The shell has ended.
    pub fn holds(&mut self, thing: Guarded, name: impl AsRef<OsStr>) -> Result<()> {
        self.send(&format!("{} {}\n", thing.name(), Path::new(&name).display()))
    }

    /// Removes `thing` from the list: it has been undone.
    ///
    /// # Errors
    /// The shell has ended.
    pub fn gone(&mut self, thing: Guarded) -> Result<()> {
        self.send(&format!("gone {}\n", thing.name()))
    }

    /// A command that runs `program` under this guard, in the memory group if there is one. The caller adds arguments.
    ///
    /// # Errors
    /// The shell has ended.
    pub fn command(&mut self, program: &Path, group: Option<&Path>) -> Result<Command> {
        if let Some(group) = group {
            self.holds(Guarded::Group, group)?;
        }
        let pipe = self.child.stdin.as_ref().ok_or_else(ended)?.as_fd().try_clone_to_owned()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BECOME, "server"]).arg(program).stdin(Stdio::from(pipe));
        // Ctrl-C on the terminal goes to us only; we end the server.
        command.process_group(0).env("HIGHWATER_GROUP", group.map(Path::as_os_str).unwrap_or_default());
        Ok(command)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        self.child.stdin.as_mut().ok_or_else(ended)?.write_all(line.as_bytes())
    }

    /// Ends the shell; everything has been undone.
    pub fn finish(&mut self) {
        let _ = self.send("done\n");
        self.end();
    }

    /// Ends the pipe and waits for the shell.
    fn end(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::BrokenPipe, "the clean-up shell has ended")
}

#[cfg(test)]
#[path = "guard_test.rs"]
mod tests;
