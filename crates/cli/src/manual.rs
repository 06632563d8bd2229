//! `highwater completions SHELL`, `highwater man [COMMAND...]` and `highwater man --all-to DIR`: the files that a
//! package installs in addition to the program.
//!
//! Rule: both are generated from the definition of the command line.

use crate::CommandLine;
use crate::failure::Failure;
use crate::output::{Lines, write_file};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::PathBuf;

const NAME: &str = "highwater";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  highwater completions bash > /etc/bash_completion.d/highwater
  highwater completions zsh > \"${fpath[1]}/_highwater\"
  highwater completions fish > ~/.config/fish/completions/highwater.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  highwater man > /usr/local/share/man/man1/highwater.1
  highwater man inspect page | man -l -
  highwater man --all-to /usr/local/share/man/man1";

/// Print a script with which a command shell completes commands and options
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a manual page, for `man`
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// A command, as it is typed; without one the page of the whole program
    command: Vec<String>,
    /// Write the pages of the program and of every command into this folder, which is there
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all_to: Option<PathBuf>,
}

/// Runs `completions`.
///
/// # Errors
/// None: a failure of stdout is reported at the end.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), NAME, &mut script);
    print(&script);
    Ok(())
}

/// Runs `man`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such command. [`Failure::Failed`]: a file cannot be written.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    if let Some(dir) = &args.all_to {
        return pages().into_iter().try_for_each(|path| {
            let file = dir.join(format!("{}.1", title(&path)));
            write_file(&file, &String::from_utf8_lossy(&page(&path).map_err(Failure::Usage)?))
        });
    }
    let page = page(&args.command).map_err(Failure::Usage)?;
    print(&page);
    Ok(())
}

/// The name of a page.
fn title(path: &[String]) -> String {
    [&[NAME.to_string()][..], path].concat().join("-")
}

/// Every command, as it is typed, and first the program, which is typed without one.
fn pages() -> Vec<Vec<String>> {
    fn add(command: &Command, path: &[String], pages: &mut Vec<Vec<String>>) {
        pages.push(path.to_vec());
        let shown = command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set());
        shown.for_each(|below| add(below, &[path, &[below.get_name().to_string()]].concat(), pages));
    }
    let (mut command, mut pages) = (CommandLine::command(), Vec::new());
    command.build();
    add(&command, &[], &mut pages);
    pages
}

/// The manual page of a command of the program, or of the program.
fn page(path: &[String]) -> Result<Vec<u8>, String> {
    let mut command = CommandLine::command();
    command.build();
    let (mut found, mut name) = (&command, NAME.to_string());
    for word in path {
        let missing = || format!("there is no command {word:?} of {}", name.replace('-', " "));
        found = found.find_subcommand(word).ok_or_else(missing)?;
        name = format!("{name}-{}", found.get_name());
    }
    // The title of the page.
    let command: Command = found.clone().name(name);
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| error.to_string())?;
    Ok(page)
}

fn print(text: &[u8]) {
    Lines { stdout_taken: false }.write(String::from_utf8_lossy(text).trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each page names its command.
    #[test]
    fn each_command_has_a_page() {
        let pages = pages();
        for path in &pages {
            let (page, title) = (String::from_utf8(page(path).unwrap()).unwrap(), title(path));
            assert!(page.contains(&format!(".TH {title} 1")), "{title}: {page}");
            assert!(page.contains(".SH SYNOPSIS"), "{title}");
        }
        assert!(pages.len() > 20 && pages.contains(&vec!["bench".to_string(), "tpcc".to_string()]), "{pages:?}");
        let missing = page(&["inspect".to_string(), "everything".to_string()]).unwrap_err();
        assert_eq!(missing, "there is no command \"everything\" of highwater inspect");
    }
}
