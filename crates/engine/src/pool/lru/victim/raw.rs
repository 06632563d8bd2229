//! Victim policy `raw`, read after write, as InnoDB does it: a thread that finds a dirty page at the LRU tail writes it
//! itself and reads into its frame.

use super::Victims;
use crate::error::Result;
use crate::pool::Pool;

pub struct Raw;

impl Victims for Raw {
    fn make_clean(&self, pool: &Pool, _others_work: bool) -> Result<bool> {
        pool.flush_one_page()
    }
}
