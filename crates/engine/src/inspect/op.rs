//! A group of redo as text.

use crate::page::{PageOp, node};
use crate::table::DateTime;
use crate::types::PageNo;

/// Bytes of a key or value shown.
const SHOWN_BYTES: usize = 24;

/// One operation of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// The page it changes.
    pub page: PageNo,
    /// Its name.
    pub name: &'static str,
    /// Its arguments as text.
    pub arguments: String,
    /// Bytes of redo.
    pub bytes: usize,
}

/// The operations of a group's payload, and why reading them ended early, if it did.
pub fn operations(payload: &[u8]) -> (Vec<OpInfo>, Option<String>) {
    let mut found = Vec::new();
    let mut rest = payload;
    while !rest.is_empty() {
        match PageOp::decode(rest) {
            Ok((page, op, bytes)) => {
                found.push(OpInfo { page, name: op.name(), arguments: arguments(&op), bytes });
                rest = &rest[bytes..];
            }
            Err(error) => return (found, Some(error.to_string())),
        }
    }
    (found, None)
}

/// Bytes in hexadecimal, cut when long.
pub(super) fn hex(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > SHOWN_BYTES { format!("{shown}.. ({} bytes)", bytes.len()) } else { shown }
}

fn fence(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "open".to_string(), hex)
}

fn arguments(op: &PageOp<'_>) -> String {
    match op {
        PageOp::Format { page_type, level, owner } => format!("{page_type:?} level {level} owner {owner}"),
        PageOp::Write { offset, bytes } => format!("at {offset}: {}", hex(bytes)),
        PageOp::SetBits { offset, mask } | PageOp::ClearBits { offset, mask } => format!("at {offset}: {mask:#x}"),
        PageOp::NodeFormat { lower, upper, upper_child } => {
            format!("from {} to {} upper child {upper_child}", fence(*lower), fence(*upper))
        }
        PageOp::NodeInsert { slot, key, value } => format!("slot {slot} key {} value {}", hex(key), hex(value)),
        PageOp::NodeRemove { slot } => format!("slot {slot}"),
        PageOp::NodeSplice { slot, at, remove, bytes } => {
            format!("slot {slot} at {at}: {remove} bytes by {}", hex(bytes))
        }
        PageOp::NodeAppend { packed } => format!("{} bytes of records", packed.len()),
        PageOp::NodeRefence { from, to, lower, upper, upper_child } => {
            let (lower, upper) = (fence(*lower), fence(*upper));
            format!("keep {from}..{to} from {lower} to {upper} upper child {upper_child}")
        }
        PageOp::LeafChanges { max_trx_id, canonical, changes } => {
            let again = if *canonical { ", carried forward" } else { "" };
            format!("{} changes by transactions up to {max_trx_id}{again}", node::changes(changes).count())
        }
        PageOp::NodeSetChild { slot, child } => format!("slot {slot} child {child}"),
        PageOp::CommitTime { trx_id, unix_us } => {
            let at = DateTime::from_unix_us(i64::try_from(*unix_us).unwrap_or(i64::MAX));
            if *trx_id == 0 { format!("{at}Z") } else { format!("{at}Z commits transaction {trx_id}") }
        }
    }
}
