//! `highwater rotate-key`: changes the user's key of an encrypted database.
//!
//! Rule: the database is not opened, and no page is read or written. Only the file `keys`, which the user's key opens,
//! is replaced.

use crate::failure::Failure;
use crate::output::Lines;
use clap::Args;
use highwater::Options;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  head -c 32 /dev/urandom > new.key && chmod 600 new.key
  highwater rotate-key /srv/shop --key-file old.key --new-key-file new.key

This takes a moment, whatever the size of the database. If it is killed, or the power fails, one of the two keys opens
the database, and the same command can be repeated. A program that has the database open calls Database::rotate_key.
A backup, or an archive that no database writes, has its key changed in the same way: name its folder. Other copies
that were made before need the old key.
Exit status: 0 done; 1 an error; 2 the command line is wrong, or a key does not fit.";

/// Give an encrypted database another key
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RotateKeyArgs {
    /// Folder of the database, or of a backup or an archive of redo
    dir: PathBuf,
    /// File with the key that opens it now
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// File with the key that is to open it
    #[arg(long, value_name = "FILE")]
    new_key_file: PathBuf,
}

/// Runs `rotate-key`.
///
/// # Errors
/// That of the engine.
pub(crate) fn run(args: &RotateKeyArgs) -> Result<(), Failure> {
    let read = |file: &PathBuf| Options { key_file: Some(file.clone()), ..Options::default() }.read_key();
    if let (Some(old), Some(new)) = (read(&args.key_file)?, read(&args.new_key_file)?) {
        highwater::rotate_key(&args.dir, &old, &new)?;
    }
    Lines { stdout_taken: false }.write(&format!(
        "the key in {} opens {} now",
        args.new_key_file.display(),
        args.dir.display()
    ));
    Ok(())
}
