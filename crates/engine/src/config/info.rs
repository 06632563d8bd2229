//! A row of the table of options.

/// One row of the table of options, for command lines and documentation.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Name on the command line, with dashes.
    pub name: &'static str,
    /// The description, with the unit.
    pub doc: &'static str,
    /// Default, as text.
    pub default: &'static str,
    /// Accepted values, as text.
    pub accepts: &'static str,
    /// InnoDB's names where they are not this name after `innodb_`, which is understood too.
    pub innodb: &'static [InnodbName],
    /// Whether it can be changed while the database is open
    /// ([`Database::set_option`](crate::Database::set_option)).
    pub is_dynamic: bool,
}

/// A name that InnoDB has for an option, where it is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnodbName {
    /// The name, without `innodb_`.
    pub name: &'static str,
    /// Number of the option's units in one unit of InnoDB's option.
    pub unit: u64,
}

/// An option's name as it is spelled on the command line and in every message.
pub(super) fn option_name(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-")
}
