//! Loads rows in the order of their key into a table with one index on a random number, through a small buffer pool:
//! nearly every row changes a leaf of the index that is not in the pool.
//!
//! ```sh
//! cargo run --release -p highwater --example random_index -- 2500000 DIR change-buffering=memory
//! ```
//!
//! Arguments: number of rows, a folder that does not exist yet, options as `name=value`. A row has 200 bytes.

use highwater::{Database, Error, Options, Result, Schema, Type, values};
use std::time::Instant;

const POOL_SIZE: &str = "64MiB";
const PAD_BYTES: usize = 184;
const ROWS_PER_TRANSACTION: u64 = 1000;

fn usage() -> Error {
    let example = "2500000 /tmp/rows change-buffering=memory";
    Error::Usage(format!("arguments: ROWS DIR [OPTION=VALUE ...], for example {example}"))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments.next().and_then(|rows| rows.parse().ok()).ok_or_else(usage)?;
    let dir = arguments.next().ok_or_else(usage)?;
    if std::path::Path::new(&dir).exists() {
        return Err(Error::Usage(format!("{dir} exists: name a folder that does not")));
    }
    let mut options = Options::default();
    options.set("buffer-pool-size", POOL_SIZE)?;
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or_else(usage)?;
        options.set(name, value)?;
    }
    let db = Database::open(&dir, options)?;
    let start = Instant::now();
    load(&db, rows)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{rows} rows in {seconds:.1} s");
    let stats = db.stats();
    let shown = ["pages_read", "pages_flushed", "redo_bytes", "change_buffer"];
    for row in stats.table().iter().filter(|row| shown.iter().any(|name| row.name.starts_with(name))) {
        println!("{:<40} {}", row.name, row.value);
    }
    let start = Instant::now();
    db.close()?;
    println!("closed in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn load(db: &Database, rows: u64) -> Result<()> {
    let schema = Schema::new().column("id", Type::U64).column("k", Type::U64).column("pad", Type::Binary(200));
    let table = db.create_table("rows", schema.primary_key(&["id"]).index("by_k", &["k"]))?;
    let pad = [7; PAD_BYTES];
    let mut random = 0x1234_5678_9abc_def1_u64;
    for first in (0..rows).step_by(ROWS_PER_TRANSACTION as usize) {
        let mut txn = db.begin()?;
        for id in first..(first + ROWS_PER_TRANSACTION).min(rows) {
            // Marsaglia's xorshift64.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            txn.insert(&table, &values![id, random, &pad[..]])?;
        }
        txn.commit()?;
    }
    Ok(())
}
