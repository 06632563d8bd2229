//! Where in the source an instruction comes from: asked of `nm` and `addr2line`.
//!
//! Rules
//! 1. A function is the engine's if its name has one of the engine's modules in it.
//! 2. Of inlined functions the innermost ones are named whose source is the engine's; the primitives in `sync` only if
//!    there is nothing else.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// In the names of the engine's functions.
const ENGINE: &str = "highwater";
/// In the paths of its source files, and those of its primitives.
const SOURCE: &str = "crates/engine/src/";
const PRIMITIVES: &str = "sync/";
/// How many functions are named, innermost first.
const NAMED: usize = 2;

/// The functions of a program, by address: where each begins, and whether it is the engine's.
#[derive(Debug)]
pub(super) struct Functions(Vec<(u64, bool)>);

impl Functions {
    /// The symbols of a program.
    ///
    /// # Errors
    /// `nm` fails.
    pub(super) fn of(program: &Path) -> Result<Functions, String> {
        let text = output(Command::new("nm").args(["--demangle", "--defined-only", "--numeric-sort"]).arg(program))?;
        Ok(Functions::parse(&text))
    }

    fn parse(text: &str) -> Functions {
        let function = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            let address = u64::from_str_radix(address, 16).ok()?;
            matches!(kind, "t" | "T" | "w" | "W").then(|| (address, name.contains(ENGINE)))
        };
        Functions(text.lines().filter_map(function).collect())
    }

    /// Whether the instruction at `address` is in one of the engine's.
    pub(super) fn is_engine(&self, address: u64) -> bool {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        after > 0 && self.0[after - 1].1
    }
}

/// Names for addresses of instructions, such as `log/space.rs:212 take_at_once, reserve_at_once`.
///
/// # Errors
/// `addr2line` fails.
pub(super) fn name(program: &Path, addresses: &[u64]) -> Result<HashMap<u64, String>, String> {
    let mut command = Command::new("addr2line");
    command.args(["--inlines", "--functions", "--demangle", "--addresses", "-e"]).arg(program);
    command.args(addresses.iter().map(|address| format!("{address:#x}")));
    Ok(parse_names(&output(&mut command)?))
}

/// For each address a line with it, then two for each function, innermost first: name, and file with line.
fn parse_names(text: &str) -> HashMap<u64, String> {
    let mut names = HashMap::new();
    let (mut address, mut frames) = (None, Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        match line.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(next) => address = Some(next),
            None => frames.extend(lines.next().map(|place| (line, place))),
        }
        if lines.peek().is_none_or(|next| next.starts_with("0x")) {
            names.extend(address.take().map(|address| (address, named(&frames))));
            frames.clear();
        }
    }
    names
}

fn named(frames: &[(&str, &str)]) -> String {
    let engines: Vec<(&str, &str)> =
        frames.iter().filter_map(|(function, place)| Some((*function, place.split_once(SOURCE)?.1))).collect();
    let is_primitive = |frame: &&(&str, &str)| frame.1.starts_with(PRIMITIVES);
    let chosen: Vec<&(&str, &str)> = match engines.iter().filter(|frame| !is_primitive(frame)).count() {
        0 => engines.iter().take(NAMED).collect(),
        _ => engines.iter().filter(|frame| !is_primitive(frame)).take(NAMED).collect(),
    };
    let Some((_, place)) = chosen.first() else { return frames.first().map_or("?", |frame| frame.0).to_string() };
    let place = place.split(" (").next().unwrap_or(place);
    let functions: Vec<&str> = chosen.iter().map(|(function, _)| short(function)).collect();
    format!("{place} {}", functions.join(", "))
}

/// A function's own name, without the path before it and the hash after it.
fn short(function: &str) -> &str {
    let parts = function.rsplit("::").filter(|part| *part != "{{closure}}" && *part != "{closure#0}");
    parts
        .filter(|part| !(part.len() == 17 && part.starts_with('h')))
        .map(|part| part.trim_end_matches(">"))
        .next()
        .unwrap_or(function)
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!("{command:?}: {}", output.status)),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_belongs_to_the_function_that_begins_before_it() {
        let functions = Functions::parse(
            "0000000000001000 t <highwater::log::Log>::append\n0000000000002000 T malloc\n0000000000003000 b BYTES\n",
        );
        let engine = [0xfff, 0x1000, 0x1fff, 0x2000, 0x3000].map(|address| functions.is_engine(address));
        assert_eq!(engine, [false, true, true, false, false]);
    }

    #[test]
    fn the_innermost_functions_of_the_engine_are_named() {
        let text = "0x0000000000000010\n\
            core::sync::atomic::atomic_add::h0123456789abcdef\n/rust/core/src/sync/atomic.rs:3000\n\
            highwater::sync::spread::Counter::add\n/x/crates/engine/src/sync/spread.rs:5\n\
            highwater::log::space::Space::take_at_once::h0123456789abcdef\n\
            /x/crates/engine/src/log/space.rs:212 (discriminator 3)\n\
            highwater::log::space::<impl highwater::log::Log>::reserve\n/x/crates/engine/src/log/space.rs:110\n\
            0x0000000000000020\nmain\n/x/crates/cli/src/main.rs:1\n";
        let names = parse_names(text);
        assert_eq!(names[&0x10], "log/space.rs:212 take_at_once, reserve");
        assert_eq!(names[&0x20], "main");
    }
}
