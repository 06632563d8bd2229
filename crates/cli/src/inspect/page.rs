//! One page.

use super::files::{data_file, raw_file};
use super::{View, hex};
use crate::at_rest::AtRest;
use crate::failure::Failure;
use highwater::PageNo;
use highwater::inspect::{NodeInfo, PageContents, PageInfo, PageType, RawFile, UndoStreamInfo};
use serde_json::{Value, json};
use std::fmt::Write;

/// Shows a page.
///
/// # Errors
/// There is no database or no such page.
pub(super) fn view(files: &AtRest, number: u32, with_bytes: bool) -> Result<View, Failure> {
    let data = data_file(files)?;
    let file = raw_file(&*data)?;
    if u64::from(number) >= file.page_count() {
        let last = file.page_count().saturating_sub(1);
        return Err(Failure::Usage(format!("there is no page {number}; the last one is {last}")));
    }
    let page = file.look_at(PageNo(number))?;
    let (mut text, mut json) = header(&file, &page);
    let (contents_text, contents_json) = contents(&file, &page);
    let _ = write!(text, "\n{contents_text}");
    json["contents"] = contents_json;
    if with_bytes {
        let _ = write!(text, "\n{}", dump(&page.bytes));
        json["bytes"] = hex(&page.bytes).into();
    }
    let problem = page.problem.clone().map(|reason| format!("page {number} does not verify: {reason}"));
    Ok(View { text, json, problem })
}

fn header(file: &RawFile<'_>, page: &PageInfo) -> (String, Value) {
    let owner = file.owner(page.page_no);
    let in_use = match (file.extent(page.page_no.0 / 64), owner) {
        (None, _) => "not known: its extent map cannot be read".to_string(),
        (_, None) => "free".to_string(),
        (_, Some(owner)) => {
            let name = file.segment_name(owner).unwrap_or_else(|| "unknown".to_string());
            format!("in use by segment {owner}, {name}")
        }
    };
    let kind = match page.page_type {
        Some(_) if page.is_zero => "zeros, never written".to_string(),
        Some(page_type) => format!("{page_type:?}"),
        None => format!("unknown type {}", page.type_number),
    };
    let verdict = page.problem.clone().unwrap_or_else(|| "good".to_string());
    let lines = [
        ("page", page.page_no.to_string()),
        ("checksum, place", verdict),
        ("extent map", in_use.clone()),
        ("type", kind.clone()),
        ("level", page.level.to_string()),
        ("owner", page.owner.to_string()),
        ("LSN", page.lsn.to_string()),
        ("largest trx id", page.max_trx_id.to_string()),
        ("version", page.version.to_string()),
    ];
    let text = lines.iter().map(|(name, value)| format!("{name:<16} {value}\n")).collect();
    let json = json!({
        "page": page.page_no.0,
        "problem": page.problem,
        "extent_map": in_use,
        "segment": owner,
        "type": kind,
        "stored_page": page.stored_page_no.0,
        "level": page.level,
        "owner": page.owner,
        "lsn": page.lsn.0,
        "max_trx_id": page.max_trx_id,
        "version": page.version,
    });
    (text, json)
}

