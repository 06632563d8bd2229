//! The engine's options on the command line, generated from the engine's table of options. InnoDB's names are
//! understood and not shown.

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use highwater::config::{InnodbName, OPTION_TABLE, OptionInfo};
use highwater::{Database, Error, Options};
use std::path::Path;

/// Options that no command takes: the commands themselves know whether they create a database.
const HIDDEN: &[&str] = &["create_if_missing"];

/// The engine's options that the command line sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineOptions {
    given: Vec<(&'static str, String)>,
}

impl EngineOptions {
    /// The engine's options: its defaults, then `defaults` of the command, then what was given.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a value that is not allowed.
    pub(crate) fn options(&self, defaults: &[(&str, &str)]) -> Result<Options, Error> {
        let mut options = Options::default();
        for (name, value) in defaults {
            options.set(name, value)?;
        }
        for (name, value) in &self.given {
            options.set(name, value)?;
        }
        Ok(options)
    }

    /// Whether the command line sets this option.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(one, _)| *one == name)
    }

    /// Names of the given options.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.given.iter().map(|(name, _)| *name)
    }

    /// The given way of buffering changes; without the option, the ways in rotation by the `number` of the run.
    pub(crate) fn rotated_buffering(&self, number: u64) -> &str {
        self.given("change_buffering").unwrap_or(["memory", "disk", "memory", "off"][number as usize % 4])
    }

    /// The page store and its compression, chosen likewise.
    pub(crate) fn rotated_store(&self, number: u64) -> (&str, &str) {
        let turn = number as usize % 3;
        match (self.given("page_store"), self.given("page_compression")) {
            (None, None) => [("in-place", "off"), ("out-of-place", "lz4"), ("out-of-place", "zstd")][turn],
            (Some("out-of-place"), None) => ("out-of-place", ["off", "lz4", "zstd"][turn]),
            (store, compression) => (store.unwrap_or("out-of-place"), compression.unwrap_or("off")),
        }
    }

    /// The protection of pages in place, chosen likewise.
    pub(crate) fn rotated_protection(&self, number: u64) -> &str {
        self.given("doublewrite").unwrap_or(["on", "journal"][number as usize / 3 % 2])
    }

    /// The given value of an option.
    fn given(&self, option: &str) -> Option<&str> {
        self.given.iter().find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// Refuses given values that differ from what was fixed when the database was created. (The page size is compared
    /// when it is opened.)
    ///
    /// # Errors
    /// [`Error::BadOption`] names both values.
    pub(crate) fn must_agree_with(&self, database: &Database) -> Result<(), Error> {
        let (asked, found) = (self.options(&[])?, database.options());
        let bytes = |bytes: u64| format!("{bytes} bytes");
        let fixed = [
            ("page_store", asked.page_store.name().into(), found.page_store.name().into()),
            ("segment_size", bytes(asked.segment_size), bytes(found.segment_size)),
        ];
        let Some((name, asked, found)) =
            fixed.into_iter().find(|(name, asked, found)| self.has(name) && asked != "auto" && asked != found)
        else {
            return Ok(());
        };
        let reason = format!(
            "{asked} asked for, but the database was created with {found}; leave the option out or create a new \
             database"
        );
        Err(Error::BadOption { option: name.replace('_', "-"), reason })
    }

    /// Opens the database in `dir`, or creates it if the options say so, with the command's `defaults` and the given
    /// options.
    ///
    /// # Errors
    /// Those of [`options`](Self::options), of [`Database::open`] and of [`must_agree_with`](Self::must_agree_with).
    pub(crate) fn open(
        &self,
        dir: &Path,
        defaults: &[(&str, &str)],
        create_if_missing: bool,
    ) -> Result<Database, Error> {
        self.agreeing(Database::open(dir, Options { create_if_missing, ..self.options(defaults)? })?)
    }

    /// As [`open`](Self::open), for a database that is only looked at: its files are not written.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_read_only(&self, dir: &Path) -> Result<Database, Error> {
        self.agreeing(Database::open_read_only(dir, self.options(&[])?)?)
    }

    fn agreeing(&self, database: Database) -> Result<Database, Error> {
        match self.must_agree_with(&database) {
            Ok(()) => {
                tell_recovery(&database);
                Ok(database)
            }
            Err(error) => database.close().and(Err(error)),
        }
    }

    /// The given options as arguments for another process.
    pub(crate) fn as_arguments(&self) -> impl Iterator<Item = String> + '_ {
        self.given.iter().map(|(name, value)| format!("--{}={value}", name.replace('_', "-")))
    }
}

