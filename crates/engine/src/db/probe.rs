//! `auto` at opening: the kept probe of this device, or a new one (always with `probe_again`); what it chose goes to the pool and the device.
//!
//! Rules
//! 1. Comes after recovery, when the doublewrite file protects nothing any more, and before threads start.
//! 2. Options that say what they want are not measured and win.

use crate::config::{FlushMethod, FlushNeighbors, Options};
use crate::error::Result;
use crate::mtr::Context;
use crate::page::PageOp;
use crate::probe::{RECORD_AT, RECORD_BYTES, Record, Region, measure};
use crate::types::PageNo;
use highwater_storage::StorageSet;

/// Finds out what `auto` means here and sets it. `None` if nothing is `auto` or the device is not measured.
///
/// # Errors
/// An I/O error.
pub(super) fn settle(storage: &StorageSet, ctx: &Context, options: &Options) -> Result<Option<Record>> {
    if options.flush_neighbors != FlushNeighbors::Auto {
        return Ok(None);
    }
    let Some(device) = storage.data.identity() else { return Ok(None) };
    let page_bytes = ctx.pool.page_bytes();
    let kept = kept(ctx)?.filter(|record| record.is_about(&device, options.flush_method, page_bytes));
    // The scratch space must be of the device that it is about.
    let can_measure = storage.doublewrite.identity().as_ref() == Some(&device);
    let record = match kept {
        Some(record) if !(options.probe_again && can_measure) => record,
        _ if !can_measure => return Ok(None),
        _ => {
            let record = take(storage, &device, options.flush_method, page_bytes)?;
            keep(ctx, &record)?;
            record
        }
    };
    ctx.pool.set_flush_neighbors(record.choice.flush_neighbors);
    storage.data.set_write_depth(record.choice.write_depth);
    Ok(Some(record))
}

fn take(storage: &StorageSet, device: &str, method: FlushMethod, page_bytes: usize) -> Result<Record> {
    // From here on the copies in the doublewrite file are gone: their pages must be durable in place.
    storage.data.set_len_bytes(storage.data.len_bytes()?)?;
    storage.data.sync()?;
    let region = Region::begin(&*storage.doublewrite, method == FlushMethod::DirectNoFsync)?;
    let evidence = measure(&region, page_bytes)?;
    region.end()?;
    Ok(Record::new(device, method, evidence))
}

fn kept(ctx: &Context) -> Result<Option<Record>> {
    let page = ctx.pool.fix_s(PageNo(0))?;
    Ok(Record::decode(&page))
}

/// In page 0, by a mini-transaction: durable with the next commit or checkpoint, lost without harm before.
fn keep(ctx: &Context, record: &Record) -> Result<()> {
    const _: () = assert!(RECORD_AT + RECORD_BYTES <= 4096);
    let mut mtr = ctx.mtr()?;
    let page = mtr.fix_x(PageNo(0))?;
    mtr.apply(page, &PageOp::Write { offset: RECORD_AT as u16, bytes: &record.encode() });
    mtr.commit();
    Ok(())
}