fn contents(file: &RawFile<'_>, page: &PageInfo) -> (String, Value) {
    match &page.contents {
        PageContents::Nothing(reason) => (format!("{reason}\n"), json!({ "nothing": reason })),
        PageContents::FileHeader(roots) => {
            let named: Vec<_> = roots.iter().enumerate().filter(|(_, root)| root.0 != 0).collect();
            let text = named.iter().map(|(slot, root)| format!("root slot {slot}: page {root}\n")).collect();
            (text, json!({ "roots": roots.iter().map(|root| root.0).collect::<Vec<_>>() }))
        }
        PageContents::ExtentMap(extents) => {
            let line = |(n, e): &(u32, highwater::inspect::Extent)| {
                format!("extent {n} (page {}): used {:016x}, owners {:?}\n", n * 64, e.used, e.owners)
            };
            let entry = |(n, e): &(u32, highwater::inspect::Extent)| {
                let used = format!("{:016x}", e.used);
                json!({ "extent": n, "used": used, "owners": e.owners })
            };
            (extents.iter().map(line).collect(), json!({ "extents": extents.iter().map(entry).collect::<Vec<_>>() }))
        }
        PageContents::Node(node) => node_contents(file, page, node),
        PageContents::Undo(undo) => {
            let mut text = format!(
                "previous page {}, next page {}, {} transactions before it\n",
                undo.previous, undo.next, undo.begun_before
            );
            let mut records = Vec::new();
            for (offset, bytes, what) in &undo.records {
                let _ = writeln!(text, "{offset:>6} {bytes:>5} bytes  {what}");
                records.push(json!({ "offset": offset, "bytes": bytes, "text": what }));
            }
            if let Some(problem) = &undo.problem {
                let _ = writeln!(text, "{problem}");
            }
            let json = json!({
                "previous": undo.previous.0, "next": undo.next.0, "begun_before": undo.begun_before,
                "records": records, "problem": undo.problem,
            });
            (text, json)
        }
        PageContents::UndoDirectory { next, id_limit, streams } => {
            let mut text = format!("next page {next}, transaction ids below {id_limit}\n");
            let mut list = Vec::new();
            for (i, UndoStreamInfo { first, last, purged, ended_at }) in streams.iter().enumerate() {
                let ended = ended_at.map_or(String::new(), |at| format!(", all ended, records end at {at}"));
                let _ = writeln!(text, "stream {i}: pages {first} to {last}, {purged} transactions purged{ended}");
                list.push(json!({
                    "first_page": first.0, "last_page": last.0, "purged_transactions": purged, "ended_at": ended_at,
                }));
            }
            (text, json!({ "next": next.0, "id_limit": id_limit, "streams": list }))
        }
        PageContents::Overflow { next, data_bytes } => {
            let text = format!("{data_bytes} bytes of data, next page {next}\n");
            (text, json!({ "data_bytes": data_bytes, "next": next.0 }))
        }
    }
}

fn node_contents(file: &RawFile<'_>, page: &PageInfo, node: &NodeInfo) -> (String, Value) {
    let is_leaf = page.page_type == Some(PageType::Leaf);
    let fence = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or_else(|| "open".to_string(), |bytes| hex(bytes));
    let mut text = format!(
        "{} records, {} bytes used, {} free, prefix of {} bytes\nfrom {}\nto   {}\n",
        node.records.len(),
        node.used_bytes,
        node.free_bytes,
        node.prefix_bytes,
        fence(&node.lower),
        fence(&node.upper)
    );
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for (slot, (key, value)) in node.records.iter().enumerate() {
        let shown = file.show_record(page.owner, key, value, is_leaf);
        let (shown_key, shown_value) = match shown.clone() {
            Some(shown) => shown,
            None if is_leaf => (String::new(), format!("{} bytes {}", value.len(), hex(&value[..value.len().min(24)]))),
            None => (String::new(), format!("value {}", hex(value))),
        };
        rows.push(format!("{slot:>5}  {}  {shown_key}  {shown_value}\n", hex(key)));
        records.push(json!({
            "slot": slot, "key": hex(key), "value": hex(value),
            "key_text": shown.as_ref().map(|shown| &shown.0), "value_text": shown.as_ref().map(|shown| &shown.1),
        }));
    }
    text.extend(rows);
    if let Some(child) = node.upper_child {
        let _ = writeln!(text, "right-most child: page {child}");
    }
    let json = json!({
        "lower_fence": node.lower.as_ref().map(|bytes| hex(bytes)),
        "upper_fence": node.upper.as_ref().map(|bytes| hex(bytes)),
        "prefix_bytes": node.prefix_bytes,
        "used_bytes": node.used_bytes,
        "free_bytes": node.free_bytes,
        "upper_child": node.upper_child.map(|page| page.0),
        "records": records,
    });
    (text, json)
}

/// Sixteen bytes a line; lines that repeat the previous one are omitted.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut last: Option<&[u8]> = None;
    let mut skipping = false;
    for (i, line) in bytes.chunks(16).enumerate() {
        if last == Some(line) {
            if !skipping {
                text.push_str("*\n");
            }
            skipping = true;
            continue;
        }
        (last, skipping) = (Some(line), false);
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain: String =
            line.iter().map(|&byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' }).collect();
        let _ = writeln!(text, "{:05x}  {}  {plain}", i * 16, hex.join(" "));
    }
    text
}
