//! InnoDB's names of options.
//!
//! Rules
//! 1. `innodb_` and an option's name is that option. If InnoDB's name differs, the table of options has it as a
//!    synonym.
//! 2. If InnoDB's unit differs, a value under InnoDB's name is in InnoDB's unit.
//! 3. Messages use Highwater's name only.

use super::info::{InnodbName, OptionInfo, option_name};
use super::value::parse_size;
use crate::error::{Error, Result};
use std::borrow::Cow;

const PREFIX: &str = "innodb_";

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
pub(super) fn in_our_terms<'v>(
    table: &[OptionInfo],
    name: &str,
    value: &'v str,
) -> Result<(Cow<'static, str>, Cow<'v, str>)> {
    let Some(asked) = name.strip_prefix(PREFIX) else { return Ok((name.to_string().into(), value.into())) };
    for option in table {
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
#[path = "innodb_test.rs"]
mod tests;
