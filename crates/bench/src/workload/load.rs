//! A workload chosen at run time, with its options.
//!
//! Rules
//! 1. Workloads are generic over stores. Here each one is compiled for each store of this crate; other crates get it as
//!    `dyn Workload`. That costs one virtual call for each transaction. Another crate compiles a workload again only
//!    for its own store ([`Load::over`]).

use super::{Workload, sysbench, tpcc, user_table, ycsb};
use crate::store::embedded::Embedded;
use crate::store::mysql::MysqlStore;
use crate::store::{Store, TableSpec};

/// A workload with its options.
#[derive(Clone, Debug)]
pub enum Load {
    /// sysbench's OLTP profiles.
    Sysbench(sysbench::Config),
    /// TPC-C.
    Tpcc(tpcc::Config),
    /// The `user` table.
    UserTable(user_table::Config),
    /// YCSB's core workloads.
    Ycsb(ycsb::Config),
}

impl Load {
    /// The workload over Highwater in this process.
    pub fn embedded(&self) -> Box<dyn Workload<Embedded>> {
        self.over()
    }

    /// The workload over a MySQL or MariaDB server.
    pub fn mysql(&self) -> Box<dyn Workload<MysqlStore>> {
        self.over()
    }

    /// The tables that it loads, with their indexes.
    pub fn tables(&self) -> Vec<TableSpec> {
        match self {
            Load::Sysbench(config) => (0..config.tables).map(|n| sysbench::table_spec(config, n)).collect(),
            Load::Tpcc(_) => tpcc::table_specs(),
            Load::UserTable(_) => vec![user_table::table_spec()],
            Load::Ycsb(_) => vec![ycsb::table_spec()],
        }
    }

    /// Units of work (rows) of its load, for progress.
    pub fn units(&self) -> u64 {
        self.embedded().load_units()
    }

    /// The workload over any store.
    pub fn over<S: Store>(&self) -> Box<dyn Workload<S>> {
        match self {
            Load::Sysbench(config) => Box::new(sysbench::Sysbench::new(config.clone())),
            Load::Tpcc(config) => Box::new(tpcc::Tpcc::new(config.clone())),
            Load::UserTable(config) => Box::new(user_table::UserTable::new(config.clone())),
            Load::Ycsb(config) => Box::new(ycsb::Ycsb::new(config.clone())),
        }
    }
}
