//! txn. SKELETON
mod rows;
use crate::error::Result;
use crate::mtr::Context;
use crate::space::Space;
pub use rows::{Entry, Rows, Tables};
use std::sync::Arc;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    None,
    Shared,
    Exclusive,
}
#[derive(Clone, Copy, Debug)]
pub struct TrxOptions {
    pub isolation: Isolation,
    pub lock_wait_timeout_ms: u64,
    pub first_committer_wins: bool,
    pub read_only: bool,
}
pub struct TrxSystem {
    _p: (),
}
impl TrxSystem {
    pub fn format(_space: &Space, _mtr: &mut crate::mtr::Mtr<'_>) -> Result<()> {
        unimplemented!()
    }
    pub fn open(_ctx: Arc<Context>, _space: Arc<Space>, _stats: Arc<crate::stats::Stats>) -> Result<TrxSystem> {
        unimplemented!()
    }
    pub fn recover(&self, _tables: Arc<dyn Tables>) -> Result<usize> {
        unimplemented!()
    }
    pub fn begin(self: &Arc<Self>, _options: TrxOptions) -> Result<Trx> {
        unimplemented!()
    }
    pub fn purge_step(&self) -> Result<bool> {
        unimplemented!()
    }
}
pub struct Trx {
    _p: (),
}
#[derive(Clone, Copy, Debug)]
pub struct Savepoint(u64);
pub struct Cursor {
    _p: (),
}
impl Trx {
    pub fn insert(&mut self, _rows: &dyn Rows, _key: &[u8], _row: &[u8]) -> Result<()> {
        unimplemented!()
    }
    pub fn update(
        &mut self,
        _rows: &dyn Rows,
        _key: &[u8],
        _change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool>,
    ) -> Result<bool> {
        unimplemented!()
    }
    pub fn delete(&mut self, _rows: &dyn Rows, _key: &[u8]) -> Result<bool> {
        unimplemented!()
    }
    pub fn get(&mut self, _rows: &dyn Rows, _key: &[u8], _lock: LockMode, _out: &mut Vec<u8>) -> Result<bool> {
        unimplemented!()
    }
    pub fn scan(&mut self, _rows: Arc<dyn Rows>, _options: &ScanOptions<'_>) -> Result<Cursor> {
        unimplemented!()
    }
    pub fn savepoint(&mut self) -> Savepoint {
        unimplemented!()
    }
    pub fn rollback_to(&mut self, _to: Savepoint) -> Result<()> {
        unimplemented!()
    }
    pub fn commit(self) -> Result<()> {
        unimplemented!()
    }
    pub fn rollback(self) -> Result<()> {
        unimplemented!()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ScanOptions<'k> {
    pub index: Option<usize>,
    pub lower: std::ops::Bound<&'k [u8]>,
    pub upper: std::ops::Bound<&'k [u8]>,
    pub reverse: bool,
    pub lock: LockMode,
    pub limit: usize,
}
impl Cursor {
    pub fn next(&mut self, _trx: &mut Trx) -> Result<bool> {
        unimplemented!()
    }
    pub fn payload(&self) -> &[u8] {
        unimplemented!()
    }
}
