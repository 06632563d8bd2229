//! Ends a server when this process dies: a small shell, in a process group of its own, that outlives us.
//!
//! Rules
//! 1. The shell reads from a pipe what has been set up, a line each. The end of the pipe means that we died: it kills the
//!    server, removes the folder of its socket and its memory group.
//! 2. The server tells the guard its own number before it becomes the server, so that there is no moment when it runs and the
//!    guard does not know it. It does not keep the pipe.
//! 3. A process is known by number and start time: a number that was given to another process since is left alone.
//! 4. The line `done` lets the shell go without doing anything.

use highwater_bench::{Error, Result};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = r#"
started() {
  { read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${stat##*) }
  echo "${20}"
}
pid= start= folder= group=
while IFS=' ' read -r word value; do
  case $word in
    server) pid=$value; start=$(started "$pid") ;;
    folder) folder=$value ;;
    group) group=$value ;;
    done) exit 0 ;;
  esac
done
if [ -n "$start" ] && [ "$(started "$pid")" = "$start" ]; then
  kill -9 "$pid"
  tries=0
  while [ $tries -lt 100 ] && [ "$(started "$pid")" = "$start" ]; do sleep 0.1; tries=$((tries + 1)); done
fi
case $folder in */highwater-*) rm -rf "$folder" ;; esac
[ -n "$group" ] && rmdir "$group"
exit 0
"#;

/// Becomes the server: tells the guard, enters the memory group, lets the pipe go.
const BECOME: &str = r#"
echo "server $$" >&0 || exit 126
if [ -n "$HIGHWATER_GROUP" ]; then echo $$ > "$HIGHWATER_GROUP/cgroup.procs" || exit 126; fi
unset HIGHWATER_GROUP
exec "$@" < /dev/null
"#;

/// The shell.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
}

impl Guard {
    /// Starts it.
    pub(super) fn new() -> Result<Guard> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn().map_err(|e| Error::file("/bin/sh", e))?;
        Ok(Guard { child })
    }

    /// The folder of the server's socket; its name begins with `highwater-`.
    pub(super) fn holds_folder(&mut self, folder: &Path) -> Result<()> {
        self.say(&format!("folder {}\n", folder.display()))
    }

    /// A command that runs `program` under this guard, in the memory group if there is one. The caller adds arguments.
    pub(super) fn command(&mut self, program: &Path, group: Option<&Path>) -> Result<Command> {
        if let Some(group) = group {
            self.say(&format!("group {}\n", group.display()))?;
        }
        let pipe = self.child.stdin.as_ref().ok_or_else(gone)?.as_fd().try_clone_to_owned();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BECOME, "server"]).arg(program);
        command.stdin(Stdio::from(pipe.map_err(|e| Error::file("a pipe", e))?));
        // Ctrl-C on the terminal is for us; the server hears of it from us.
        command.process_group(0).env("HIGHWATER_GROUP", group.map(Path::as_os_str).unwrap_or_default());
        Ok(command)
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let pipe = self.child.stdin.as_mut().ok_or_else(gone)?;
        pipe.write_all(line.as_bytes()).map_err(|e| Error::file("the pipe to the clean-up shell", e))
    }

    /// Everything has ended by itself.
    pub(super) fn finish(&mut self) {
        let _ = self.say("done\n");
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn gone() -> Error {
    Error::Server("the clean-up shell has ended".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn sleeper(guard: &mut Guard) -> Child {
        guard.command(Path::new("/bin/sleep"), None).unwrap().arg("300").spawn().unwrap()
    }

    fn ends(child: &mut Child, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// The end of the pipe is what our death looks like to the guard.
    #[test]
    fn the_end_of_the_pipe_kills_the_server_and_removes_its_folder() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("highwater-run");
        std::fs::create_dir(&folder).unwrap();
        let mut guard = Guard::new().unwrap();
        guard.holds_folder(&folder).unwrap();
        let mut server = sleeper(&mut guard);
        assert!(!ends(&mut server, Duration::from_millis(300)), "the server ended by itself");
        drop(guard.child.stdin.take());
        assert!(ends(&mut server, Duration::from_secs(5)), "the server lives on");
        guard.child.wait().unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn done_leaves_everything_alone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("highwater-run");
        std::fs::create_dir(&folder).unwrap();
        let mut guard = Guard::new().unwrap();
        guard.holds_folder(&folder).unwrap();
        let mut server = sleeper(&mut guard);
        std::thread::sleep(Duration::from_millis(200));
        guard.finish();
        assert!(!ends(&mut server, Duration::from_millis(300)));
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(folder.exists());
    }

    /// Only folders of ours are ever removed.
    #[test]
    fn a_folder_of_another_name_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let mut guard = Guard::new().unwrap();
        guard.holds_folder(parent.path()).unwrap();
        drop(guard.child.stdin.take());
        guard.child.wait().unwrap();
        assert!(parent.path().exists());
    }
}
