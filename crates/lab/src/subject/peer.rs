//! The program `highwater-peers`, which measures one storage engine in a separate process.
//!
//! Rules
//! 1. It is the file that HIGHWATER_PEERS names, or in the folder of this program, or where `cargo xtask peers-build`
//!    puts it: in `peers/release` next to the folder of this program.
//! 2. A measurement is a child process in a memory group. If no group can be created, it runs without one, which the
//!    result records.
//! 3. The child ends with this process, however that ends ([`Guard`]), and on a request to stop.

use super::SubjectKind;
use super::cgroup::MemoryGroup;
use super::install::Missing;
use highwater_bench::peers::{self, Answer, Request};
use highwater_bench::{Error, Result, interrupt};
use highwater_device::guard::Guard;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const PROGRAM: &str = "highwater-peers";

/// Path of the program.
///
/// # Errors
/// The searched paths.
pub fn program() -> std::result::Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("HIGHWATER_PEERS").filter(|name| !name.is_empty()) {
        let path = PathBuf::from(named);
        return if path.is_file() { Ok(path) } else { Err(format!("no {}", path.display())) };
    }
    let own = std::env::current_exe().unwrap_or_default();
    // Tests lie one folder deeper than programs.
    let places = own.ancestors().skip(1).take(3).flat_map(|folder| [folder.join(PROGRAM), folder.join(BUILT)]);
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| format!("no {PROGRAM}"))
}

/// Its path below the folder of the project's builds.
const BUILT: &str = "peers/release/highwater-peers";

/// The version of an engine that it measures.
pub(super) fn version(kind: SubjectKind) -> std::result::Result<String, Missing> {
    let missing = |what: String| Missing { kind, what };
    let program = program().map_err(missing)?;
    let output = Command::new(&program).arg("list").stdin(Stdio::null()).output();
    let output = output.map_err(|e| missing(format!("{}: {e}", program.display())))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(kind.name())?.strip_prefix(' '));
    line.map(Into::into).ok_or_else(|| missing(format!("{} was built without it", program.display())))
}

/// The result of a measurement, and the limit of its memory.
#[derive(Debug)]
pub struct PeerResult {
    /// The answer; `None` if the kernel killed the process at the memory limit of its group.
    pub answer: Option<Answer>,
    /// `192 MiB`, or why there was no limit.
    pub memory_limit: String,
}

/// Takes one measurement; request and answer are kept in `folder`.
///
/// # Errors
/// [`Error::Usage`] when the program is missing; [`Error::Server`] when it fails.
pub fn measure(request: &Request, limit_bytes: Option<u64>, folder: &Path) -> Result<PeerResult> {
    let program = program().map_err(|what| {
        Error::Usage(format!("{what}: the program that measures other engines; build it with cargo xtask peers-build"))
    })?;
    std::fs::create_dir_all(folder).map_err(|e| Error::file(folder, e))?;
    let [asked, answered, said] = ["request.json", "answer.json", "stderr"].map(|name| folder.join(name));
    peers::write(&asked, request)?;
    let (group, memory_limit) = MemoryGroup::where_possible(limit_bytes);
    let no_guard = |e| Error::file("/bin/sh", e);
    let mut guard = Guard::new().map_err(no_guard)?;
    let mut command = guard.command(&program, group.as_ref().map(MemoryGroup::path)).map_err(no_guard)?;
    let stderr = File::create(&said).map_err(|e| Error::file(&said, e))?;
    command.arg("cell").args([&asked, &answered]).stdout(Stdio::null()).stderr(stderr);
    let status = wait(&mut command)?;
    guard.finish();
    let wanted_more = group.as_ref().is_some_and(MemoryGroup::has_ended_a_member);
    drop(group);
    if !status.success() && wanted_more {
        return Ok(PeerResult { answer: None, memory_limit });
    }
    if !status.success() {
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        let last = text.lines().last().unwrap_or("it said nothing");
        let what = format!("{} {} ({status}; memory limit {memory_limit}): {last}", request.subject, PROGRAM);
        return Err(Error::Server(what));
    }
    Ok(PeerResult { answer: Some(peers::read(&answered)?), memory_limit })
}

fn wait(command: &mut Command) -> Result<ExitStatus> {
    let failed = |e| Error::file(PROGRAM, e);
    let mut child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if interrupt::is_requested() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
