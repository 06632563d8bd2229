//! The segments of a page store out of place.

use super::{View, columns};
use crate::at_rest::AtRest;
use crate::failure::Failure;
use highwater::inspect::{RawFile, StoreSegment, StoreSegments};
use serde_json::{Value, json};

/// The kind of store in words.
pub(super) fn summary(file: &RawFile<'_>) -> String {
    let Some(all) = file.store_segments() else { return "in place".into() };
    let live: u64 = all.used.iter().map(|segment| segment.live_bytes).sum();
    let of = u64::from(all.count) * all.segment_bytes;
    format!(
        "out of place, {} segments of {} bytes, {} with live pages; {live} bytes live ({} %)",
        all.count,
        all.segment_bytes,
        with_live_pages(&all),
        percent(live, of)
    )
}

/// The summary as JSON.
pub(super) fn summary_json(file: &RawFile<'_>) -> Value {
    let Some(all) = file.store_segments() else { return json!({ "kind": "in-place" }) };
    json!({
        "kind": "out-of-place",
        "segment_bytes": all.segment_bytes,
        "segments": all.count,
        "segments_with_live_pages": with_live_pages(&all),
        "live_bytes": all.used.iter().map(|segment| segment.live_bytes).sum::<u64>(),
    })
}

fn with_live_pages(all: &StoreSegments) -> usize {
    all.used.iter().filter(|segment| segment.live_pages > 0).count()
}

fn percent(part: u64, whole: u64) -> u64 {
    part * 100 / whole.max(1)
}

/// Each segment with live pages.
///
/// # Errors
/// [`Failure::Usage`]: there is no database, or its pages are in place.
pub(super) fn view(files: &AtRest, limit: usize) -> Result<View, Failure> {
    let data = super::files::data_file(files)?;
    let file = super::files::raw_file(&*data)?;
    let Some(all) = file.store_segments() else {
        let reason = format!("the pages of the database in {} are in place: it has no segments", files.dir().display());
        return Err(Failure::Usage(reason));
    };
    let mut live: Vec<&StoreSegment> = all.used.iter().filter(|segment| segment.live_pages > 0).collect();
    live.sort_by_key(|segment| (segment.live_bytes, segment.number));
    let heads = ["segment", "live bytes", "live %", "live pages", "batches", "age", "group"].map(String::from);
    let row = |segment: &&&StoreSegment| {
        let fill = percent(segment.live_bytes, all.segment_bytes);
        let numbers =
            [segment.live_bytes, fill, segment.live_pages, segment.batches, segment.age, segment.group.into()];
        [segment.number.to_string()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
    };
    let rows: Vec<Vec<String>> = [heads.to_vec()].into_iter().chain(live.iter().take(limit).map(|s| row(&s))).collect();
    let mut text = format!("{}\n\n{}", summary(&file), columns(&rows));
    if live.len() > limit {
        text.push_str(&format!("{} more; see --limit\n", live.len() - limit));
    }
    text.push_str(
        "\nage: batches begun in the whole store since the segment's last one; group: 5 is written most often\n",
    );
    let segments: Vec<Value> = live
        .iter()
        .map(|segment| {
            json!({
                "segment": segment.number,
                "written_bytes": segment.written_bytes,
                "live_bytes": segment.live_bytes,
                "live_pages": segment.live_pages,
                "batches": segment.batches,
                "age": segment.age,
                "group": segment.group,
            })
        })
        .collect();
    let json = json!({ "page_store": summary_json(&file), "segments": segments });
    Ok(View { text, json, problem: None })
}
