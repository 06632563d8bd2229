//! How long it takes to open a large store out of place, which derives its page map, with a cold cache.
//!
//! `cargo bench -p highwater --bench open_store [-- FOLDER [GIB]]`. For each page size and order of writes it makes a
//! sparse file of this many GiB (100) in FOLDER, with the summaries of sealed segments of the default size and holes
//! for the pages; less than 1 GiB of it takes room. It is read with O_DIRECT. "random" is the worst order for the
//! processor's caches: pages next to each other in the file are far from each other in the map.

use highwater::config::Options;
use highwater::internals::SyntheticStore;
use highwater_storage::{FileDevice, FileRole, FlushMethod};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 3;

fn main() {
    // `cargo test` runs benches too, without this flag: nothing to test here.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let folder = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let gib: u64 = arguments.get(1).map_or(100, |gib| gib.parse().expect("GiB as a number"));
    println!(
        "{:<10}{:<10}{:>12}{:>14}{:>14}{:>22}{:>14}",
        "page", "written", "pages", "images", "read MiB", "seconds", "CPU seconds"
    );
    for page_bytes in [16384, 4096] {
        for (order, stride) in [("in order", 1), ("random", 1_000_003)] {
            measure(&folder, gib, page_bytes, order, stride);
        }
    }
}

fn measure(folder: &Path, gib: u64, page_bytes: usize, order: &str, stride: u32) {
    let segment_bytes = Options::default().segment_size;
    let segments = ((gib << 30) / segment_bytes) as u32;
    let layout = SyntheticStore { page_bytes, segment_bytes, segments, stride };
    let path = folder.join("highwater-open-store-bench");
    File::create(&path).and_then(|file| file.set_len(layout.file_bytes())).expect("the folder is writable");
    let open = || FileDevice::open(&path, FileRole::Data, FlushMethod::Direct, false).expect("the file is ours");
    layout.write(&open()).expect("the disk has room");
    let device = Arc::new(open());
    assert!(device.is_direct(), "the page cache would hide what reading takes");
    let (mut seconds, cpu_before) = (Vec::new(), cpu_seconds());
    let mut read_bytes = 0;
    for _ in 0..ROUNDS {
        let since = Instant::now();
        let opened = layout.open(device.clone()).expect("every summary is valid");
        seconds.push(format!("{:.2}", since.elapsed().as_secs_f64()));
        assert!(opened.is_whole(), "every page was written");
        read_bytes = opened.read_bytes;
    }
    std::fs::remove_file(&path).expect("the file is ours");
    let (pages, images) = (layout.pages(), u64::from(layout.pages()) * 4 / 3);
    let (mib, seconds, cpu) = (read_bytes >> 20, seconds.join(" "), (cpu_seconds() - cpu_before) / ROUNDS as f64);
    println!("{page_bytes:<10}{order:<10}{pages:>12}{images:>14}{mib:>14}{seconds:>22}{cpu:>14.2}");
}

/// Processor time of this process so far.
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let fields = stat.rsplit(')').next().expect("there is one part at least").split_whitespace();
    // utime and stime are fields 14 and 15; the text after the name begins with field 3.
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / TICKS_PER_SECOND
}
