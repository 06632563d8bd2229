//! The flushing of pages: the choices at the creation of the database, the stored probe of the device, and the defaults
//! of options. The options of the present or last opening are not stored in the files.

use highwater::PageNo;
use highwater::config::{OptionValue, Options};
use highwater::inspect::{Chosen, ProbeRecord, RawFile};
use serde_json::{Value, json};

/// The options that decide how pages are flushed.
const OPTIONS: &[&str] = &[
    "flush_method",
    "flush_neighbors",
    "doublewrite",
    "lru_scan_depth",
    "max_dirty_pages_pct",
    "max_dirty_pages_pct_lwm",
    "io_capacity",
    "victim_policy",
    "cleaner_interval_ms",
];

/// Lines (name and text) and JSON.
pub(super) fn view(file: &RawFile<'_>) -> (Vec<Vec<String>>, Value) {
    let first = file.page(PageNo(0)).ok();
    let record = first.as_ref().and_then(|page| ProbeRecord::decode(page));
    let chosen = first.as_ref().and_then(|page| Chosen::decode(page));
    let why = chosen.as_ref().map(|chosen| chosen.why.as_str()).filter(|why| !why.is_empty());
    let defaults: Vec<_> = Options::default().values().into_iter().filter(|(name, _)| OPTIONS.contains(name)).collect();
    let listed = defaults.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
    let auto = record.as_ref().map_or_else(|| "not measured yet".to_string(), ToString::to_string);
    let rows = vec![
        vec![
            "default flush options".to_string(),
            format!("{listed} (options given when the database was opened are not stored, so they are not shown here)"),
        ],
        vec!["auto selected".to_string(), auto],
        vec!["chosen at creation".to_string(), why.unwrap_or("nothing: every option was given").to_string()],
    ];
    let defaults: serde_json::Map<_, _> =
        defaults.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let chosen =
        chosen.as_ref().map(|chosen| json!({ "page_compression": chosen.page_compression.show(), "why": chosen.why }));
    (rows, json!({ "defaults": defaults, "probe": record.as_ref().map(probe_json), "chosen_at_creation": chosen }))
}

fn probe_json(record: &ProbeRecord) -> Value {
    let evidence = &record.evidence;
    json!({
        "taken_unix_s": record.taken_unix_s,
        "taken": record.date(),
        "device": record.device,
        "flush_method": record.flush_method.show(),
        "flush_neighbors": record.choice.flush_neighbors.show(),
        "write_depth": record.choice.write_depth,
        "pages": evidence.pages,
        "page_bytes": evidence.page_bytes,
        "sync_us": evidence.sync_us,
        "contiguous_us": evidence.contiguous_us,
        "scattered_us": evidence.scattered_us,
        "at_depth_us": evidence.at_depth_us,
        "measurements": record.measurements,
        "settled": record.is_settled(),
    })
}
