//! Cleans up after a crash of this process: a small shell, in a process group of its own, that outlives us.
//!
//! Rules
//! 1. The shell reads from a pipe what has been set up, a line each. The end of the pipe means that we died: it undoes everything, newest first.
//! 2. A line `gone WHAT` takes one thing off; `done` lets the shell go without doing anything.
//! 3. The pipe does not end while a thread of ours waits for the very file system that we served: it keeps our files open and waits for an answer that
//!    nobody gives any more. So the shell also looks, once a second, whether we are dying, and then ends the FUSE connection by force, which lets
//!    such threads go.
//! 4. Only the very things named are undone: one mount point, one loop device.

use crate::error::{DeviceError, Result};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// What is set up and must be undone, in the order of undoing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A file system on a mount point.
    Mount,
    /// A loop device.
    Loop,
    /// A FUSE mount.
    Fuse,
    /// A folder of ours.
    Folder,
}

impl Thing {
    fn name(self) -> &'static str {
        match self {
            Thing::Mount => "mount",
            Thing::Loop => "loop",
            Thing::Fuse => "fuse",
            Thing::Folder => "folder",
        }
    }
}

const SCRIPT: &str = r#"
owner=$1 mount= loop= fuse= folder= watcher=
PATH=$PATH:/usr/sbin:/sbin
# Signal 9 is bit 8 of the pending ones.
is_dying() { grep -Eq '^(State:[[:space:]]*[ZX]|SigPnd:.*[13579bdf]..$)' "/proc/$owner/status"; }
watch() {
  while sleep 1; do
    is_dying && umount -f "$1"
  done
}
leave() {
  [ -n "$watcher" ] && kill "$watcher"
  exit 0
}
while IFS=' ' read -r word value; do
  case $word in
    mount) mount=$value ;;
    loop) loop=$value ;;
    fuse) fuse=$value; watch "$value" & watcher=$! ;;
    folder) folder=$value ;;
    gone) eval "$value=" ;;
    done) leave ;;
  esac
done
[ -n "$fuse" ] && umount -l "$fuse"
[ -n "$mount" ] && { umount "$mount" || umount -l "$mount"; }
[ -n "$loop" ] && losetup -d "$loop"
[ -n "$folder" ] && rmdir "$folder/fuse" "$folder"
leave
"#;

/// The shell.
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Starts it.
    pub fn new() -> Result<Guard> {
        let mut command = Command::new("/bin/sh");
        let owner = std::process::id().to_string();
        command
            .args(["-c", SCRIPT, "highwater-guard", &owner])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.process_group(0).spawn();
        Ok(Guard { child: child.map_err(|e| DeviceError::io("starting /bin/sh", e))? })
    }

    /// From now on, `thing` of that name must be undone if we die. Names hold no line breaks.
    pub fn holds(&mut self, thing: Thing, name: &str) -> Result<()> {
        self.say(&format!("{} {name}\n", thing.name()))
    }

    /// It has been undone.
    pub fn gone(&mut self, thing: Thing) -> Result<()> {
        self.say(&format!("gone {}\n", thing.name()))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let pipe = self.child.stdin.as_mut();
        let said = pipe.map_or(Ok(()), |pipe| pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()));
        said.map_err(|e| DeviceError::io("writing to the clean-up shell", e))
    }

    /// All is undone; the shell ends.
    pub fn finish(mut self) {
        let _ = self.say("done\n");
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the pipe removes the folder; `done` leaves it.
    #[test]
    fn only_an_unexpected_end_is_cleaned_up() {
        for finished in [true, false] {
            let parent = tempfile::tempdir().unwrap();
            let folder = parent.path().join("run");
            std::fs::create_dir_all(folder.join("fuse")).unwrap();
            let mut guard = Guard::new().unwrap();
            guard.holds(Thing::Folder, folder.to_str().unwrap()).unwrap();
            if finished {
                guard.finish();
            } else {
                drop(guard.child.stdin.take());
                guard.child.wait().unwrap();
            }
            assert_eq!(folder.exists(), finished);
        }
    }

    #[test]
    fn what_is_gone_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        std::fs::create_dir_all(folder.join("fuse")).unwrap();
        let mut guard = Guard::new().unwrap();
        guard.holds(Thing::Folder, folder.to_str().unwrap()).unwrap();
        guard.gone(Thing::Folder).unwrap();
        drop(guard.child.stdin.take());
        guard.child.wait().unwrap();
        assert!(folder.exists());
    }
}
