//! Measurement of a load.

use crate::error::{Error, Result};
use crate::result::RunResult;
use crate::store::Store;
use crate::workload::{Progress, Workload, load_or_reuse};
use highwater_device::usage::{DeviceUsage, Mark};
use std::time::Instant;

/// Loads the workload and measures that: the result has no transactions; its seconds are those of the load.
///
/// # Errors
/// [`Error::Usage`] if the data are loaded already; the store's.
pub fn load<S: Store>(
    store: &S,
    workload: &dyn Workload<S>,
    threads: usize,
    progress: &dyn Progress,
) -> Result<RunResult> {
    let (started, before, mark) = (Instant::now(), store.stats(), store.disk().map(Mark::of));
    if !load_or_reuse(store, workload, threads, progress)? {
        return Err(Error::Usage("the data are loaded already; load them again with --fresh".into()));
    }
    let elapsed_s = started.elapsed().as_secs_f64().max(1e-9);
    let growth = store.stats().since(&before);
    let mut config = workload.options();
    config.insert("load_threads".into(), threads.to_string());
    Ok(RunResult {
        workload: format!("{}, load", workload.name()),
        config,
        elapsed_s,
        load_s: Some(elapsed_s),
        pages: (&growth).into(),
        bytes_written: growth.bytes_written(),
        counters: growth.by_name(),
        device: store.disk().zip(mark).map(|(disk, mark)| DeviceUsage::since(disk, &mark)),
        ..RunResult::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;
    use crate::summary::{Zeros, load_summary};
    use crate::workload::Silent;
    use crate::workload::sysbench::{Config, Sysbench};

    #[test]
    fn a_load_is_measured_once() {
        let store = Model::default();
        let workload = Sysbench::new(Config { table_size: 1300, ..Config::default() });
        let result = load(&store, &workload, 1, &Silent).unwrap();
        assert_eq!((result.workload.as_str(), result.transactions), ("sysbench oltp_read_write, load", 0));
        assert!(result.load_s == Some(result.elapsed_s) && result.counters["trx_commits"] >= 3, "{result:?}");
        let text = load_summary(&RunResult { elapsed_s: 0.5, ..result }, 1300, Zeros::Hidden);
        assert!(text.contains("rows per second:                     2600\n"), "{text}");
        let again = load(&store, &workload, 1, &Silent).unwrap_err().to_string();
        assert!(again.contains("--fresh"), "{again}");
    }
}
