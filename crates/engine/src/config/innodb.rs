//! InnoDB's names of options.
//!
//! Rules
//! 1. `innodb_` and an option's name is that option. If InnoDB's name differs, the table of options has it as a
//!    synonym.
//! 2. If InnoDB's unit differs, a value under InnoDB's name is in InnoDB's unit.
//! 3. Messages use Highwater's name only.

use super::{OPTION_TABLE, OptionInfo, option_name, parse_size};
use crate::error::{Error, Result};
use std::borrow::Cow;

const PREFIX: &str = "innodb_";

/// A name that InnoDB has for an option, where it is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnodbName {
    /// The name, without `innodb_`.
    pub name: &'static str,
    /// How many of the option's units one of InnoDB's is.
    pub unit: u64,
}

impl InnodbName {
    /// A value that is in InnoDB's unit, as the option takes it.
    ///
    /// # Errors
    /// What is wrong with it, where the units differ: it is not a number, or too large a one.
    pub fn in_our_unit(&self, value: &str) -> std::result::Result<String, String> {
        if self.unit == 1 {
            return Ok(value.to_string());
        }
        let number = parse_size(value)?.checked_mul(self.unit);
        number.map(|number| number.to_string()).ok_or_else(|| format!("{value:?} is too large"))
    }
}

impl OptionInfo {
    /// InnoDB's names of this option, prefix and all, whose values are in this option's unit.
    pub fn innodb_names(&self) -> impl Iterator<Item = String> + '_ {
        let others = self.innodb.iter().filter(|other| other.unit == 1).map(|other| other.name);
        [self.name].into_iter().chain(others).map(|name| format!("{PREFIX}{name}"))
    }
}

/// Name and value of an option as the table of options has them; a name that is not InnoDB's stays as it is.
pub(super) fn in_our_terms<'v>(name: &str, value: &'v str) -> Result<(Cow<'static, str>, Cow<'v, str>)> {
    let Some(asked) = name.strip_prefix(PREFIX) else { return Ok((name.to_string().into(), value.into())) };
    for option in OPTION_TABLE {
        if option.name == asked {
            return Ok((option.name.into(), value.into()));
        }
        if let Some(other) = option.innodb.iter().find(|other| other.name == asked) {
            let refused = |reason| Error::BadOption { option: option_name(option.name), reason };
            return Ok((option.name.into(), other.in_our_unit(value).map_err(refused)?.into()));
        }
    }
    Ok((name.to_string().into(), value.into()))
}

#[cfg(test)]
mod tests {
    use crate::config::{FlushLog, OPTION_TABLE, Options};

    fn set(options: &[(&str, &str)]) -> Options {
        let mut all = Options::default();
        options.iter().for_each(|(name, value)| all.set(name, value).unwrap());
        all
    }

    #[test]
    fn a_configuration_of_innodb_is_understood() {
        let theirs = set(&[
            ("innodb_buffer_pool_size", "64M"),
            ("--innodb-redo-log-capacity", "32M"),
            ("innodb-flush-log-at-trx-commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_flush_method", "O_DSYNC"),
            ("innodb_max_dirty_pages_pct", "62.5"),
            ("innodb_old_blocks_time", "250"),
            ("innodb_lock_wait_timeout", "50"),
            ("innodb_log_group_home_dir", "/srv/redo"),
        ]);
        let ours = set(&[
            ("buffer_pool_size", "64M"),
            ("log_file_size", "32M"),
            ("doublewrite", "off"),
            ("flush_method", "O_DSYNC"),
            ("max_dirty_pages_pct", "62.5"),
            ("old_blocks_time_ms", "250"),
            ("lock_wait_timeout_ms", "50000"),
            ("log_dir", "/srv/redo"),
        ]);
        assert_eq!(theirs, Options { flush_log_at_trx_commit: FlushLog::Write, ..ours });
    }

    #[test]
    fn each_option_has_its_name_behind_the_prefix() {
        for option in OPTION_TABLE.iter().filter(|option| !option.default.is_empty()) {
            set(&[(&format!("innodb_{}", option.name), option.default)]);
        }
        let mut names: Vec<&str> = OPTION_TABLE.iter().map(|option| option.name).collect();
        names.extend(OPTION_TABLE.iter().flat_map(|option| option.innodb).map(|other| other.name));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name is of two options");
    }

    #[test]
    fn a_refusal_names_the_option() {
        let refused = |name, value| Options::default().set(name, value).unwrap_err().to_string();
        for value in ["soon", "99999999999999999999", "18446744073709552"] {
            let text = refused("innodb_lock_wait_timeout", value);
            assert!(text.starts_with("option lock-wait-timeout-ms: "), "{value}: {text}");
        }
        assert!(refused("innodb_buffer_pool_size", "12Q").starts_with("option buffer-pool-size: "));
        assert_eq!(refused("innodb_no_such_thing", "1"), "option innodb-no-such-thing: no such option");
    }
}
