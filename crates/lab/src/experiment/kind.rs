//! The subjects of experiments by name.

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectKind {
    /// This project's engine.
    Highwater,
    /// MySQL 5.6.24.
    Mysql,
    /// Debian's MariaDB.
    Mariadb,
}

impl SubjectKind {
    /// All of them.
    pub const ALL: [SubjectKind; 3] = [SubjectKind::Highwater, SubjectKind::Mysql, SubjectKind::Mariadb];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SubjectKind::Highwater => "highwater",
            SubjectKind::Mysql => "mysql",
            SubjectKind::Mariadb => "mariadb",
        }
    }
}

impl std::fmt::Display for SubjectKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for SubjectKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<SubjectKind, Error> {
        SubjectKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = SubjectKind::ALL.map(SubjectKind::name).join(", ");
            Error::Usage(format!("there is no subject {text:?}; there are: {names}"))
        })
    }
}
