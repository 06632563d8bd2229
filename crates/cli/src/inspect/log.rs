//! The redo log: headers and groups.

use super::View;
use super::files::data_file;
use crate::at_rest::AtRest;
use crate::failure::Failure;
use highwater::inspect::{LogDamage, LogHeader, LogInfo, Lsn, RawFile, Window, look, operations};
use highwater_storage::{Device, SetFile};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of groups in memory at a time.
const WINDOW_BYTES: usize = 4 << 20;

/// Reads the log in a folder, or says why not.
pub(super) fn read(files: &AtRest) -> Result<LogInfo, String> {
    look(&*device(files)?).map_err(|error| error.to_string())
}

fn device(files: &AtRest) -> Result<Arc<dyn Device>, String> {
    files.open(SetFile::Redo).map_err(|error| error.to_string())
}

/// The damage of a log that continues after unreadable bytes.
pub(super) fn damage(log: &LogInfo, files: &AtRest) -> Option<String> {
    let damage = log.scan.as_ref()?.damage?;
    Some(damage.describe(&files.redo().display().to_string()))
}

/// The newest `limit` groups: end LSN and payload.
fn newest_groups(log: &LogInfo, files: &AtRest, limit: usize) -> Result<VecDeque<(Lsn, Vec<u8>)>, String> {
    let mut newest = VecDeque::new();
    let keep = |window: &Window| {
        for (end_lsn, payload) in window.groups() {
            newest.push_back((end_lsn, payload.to_vec()));
            if newest.len() > limit {
                newest.pop_front();
            }
        }
    };
    log.each_window(&*device(files)?, WINDOW_BYTES, keep).map_err(|error| error.to_string())?;
    Ok(newest)
}

fn header_json(header: &Result<LogHeader, String>) -> Value {
    match header {
        Ok(header) => json!({
            "database_id": format!("{:016x}", header.database_id),
            "size_bytes": header.size_bytes,
            "generation": header.generation,
            "sequence": header.sequence,
            "checkpoint_lsn": header.checkpoint_lsn.0,
            "durable_lsn": header.durable_lsn.0,
        }),
        Err(reason) => json!({ "problem": reason }),
    }
}

fn damage_json(damage: LogDamage) -> Value {
    json!({
        "offset": damage.offset,
        "lsn": damage.lsn.0,
        "durable_lsn": damage.durable_lsn.0,
        "newest_header_lost": damage.header_lost,
    })
}

/// The log without its groups.
pub(super) fn summary_json(log: &LogInfo) -> Value {
    json!({
        "headers": log.headers.iter().map(header_json).collect::<Vec<_>>(),
        "newest_header": log.newest,
        "ring_bytes": log.ring_bytes,
        "checkpoint_lsn": log.scan.as_ref().map(|scan| scan.checkpoint_lsn.0),
        "end_lsn": log.scan.as_ref().map(|scan| scan.end_lsn.0),
        "groups": log.scan.as_ref().map(|scan| scan.groups),
        "damage": log.scan.as_ref().and_then(|scan| scan.damage).map(damage_json),
    })
}

/// The log with its newest `limit` groups.
///
/// # Errors
/// There is no database, or no log that can be read.
pub(super) fn view(files: &AtRest, limit: usize) -> Result<View, Failure> {
    let log = read(files).map_err(Failure::Failed)?;
    let mut text = String::new();
    for (slot, header) in log.headers.iter().enumerate() {
        let counts = if log.newest == Some(slot) { ", the current one" } else { "" };
        let _ = match header {
            Ok(h) => writeln!(
                text,
                "header {slot}: database {:016x}, {} bytes, generation {}, sequence {}, checkpoint LSN {}, durable LSN \
                 {}{counts}",
                h.database_id, h.size_bytes, h.generation, h.sequence, h.checkpoint_lsn, h.durable_lsn
            ),
            Err(reason) => writeln!(text, "header {slot}: {reason}"),
        };
    }
    let mut json = summary_json(&log);
    let Some(scan) = &log.scan else {
        let problem = Some("the redo log has no header to start from, or another length than its header says".into());
        return Ok(View { text, json, problem });
    };
    let bytes = scan.end_lsn.0 - scan.checkpoint_lsn.0;
    let _ = writeln!(text, "end LSN {}: {bytes} bytes in {} groups since the checkpoint", scan.end_lsn, scan.groups);
    let mut problem = damage(&log, files);
    if let Some(damage) = &problem {
        let _ = writeln!(text, "{damage}");
    }
    let data = data_file(files).ok();
    let file = data.as_ref().and_then(|data| RawFile::open(&**data).ok());
    let name = |page| file.as_ref().and_then(|file| file.name_of(page));
    let mut groups = Vec::new();
    for (end_lsn, payload) in newest_groups(&log, files, limit).map_err(Failure::Failed)? {
        let (operations, broken) = operations(&payload);
        let _ = writeln!(text, "\ngroup ending at LSN {end_lsn}, {} bytes", payload.len());
        let mut list = Vec::new();
        for op in &operations {
            let of = name(op.page).map_or_else(String::new, |name| format!(" ({name})"));
            let _ = writeln!(text, "  page {}{of}: {} {}", op.page, op.name, op.arguments);
            list.push(json!({ "page": op.page.0, "operation": op.name, "arguments": op.arguments, "bytes": op.bytes }));
        }
        if let Some(reason) = broken {
            let _ = writeln!(text, "  {reason}");
            problem.get_or_insert(format!("the group ending at LSN {end_lsn} does not decode: {reason}"));
        }
        groups.push(json!({ "end_lsn": end_lsn.0, "bytes": payload.len(), "operations": list }));
    }
    json["newest_groups"] = Value::Array(groups);
    Ok(View { text, json, problem })
}
