//! Part of the crash test: options are changed while the database is open, the sizes of pool and log among them.

use crate::alphabet::options::{OPTIONS, is_refused_pool_size};
use fastrand::Rng;
use highwater::Database;
use highwater::config::ChangeBuffering;
use highwater_bench::Result;
use std::time::Duration;

/// Options that are not changed.
const NOT_CHANGED: [(&str, &str); 3] = [
    ("change_log_expire_seconds", "the follower of the change log is killed, and finds then what it has not taken"),
    ("flush_log_at_trx_commit", "what a crash may take is judged by the mode of the opening"),
    ("lock_wait_timeout_ms", "how long a client waits is a matter of the load"),
];

/// Options with other values than the simulator's: this load is larger.
const LARGER: [(&str, &[&str]); 2] =
    [("buffer_pool_size", &["8M", "6M", "10M", "14M"]), ("log_file_size", &["16M", "8M", "24M"])];

fn is_changed(name: &str, given: &[String]) -> bool {
    !NOT_CHANGED.iter().any(|(other, _)| *other == name) && !given.iter().any(|given| given == name)
}

/// Every option that is changed, with its values.
fn changed(given: &[String]) -> Vec<(&'static str, &'static [&'static str])> {
    let drawn = OPTIONS.iter().filter(|option| option.is_dynamic() && is_changed(option.name, given));
    let values = |name: &str, own| LARGER.iter().find(|(other, _)| *other == name).map_or(own, |(_, values)| *values);
    drawn.map(|option| (option.name, values(option.name, option.values))).collect()
}

/// Changes an option that was not given.
pub(super) fn change_option(db: &Database, given: &[String], random: &mut Rng) -> Result<()> {
    std::thread::sleep(Duration::from_millis(random.u64(..40)));
    if random.u32(..20) == 0 && is_changed("change_buffering", given) {
        return Ok(db.set_change_buffering(ChangeBuffering::ALL[random.usize(..ChangeBuffering::ALL.len())])?);
    }
    let changed = changed(given);
    let (name, values) = changed[random.usize(..changed.len())];
    match db.set_option(name, values[random.usize(..values.len())]) {
        Err(error) if is_refused_pool_size(&error) => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::config::OPTION_TABLE;

    #[test]
    fn every_option_that_can_be_changed_is_changed() -> Result<()> {
        let dynamic = OPTION_TABLE.iter().filter(|option| option.is_dynamic).count();
        assert_eq!(changed(&[]).len() + NOT_CHANGED.len(), dynamic);
        assert_eq!(changed(&["io_capacity".to_string()]).len() + 1, changed(&[]).len());
        let db = Database::in_memory()?;
        for (name, values) in changed(&[]) {
            for value in values.iter().filter(|_| name != "buffer_pool_size") {
                db.set_option(name, value)?;
            }
        }
        (0..5).try_for_each(|seed| change_option(&db, &[], &mut Rng::with_seed(seed)))
    }
}
