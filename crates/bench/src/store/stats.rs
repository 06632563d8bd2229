//! A store's counters at one moment, by the names of the engine's counter table.
//!
//! Rules
//! 1. A counter that the store does not have is absent. No counter is zero because it is missing.
//! 2. The difference of two moments has the growth of each counter and the later value of each gauge; it lacks counters
//!    that are absent at either moment.

use highwater::stats::StatsSnapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The name of a counter of the engine's table; a name that is not in the table does not compile.
#[macro_export]
macro_rules! counter {
    ($name:ident) => {{
        let _ = |stats: &$crate::store::StatsSnapshot| stats.$name;
        stringify!($name)
    }};
}

/// A store's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats(BTreeMap<&'static str, u64>);

impl From<StatsSnapshot> for StoreStats {
    fn from(stats: StatsSnapshot) -> StoreStats {
        StoreStats(stats.table().into_iter().map(|row| (row.name, row.value)).collect())
    }
}

impl FromIterator<(&'static str, Option<u64>)> for StoreStats {
    fn from_iter<I: IntoIterator<Item = (&'static str, Option<u64>)>>(counters: I) -> StoreStats {
        StoreStats(counters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// Counters that are values, not sums.
static GAUGES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let rows = StatsSnapshot::default().table().into_iter();
    rows.filter(|row| row.doc.starts_with("Gauge: ")).map(|row| row.name).collect()
});

impl StoreStats {
    /// A counter; `None` if the store does not have it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// The sum of those of the counters that the store has; `None` if it has none of them.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|name| self.get(name)).reduce(|a, b| a + b)
    }

    /// The difference since `earlier`: growth of counters, present values of gauges.
    pub fn since(&self, earlier: &StoreStats) -> StoreStats {
        let change = |(&name, &now): (&&'static str, &u64)| {
            let before = earlier.get(name)?;
            Some((name, if GAUGES.contains(name) { now } else { now.saturating_sub(before) }))
        };
        StoreStats(self.0.iter().filter_map(change).collect())
    }

    /// All counters by name.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(name, value)| (name.to_string(), *value)).collect()
    }

    /// The counters `bytes_written_*`, by placement.
    pub fn bytes_written(&self) -> BTreeMap<String, u64> {
        let placement = |name: &str| Some(name.strip_prefix("bytes_written_")?.to_string());
        self.0.iter().filter_map(|(name, value)| Some((placement(name)?, *value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_values_and_counters_growth() {
        let earlier =
            StatsSnapshot { pages_read: 5, pool_pages_free: 100, bytes_written_redo: 1, ..Default::default() };
        let now = StatsSnapshot { pages_read: 8, pool_pages_free: 70, bytes_written_redo: 9, ..Default::default() };
        let found = StoreStats::from(now).since(&earlier.into());
        assert_eq!((found.get("pages_read"), found.get("pool_pages_free")), (Some(3), Some(70)));
        assert_eq!(found.bytes_written()["redo"], 8);
        assert_eq!(found.by_name().len(), now.table().len());
    }

    #[test]
    fn what_a_store_does_not_have_is_absent() {
        let stats = |reads, syncs| StoreStats::from_iter([(counter!(pages_read), reads), (counter!(log_syncs), syncs)]);
        let found = stats(Some(8), Some(2)).since(&stats(Some(5), None));
        assert_eq!((found.get("pages_read"), found.get("log_syncs")), (Some(3), None));
        assert_eq!((found.sum(&["pages_read", "log_syncs"]), found.sum(&["log_syncs"])), (Some(3), None));
    }
}
