//! A workload chosen at run time, with its options.
//!
//! Rules
//! 1. Workloads are generic over stores. Here, and nowhere else, each one is compiled for each store; other crates get
//!    it as `dyn Workload`. One virtual call a transaction is all that costs, and no other crate compiles a workload
//!    again.

use super::{Workload, sysbench, tpcc, user_table, ycsb};
use crate::store::Store;
use crate::store::embedded::Embedded;
use crate::store::mysql::MysqlStore;

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

    /// Units of work (rows) of its load, for progress.
    pub fn units(&self) -> u64 {
        self.embedded().load_units()
    }

    fn over<S: Store>(&self) -> Box<dyn Workload<S>> {
        match self {
            Load::Sysbench(config) => Box::new(sysbench::Sysbench::new(config.clone())),
            Load::Tpcc(config) => Box::new(tpcc::Tpcc::new(config.clone())),
            Load::UserTable(config) => Box::new(user_table::UserTable::new(config.clone())),
            Load::Ycsb(config) => Box::new(ycsb::Ycsb::new(config.clone())),
        }
    }
}