/// A line about what the opening recovered, if it did.
pub(crate) fn tell_recovery(database: &Database) {
    let place = if database.storage().is_read_only() { "; in memory, the files stay as they are" } else { "" };
    if let Some(report) = database.recovery_report() {
        tell!("The database had not been closed: {report}{place}");
    }
}

#[cfg(test)]
impl EngineOptions {
    /// As if these had been given.
    pub(crate) fn with(options: &[(&'static str, &str)]) -> EngineOptions {
        EngineOptions { given: options.iter().map(|(name, value)| (*name, value.to_string())).collect() }
    }
}

fn engine_options() -> impl Iterator<Item = &'static OptionInfo> {
    OPTION_TABLE.iter().filter(|option| !HIDDEN.contains(&option.name))
}

fn argument(option: &'static OptionInfo) -> Arg {
    let default = if option.default.is_empty() { String::new() } else { format!(" [default: {}]", option.default) };
    let dynamic = if option.is_dynamic { " [can be changed while the database is open]" } else { "" };
    let doc = option.doc.trim_end_matches('.').replace("\n ", " ");
    let innodb = option.innodb_names().flat_map(|name| [name.replace('_', "-"), name]);
    Arg::new(option.name)
        .long(option.name.replace('_', "-"))
        .alias(option.name)
        .aliases(innodb)
        .value_name("VALUE")
        .value_parser(NonEmptyStringValueParser::new())
        .help(format!("{doc}{default} [accepts: {}]{dynamic}", option.accepts))
        .help_heading("Engine options (sizes may be written 128M or 1GiB)")
}

/// InnoDB's names of an option whose values are in another unit, so that an alias is not possible.
fn in_other_units(option: &'static OptionInfo) -> impl Iterator<Item = (String, &'static InnodbName)> {
    option.innodb.iter().filter(|name| name.unit != 1).map(|name| (format!("innodb_{}", name.name), name))
}

fn hidden_argument(option: &'static OptionInfo, id: String, name: &'static InnodbName) -> Arg {
    Arg::new(id.clone())
        .long(id.replace('_', "-"))
        .alias(id)
        .value_name("VALUE")
        .value_parser(move |text: &str| name.in_our_unit(text))
        .conflicts_with(option.name)
        .hide(true)
}

impl Args for EngineOptions {
    fn augment_args(command: Command) -> Command {
        engine_options().fold(command, |command, option| {
            let hidden = in_other_units(option).map(|(id, name)| hidden_argument(option, id, name));
            command.arg(argument(option)).args(hidden)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EngineOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |id: &str| matches.get_one::<String>(id).cloned();
        let value = |option: &'static OptionInfo| {
            given(option.name).or_else(|| in_other_units(option).find_map(|(id, _)| given(&id)))
        };
        Ok(EngineOptions { given: engine_options().filter_map(|option| Some((option.name, value(option)?))).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A count or a size such as `128M`, for commands' own options.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    highwater::config::parse_size(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<EngineOptions, String> {
        let command = EngineOptions::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        EngineOptions::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn names_of_innodb_are_understood_and_not_shown() {
        let line = "--innodb-buffer-pool-size 64M --innodb_redo_log_capacity=32M --innodb-lock-wait-timeout 50";
        let options = given(line).and_then(|given| given.options(&[]).map_err(|error| error.to_string())).unwrap();
        assert_eq!((options.buffer_pool_size, options.log_file_size), (64 << 20, 32 << 20));
        assert_eq!(options.lock_wait_timeout_ms, 50_000);
        let both = given("--innodb_lock_wait_timeout 5 --lock-wait-timeout-ms 5").unwrap_err();
        assert!(both.contains("cannot be used with"), "{both}");
        assert!(given("--innodb_lock_wait_timeout soon").unwrap_err().contains("is not a number"));
        let help = EngineOptions::augment_args(Command::new("x")).render_long_help().to_string();
        assert!(help.contains("--buffer-pool-size") && !help.contains("--innodb"), "{help}");
    }
}
