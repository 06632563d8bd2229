//! The engine's options that the runs of `torture crash` and the databases of `torture power` draw.
//!
//! Rules
//! 1. Every option that the simulator draws ([`OPTIONS`]) is drawn here too, or has a row in [`EXCEPTIONS`]: with other
//!    values, because the loads are larger, or without values, to exclude it.
//! 2. An option that was given on the command line is not drawn.
//! 3. The same number draws the same options: it comes from the seed, which a failure names.
//! 4. If a mode may lose acknowledged commits at the end of a run ([`may_lose_commits`]), the surviving ones must be a
//!    prefix, and include all commits that a later call has made durable.
//! 5. A value that is listed twice is drawn twice as often.

use crate::engine_options::EngineOptions;
use fastrand::Rng;
use highwater::config::{FlushLog, OPTION_TABLE};
use highwater_torture::drawn_options::OPTIONS;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The process is killed: what it has written to the operating system stays.
    Kill,
    /// The power is cut: what was not synced is lost.
    PowerCut,
}

/// An option of the simulator's list that has other values here.
struct Exception {
    name: &'static str,
    /// Values for a run whose process is killed; none: the option is not drawn.
    at_kill: &'static [&'static str],
    at_power_cut: &'static [&'static str],
}

const fn not_drawn(name: &'static str) -> Exception {
    Exception { name, at_kill: &[], at_power_cut: &[] }
}

const EXCEPTIONS: &[Exception] = &[
    // The database exists already, or the commands' turns choose them.
    not_drawn("page_size"),
    not_drawn("page_store"),
    not_drawn("page_compression"),
    not_drawn("segment_size"),
    not_drawn("doublewrite"),
    not_drawn("change_buffering"),
    not_drawn("create_if_missing"),
    // A consumer follows however long it was away.
    not_drawn("change_log_expire_seconds"),
    // How long a client waits is a matter of the load.
    not_drawn("lock_wait_timeout_ms"),
    Exception { name: "change_buffer_merge_at_close", at_kill: &["on", "off", "auto"], at_power_cut: &[] },
    Exception { name: "log_file_size", at_kill: &["16M", "16M", "8M", "32M"], at_power_cut: &["4M", "4M", "8M"] },
    Exception { name: "buffer_pool_size", at_kill: &["8M", "8M", "12M"], at_power_cut: &["1M", "1M", "2M"] },
    Exception { name: "buffer_pool_size_max", at_kill: &["0", "0", "16M"], at_power_cut: &["0", "0", "4M"] },
];

fn values(name: &str, own: &'static [&'static str], end: End) -> &'static [&'static str] {
    match EXCEPTIONS.iter().find(|exception| exception.name == name) {
        None => own,
        Some(exception) if end == End::Kill => exception.at_kill,
        Some(exception) => exception.at_power_cut,
    }
}

/// Options and their values for a run with this number.
pub(super) fn draw(given: &EngineOptions, end: End, number: u64) -> Vec<(&'static str, &'static str)> {
    let mut rng = Rng::with_seed(number);
    let drawn = OPTIONS.iter().filter_map(|option| {
        let values = values(option.name, option.values, end);
        (!values.is_empty()).then(|| (option.name, values[rng.usize(..values.len())]))
    });
    // All are drawn, so that a given one changes no other.
    let all: Vec<_> = drawn.collect();
    all.into_iter().filter(|(name, _)| !given.has(name)).collect()
}

/// Whether the last acknowledged commits may be lost.
pub(super) fn may_lose_commits(flush_log_at_trx_commit: FlushLog, end: End) -> bool {
    match flush_log_at_trx_commit {
        FlushLog::Sync => false,
        FlushLog::Write => end == End::PowerCut,
        FlushLog::EverySecond => true,
    }
}

/// The options as they are written on the command line.
pub(super) fn arguments(drawn: &[(&str, &str)]) -> Vec<String> {
    drawn.iter().map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))).collect()
}

/// The options in the line of a run: those that differ from the engine's defaults.
pub(super) fn described(drawn: &[(&str, &str)]) -> String {
    let is_default = |(name, value): &(&str, &str)| {
        OPTION_TABLE.iter().any(|option| option.name == *name && option.default == *value)
    };
    let others: Vec<_> = drawn.iter().copied().filter(|one| !is_default(one)).collect();
    arguments(&others).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::Options;
    use std::collections::BTreeSet;

    const NUMBERS: u64 = 200;
    const ENDS: [End; 2] = [End::Kill, End::PowerCut];

    #[test]
    fn every_value_is_drawn_and_accepted() {
        let given = EngineOptions::default();
        for end in ENDS {
            let drawn: BTreeSet<_> = (0..NUMBERS).flat_map(|number| draw(&given, end, number)).collect();
            for option in OPTIONS {
                for value in values(option.name, option.values, end) {
                    assert!(drawn.contains(&(option.name, *value)), "{} = {value} is never drawn", option.name);
                    Options::default().set(option.name, value).unwrap();
                }
            }
        }
    }

    #[test]
    fn every_exception_is_one_of_the_simulators_options() {
        for exception in EXCEPTIONS {
            assert!(OPTIONS.iter().any(|option| option.name == exception.name), "{}", exception.name);
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
    fn a_killed_process_loses_only_what_it_has_not_written() {
        let loses = |flush_log| ENDS.map(|end| may_lose_commits(flush_log, end));
        assert_eq!(FlushLog::ALL.map(loses).concat(), [true, true, false, false, false, true]);
        let drawn: BTreeSet<_> = (0..NUMBERS).flat_map(|n| draw(&EngineOptions::default(), End::Kill, n)).collect();
        assert!(["0", "1", "2"].iter().all(|mode| drawn.contains(&("flush_log_at_trx_commit", *mode))));
    }

    #[test]
    fn a_description_leaves_defaults_out() {
        let drawn = [("max_purge_lag", "0"), ("purge_threads", "2"), ("flush_neighbors", "auto")];
        assert_eq!(described(&drawn), "--purge-threads=2");
    }
}
