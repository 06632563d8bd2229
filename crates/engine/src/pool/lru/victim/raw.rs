//! Victim policy `raw`, read after write, as InnoDB does it: a thread that finds a dirty page at the LRU tail writes it
//! itself and reads into its frame.

use super::victims::Victims;
use crate::error::Result;
use crate::pool::lru::cache::PageCache;

pub(super) struct Raw;

impl Victims for Raw {
    fn make_clean(&self, cache: &PageCache, _others_work: bool) -> Result<bool> {
        cache.flush_one_page()
    }
}
