//! Commits per second of the redo log alone, against what the disk's bare write + sync allows.
//!
//! `cargo bench -p highwater --bench log_commit [-- FOLDER]`. Rounds are interleaved (bare, one client, 16 clients,
//! next method, again) because disks drift; medians over the rounds are printed. Each commit appends one group of 200
//! bytes and waits until it is durable. "bare" rewrites and syncs 4096 bytes with the same file and flags, one client.

use highwater::config::FlushLog;
use highwater::internals::{Log, Stats};
use highwater_storage::{AlignedBuf, Device, FileDevice, FileRole, FlushMethod, Placement};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const GROUP_BYTES: usize = 200;
const LOG_BYTES: u64 = 64 << 20;
const WAYS: [(&str, FileRole, FlushMethod); 4] = [
    ("buffered + fdatasync", FileRole::Redo, FlushMethod::Fsync),
    ("buffered O_DSYNC", FileRole::Redo, FlushMethod::DSync),
    ("O_DIRECT + fdatasync", FileRole::Redo, FlushMethod::Direct),
    ("cached, written only", FileRole::RedoCached, FlushMethod::Direct),
];

fn main() {
    // `cargo test` runs benches too, without this flag: nothing to test here.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let folder = folder.map_or_else(std::env::temp_dir, Into::into);
    let mut results = vec![[(); 3].map(|()| Vec::new()); WAYS.len()];
    for _ in 0..ROUNDS {
        for (way, results) in WAYS.iter().zip(&mut results) {
            let round = [bare(&folder, way), commits(&folder, way, 1), commits(&folder, way, 16)];
            results.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
        }
    }
    println!(
        "{:<24}{:>12}{:>14}{:>16}  (commits/s, median of {ROUNDS})",
        "redo file", "bare", "1 client", "16 clients"
    );
    for (way, results) in WAYS.iter().zip(results) {
        let [bare, one, many] = results.map(median);
        println!("{:<24}{bare:>12.0}{one:>14.0}{many:>16.0}", way.0);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn device(folder: &Path, way: &(&str, FileRole, FlushMethod)) -> Arc<FileDevice> {
    let path = folder.join("highwater-log-commit-bench");
    let device = FileDevice::open(&path, way.1, way.2, true).expect("the folder is writable");
    Log::create(Arc::new(FileDevice::open(&path, FileRole::Data, FlushMethod::Fsync, true).unwrap()), LOG_BYTES, 1)
        .expect("the disk has room");
    // The file stays open without its name.
    std::fs::remove_file(path).expect("the file is ours");
    Arc::new(device)
}

fn is_synced(way: &(&str, FileRole, FlushMethod)) -> bool {
    way.1 == FileRole::Redo
}

fn bare(folder: &Path, way: &(&str, FileRole, FlushMethod)) -> f64 {
    let device = device(folder, way);
    let block = AlignedBuf::copy_of(&[7; 4096]);
    per_second(|n| {
        let offset = 8192 + n * GROUP_BYTES as u64 / 4096 * 4096 % (LOG_BYTES - 8192);
        device.write_at(offset, &block, Placement::Redo).unwrap();
        if is_synced(way) {
            device.sync().unwrap();
        }
    })
}

fn commits(folder: &Path, way: &(&str, FileRole, FlushMethod), clients: usize) -> f64 {
    let mode = if is_synced(way) { FlushLog::Sync } else { FlushLog::Write };
    let (log, scan) =
        Log::open(device(folder, way), 16 << 20, mode, 1, None, Arc::new(Stats::default()), Arc::default()).unwrap();
    log.start(scan.end_lsn).unwrap();
    let payload = [5; GROUP_BYTES];
    let commit = |_| {
        let end = log.append(log.reserve(GROUP_BYTES as u64).unwrap(), &payload, |_, _| {});
        log.commit(end, None).unwrap();
        if end.0.saturating_sub(log.checkpoint_lsn().0) > LOG_BYTES / 2 {
            log.checkpoint(end).unwrap();
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(|| per_second(commit))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    })
}

fn per_second(mut operation: impl FnMut(u64)) -> f64 {
    let since = Instant::now();
    let mut done = 0;
    while since.elapsed() < ROUND {
        operation(done);
        done += 1;
    }
    done as f64 / since.elapsed().as_secs_f64()
}
