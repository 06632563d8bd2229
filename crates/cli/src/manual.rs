//! `highwater completions SHELL` and `highwater man [COMMAND...]`: what a package installs beside the program.
//!
//! Rule: both are made of the definition of the command line, so they never differ from it.

use crate::CommandLine;
use crate::failure::Failure;
use crate::output::Lines;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

const NAME: &str = "highwater";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  highwater completions bash > /etc/bash_completion.d/highwater
  highwater completions zsh > \"${fpath[1]}/_highwater\"
  highwater completions fish > ~/.config/fish/completions/highwater.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  highwater man > /usr/local/share/man/man1/highwater.1
  highwater man inspect page | man -l -";

/// Print a script with which a command shell completes commands and options
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a manual page, for `man`
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// A command, as it is typed; without one the page of the whole program
    command: Vec<String>,
}

/// Runs `completions`.
///
/// # Errors
/// None: a failure of stdout is reported at the end.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), NAME, &mut script);
    print(&script);
    Ok(())
}

/// Runs `man`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such command.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let page = page(&args.command).map_err(Failure::Usage)?;
    print(&page);
    Ok(())
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

    /// Every command has a page, which names it.
    #[test]
    fn each_command_has_a_page() {
        fn check(command: &Command, path: &mut Vec<String>) -> usize {
            let page = String::from_utf8(page(path).unwrap()).unwrap();
            let title = [&[NAME.to_string()][..], path].concat().join("-");
            assert!(page.contains(&format!(".TH {title} 1")), "{title}: {page}");
            assert!(page.contains(".SH SYNOPSIS"), "{title}");
            let mut pages = 1;
            for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
                path.push(below.get_name().to_string());
                pages += check(below, path);
                path.pop();
            }
            pages
        }
        let pages = check(&CommandLine::command(), &mut Vec::new());
        assert!(pages > 20, "{pages} pages");
        let missing = page(&["inspect".to_string(), "everything".to_string()]).unwrap_err();
        assert_eq!(missing, "there is no command \"everything\" of highwater inspect");
    }
}
