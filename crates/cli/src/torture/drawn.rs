//! The engine's options that the runs of `torture crash` and the databases of `torture power` draw.
//!
//! Rules
//! 1. An option that was given on the command line is not drawn.
//! 2. The same number draws the same options: it comes from the seed, which a failure names.
//! 3. A mode that may lose acknowledged commits at the end of a run is not drawn: the record of acknowledged commits
//!    must be there whole. So `flush_log_at_trx_commit` is 2 only where a process is killed, and never 0.
//! 4. A value that stands twice is drawn twice as often.

use crate::engine_options::EngineOptions;
use fastrand::Rng;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process is killed: what it has written to the operating system stays.
    Kill,
    /// The power is cut: what was not synced is lost.
    PowerCut,
}

/// An option and its values; what is drawn when the power is cut.
struct Drawn {
    name: &'static str,
    values: &'static [&'static str],
    at_power_cut: bool,
}

const fn always(name: &'static str, values: &'static [&'static str]) -> Drawn {
    Drawn { name, values, at_power_cut: true }
}

const fn at_kill(name: &'static str, values: &'static [&'static str]) -> Drawn {
    Drawn { name, values, at_power_cut: false }
}

/// What is drawn, in this order. (Buffering, page store and what protects pages take turns instead.)
const OPTIONS: &[Drawn] = &[
    at_kill("flush_log_at_trx_commit", &["1", "1", "2"]),
    at_kill("log_file_size", &["16M", "16M", "8M", "32M"]),
    always("flush_neighbors", &["auto", "0", "1", "2"]),
    always("change_buffer_max_size", &["25", "25", "1", "50"]),
    always("max_purge_lag", &["0", "0", "100"]),
    always("purge_threads", &["4", "1", "2"]),
    always("victim_policy", &["lru-clean", "lru-clean", "raw", "war"]),
    always("lru_scan_depth", &["1024", "1024", "16", "128"]),
];

/// Options and their values for a run with this number.
pub fn draw(given: &EngineOptions, end: End, number: u64) -> Vec<(&'static str, &'static str)> {
    let mut rng = Rng::with_seed(number);
    let drawn = OPTIONS.iter().map(|option| (option, option.values[rng.usize(..option.values.len())]));
    let is_meant = |option: &Drawn| !given.has(option.name) && (end == End::Kill || option.at_power_cut);
    drawn.filter(|(option, _)| is_meant(option)).map(|(option, value)| (option.name, value)).collect()
}

/// The options as they are written on the command line.
pub fn arguments(drawn: &[(&str, &str)]) -> Vec<String> {
    drawn.iter().map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::Options;
    use std::collections::BTreeSet;

    const NUMBERS: u64 = 200;

    #[test]
    fn every_value_is_drawn_and_accepted() {
        let given = EngineOptions::default();
        let drawn: BTreeSet<_> = (0..NUMBERS).flat_map(|number| draw(&given, End::Kill, number)).collect();
        for option in OPTIONS {
            for value in option.values {
                assert!(drawn.contains(&(option.name, *value)), "{} = {value} is never drawn", option.name);
                Options::default().set(option.name, value).unwrap();
            }
        }
    }

    #[test]
    fn a_given_option_stays_and_changes_no_other() {
        let given = EngineOptions::with(&[("max_purge_lag", "7")]);
        for number in 0..NUMBERS {
            let mut all = draw(&EngineOptions::default(), End::Kill, number);
            all.retain(|(name, _)| *name != "max_purge_lag");
            assert_eq!(draw(&given, End::Kill, number), all);
        }
    }

    #[test]
    fn no_mode_is_drawn_that_may_lose_acknowledged_commits() {
        let given = EngineOptions::default();
        for number in 0..NUMBERS {
            let is_log = |(name, _): &(&str, &str)| *name == "flush_log_at_trx_commit";
            assert!(!draw(&given, End::PowerCut, number).iter().any(is_log));
            let at_kill = draw(&given, End::Kill, number);
            assert!(at_kill.iter().filter(|one| is_log(one)).all(|(_, value)| ["1", "2"].contains(value)));
        }
    }
}
