//! Notes: the setup, and the differences from the publication.

use super::claims::{PUBLISHED_OVER_RAW, PUBLISHED_OVER_WAR};
use super::plan::{data_bytes, seconds, threads};
use crate::experiment::Plan;

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let (warmup_s, seconds) = seconds(plan.scale);
    vec![
        format!(
            "{} MiB of data, pool a tenth of it; sysbench read-write with uniform rows, {} threads; {warmup_s} s of \
             warm-up, then {seconds} s measured; policies interleaved.",
            data_bytes(plan.scale) >> 20,
            threads(plan.scale)
        ),
        "raw: the page in the frame is written, then the new one is read into it (InnoDB's read after write). war: \
         the dirty page is deferred in its frame, the new one is read into another frame, of a small reserve, and \
         the dirty page is written afterwards (the publication copies the page instead, with as much memory). \
         lru-clean: the least recently used clean page is taken."
            .into(),
        format!(
            "Published: LRU-C {PUBLISHED_OVER_RAW} times stock MySQL and {PUBLISHED_OVER_WAR} times WAR, on servers \
             whose foreground threads flush single pages. A Highwater whose LRU flusher keeps free frames ahead of \
             demand rarely meets a dirty victim at all, so its policies differ by less."
        ),
    ]
}
