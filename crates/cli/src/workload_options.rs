//! Options of each workload, with the names of the tools they come from.

use crate::engine_options::size;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use highwater_bench::workload::sysbench::{self, CreateIndexes, MAX_SECONDARY_INDEXES, Profile, RandType};
use highwater_bench::workload::tpcc::{self, Mix};
use highwater_bench::workload::user_table;
use highwater_bench::workload::ycsb::{self, Letter};

const MAX_INDEXES: u64 = MAX_SECONDARY_INDEXES as u64;

/// A parser of the names that `name` gives the values in `all`.
pub(crate) fn named<T, const N: usize>(all: [T; N], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).map(move |text| {
        let found = all.into_iter().find(|value| name(*value).eq_ignore_ascii_case(&text));
        // The parser accepts only names of the list.
        found.unwrap_or(all[0])
    })
}

/// Also takes sysbench's script names (`oltp_read_write`).
fn profile(text: &str) -> Result<Profile, String> {
    let name = text.strip_prefix("oltp_").unwrap_or(text);
    Profile::named(name).ok_or_else(|| format!("the profiles are {}", Profile::names()))
}

/// sysbench's OLTP profiles
#[derive(Args, Clone, Debug)]
pub(crate) struct SysbenchOptions {
    /// read_write, read_only, write_only, point_select, insert, delete, update_index or update_non_index
    #[arg(value_name = "PROFILE", default_value = "read_write", value_parser = profile)]
    pub profile: Profile,
    /// Number of tables
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub tables: u64,
    /// Rows of each table
    #[arg(long, alias = "table_size", default_value = "10000", value_name = "ROWS", value_parser = rows)]
    pub table_size: u64,
    /// Secondary indexes of each table, on columns of random numbers; sysbench has one
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MAX_INDEXES))]
    pub secondary_indexes: u64,
    /// When a load makes the secondary indexes: before or after the rows
    #[arg(long, value_name = "WHEN")]
    #[arg(default_value = "after", value_parser = named(CreateIndexes::ALL, CreateIndexes::name))]
    pub create_indexes: CreateIndexes,
    /// Distribution of the row numbers
    #[arg(long, alias = "rand_type", value_name = "TYPE")]
    #[arg(default_value = "special", value_parser = named(RandType::ALL, RandType::name))]
    pub rand_type: RandType,
    /// Point selects per transaction
    #[arg(long, alias = "point_selects", default_value_t = 10, value_name = "N")]
    pub point_selects: u32,
    /// Simple range selects per transaction
    #[arg(long, alias = "simple_ranges", default_value_t = 1, value_name = "N")]
    pub simple_ranges: u32,
    /// SELECT SUM() statements per transaction
    #[arg(long, alias = "sum_ranges", default_value_t = 1, value_name = "N")]
    pub sum_ranges: u32,
    /// SELECT ... ORDER BY statements per transaction
    #[arg(long, alias = "order_ranges", default_value_t = 1, value_name = "N")]
    pub order_ranges: u32,
    /// SELECT DISTINCT statements per transaction
    #[arg(long, alias = "distinct_ranges", default_value_t = 1, value_name = "N")]
    pub distinct_ranges: u32,
    /// Rows per range
    #[arg(long, alias = "range_size", default_value = "100", value_name = "ROWS", value_parser = rows)]
    pub range_size: u64,
    /// Updates of the indexed column per transaction
    #[arg(long, alias = "index_updates", default_value_t = 1, value_name = "N")]
    pub index_updates: u32,
    /// Updates of the column without index per transaction
    #[arg(long, alias = "non_index_updates", default_value_t = 1, value_name = "N")]
    pub non_index_updates: u32,
    /// Pairs of DELETE and INSERT per transaction
    #[arg(long, alias = "delete_inserts", default_value_t = 1, value_name = "N")]
    pub delete_inserts: u32,
}

/// Row numbers are 32-bit integers in sysbench's tables.
pub(crate) fn rows(text: &str) -> Result<u64, String> {
    match size(text)? {
        rows @ 1..=2_000_000_000 => Ok(rows),
        other => Err(format!("{other} is not between 1 and 2000000000")),
    }
}

impl SysbenchOptions {
    /// The workload's configuration.
    pub(crate) fn config(&self, seed: u64) -> sysbench::Config {
        sysbench::Config {
            profile: self.profile,
            tables: self.tables,
            table_size: self.table_size,
            secondary_indexes: self.secondary_indexes as usize,
            create_indexes: self.create_indexes,
            rand_type: self.rand_type,
            point_selects: self.point_selects,
            simple_ranges: self.simple_ranges,
            sum_ranges: self.sum_ranges,
            order_ranges: self.order_ranges,
            distinct_ranges: self.distinct_ranges,
            range_size: self.range_size,
            index_updates: self.index_updates,
            non_index_updates: self.non_index_updates,
            delete_inserts: self.delete_inserts,
            seed,
        }
    }
}

/// A TPC-C-like load
#[derive(Args, Clone, Debug)]
pub(crate) struct TpccOptions {
    /// Number of warehouses, about 100 MB each
    #[arg(long, short = 'w', default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub warehouses: u64,
    /// Shares of new-order, payment, order-status, delivery and stock-level
    #[arg(long, default_value = "45/43/4/4/4", value_parser = named(Mix::ALL, Mix::name))]
    pub mix: Mix,
    /// Do not check the consistency conditions after the run
    #[arg(long)]
    pub skip_consistency: bool,
}

impl TpccOptions {
    /// The workload's configuration.
    pub(crate) fn config(&self, seed: u64, check_threads: usize) -> tpcc::Config {
        tpcc::Config { warehouses: self.warehouses, mix: self.mix, seed, check_threads, ..tpcc::Config::default() }
    }
}

/// YCSB's core workloads
#[derive(Args, Clone, Debug)]
pub(crate) struct YcsbOptions {
    /// a (half updates), b (5 % updates), c (reads), d (latest), e (scans) or f (read-modify-write)
    #[arg(value_name = "WORKLOAD", default_value = "a", ignore_case = true)]
    #[arg(value_parser = named(Letter::ALL, Letter::name))]
    pub letter: Letter,
    /// Records to load, of 1,000 bytes each
    #[arg(long, default_value = "100000", value_parser = rows)]
    pub records: u64,
}

impl YcsbOptions {
    /// The workload's configuration.
    pub(crate) fn config(&self, seed: u64) -> ycsb::Config {
        ycsb::Config { letter: self.letter, records: self.records, seed }
    }
}

/// Inserts rows into the `user` table (with its index NAME_INDEX)
#[derive(Args, Clone, Debug)]
pub(crate) struct UserTableOptions {
    /// Bytes of column values to insert
    #[arg(long, default_value = "500M", value_parser = size)]
    pub bytes: u64,
    /// Rows per transaction
    #[arg(long, default_value_t = 1, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rows_per_transaction: u64,
}

impl UserTableOptions {
    /// The workload's configuration.
    pub(crate) fn config(&self, seed: u64) -> user_table::Config {
        user_table::Config { bytes: self.bytes, rows_per_transaction: self.rows_per_transaction, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        ycsb: YcsbOptions,
    }

    #[test]
    fn a_capital_letter_names_the_same_workload() {
        for letter in Letter::ALL {
            let given = Line::parse_from(["bench", &letter.name().to_uppercase()]);
            assert_eq!(given.ycsb.letter.name(), letter.name());
        }
    }
}
