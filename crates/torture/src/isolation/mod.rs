//! Tests of the isolation levels: known anomalies one by one, and random histories.
//!
//! | module | what |
//! |---|---|
//! | `setting.rs` | the levels, and the setting that makes one of them two |
//! | `hermitage/` | the schedules of the literature, played on Highwater and through SQL on a server |
//! | `histories/` | random transactions in threads; a checker that names the anomalies that occurred |
//!
//! [`highwater::Isolation`] has the promises of each level; docs/design/isolation.md has the table.

pub mod hermitage;
pub mod histories;
mod setting;

pub use setting::Setting;
