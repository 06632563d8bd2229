//! A command whose output is read while it runs.
//!
//! Rules
//! 1. A request to stop this process ends the command within a fraction of a second, whether it prints or not.
//! 2. The command is in a separate process group: Ctrl-C on the terminal reaches it only through this process.
//! 3. The command has ended when the call returns.

use highwater_bench::interrupt;
use highwater_bench::{Error, Result};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Between two looks for a request to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Ends the command when it is no longer waited for.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Usually it has ended, and there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command, hands each line of its output to `line` as it comes, and returns the whole output.
///
/// # Errors
/// [`Error::Server`] with what the command said when it fails; [`Error::Interrupted`].
pub(super) fn run(mut command: Command, line: &mut dyn FnMut(&str)) -> Result<String> {
    let program = PathBuf::from(command.get_program());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut process = Process(command.spawn().map_err(|e| Error::file(&program, e))?);
    let errors = process.0.stderr.take().map(|pipe| std::thread::spawn(move || read_all(pipe)));
    let lines = process.0.stdout.take().map(lines);
    let mut text = String::new();
    while let Some(lines) = &lines {
        match lines.recv_timeout(LOOK) {
            Ok(found) => {
                line(&found);
                text.push_str(&found);
                text.push('\n');
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        interrupt::check()?;
    }
    let status = process.0.wait().map_err(|e| Error::file(&program, e))?;
    let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if status.success() { Ok(text) } else { Err(failed(&program.display().to_string(), &text, &errors)) }
}

/// Lines of a pipe, read by a thread that ends with the pipe.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(pipe).lines().map_while(|line| line.ok());
        lines.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
    });
    receiver
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is still worth showing.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The lines that report an error; all lines if there is none.
fn failed(program: &str, output: &str, errors: &str) -> Error {
    let lines: Vec<&str> = output.lines().chain(errors.lines()).filter(|line| !line.trim().is_empty()).collect();
    let wrong: Vec<&str> = lines.iter().copied().filter(|l| l.contains("FATAL") || l.contains("rror")).collect();
    let said = if wrong.is_empty() { lines } else { wrong };
    Error::Server(format!("{program} failed:\n{}", said[said.len().saturating_sub(8)..].join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_come_one_by_one_and_all_together() {
        let mut seen = Vec::new();
        let text = run(shell("echo a; echo b"), &mut |line| seen.push(line.to_string())).unwrap();
        assert_eq!((text.as_str(), seen.join("+").as_str()), ("a\nb\n", "a+b"));
    }

    #[test]
    fn a_failure_quotes_what_was_said() {
        let error = run(shell("echo fine; echo 'FATAL: no server' >&2; exit 1"), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("FATAL: no server") && !error.contains("fine"), "{error}");
    }
}
