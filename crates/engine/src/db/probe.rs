//! `auto` at opening: the kept probe of this device, or a new one (always with `probe_again`); what it chose goes to
//! the pool and the device.
//!
//! Rules
//! 1. Comes after recovery, when the scratch space that the store lends protects nothing, and before threads start.
//! 2. Options other than `auto` are used as they are; nothing is measured for them.

use crate::config::{FlushMethod, FlushNeighbors, Options};
use crate::context::Context;
use crate::error::Result;
use crate::page::PageOp;
use crate::probe::{Evidence, RECORD_AT, RECORD_BYTES, Record, Region, measure};
use crate::types::PageNo;
use highwater_storage::Device;

/// Finds out what `auto` means here and sets it. `None` if nothing is `auto` or the device is not measured.
///
/// # Errors
/// An I/O error.
pub(super) fn settle(ctx: &Context, options: &Options) -> Result<Option<Record>> {
    if options.flush_neighbors != FlushNeighbors::Auto {
        return Ok(None);
    }
    let (store, page_bytes) = (&**ctx.pool.store(), ctx.pool.page_bytes());
    let Some(device) = store.identity() else { return Ok(None) };
    let kept = kept(ctx)?.filter(|record| record.is_about(&device, options.flush_method, page_bytes));
    let record = match (kept, store.scratch()) {
        (Some(record), scratch) if !options.probe_again || scratch.is_none() => record,
        (_, None) => return Ok(None),
        (_, Some(scratch)) => {
            // From here on what the scratch space held is gone.
            store.settle()?;
            let evidence = take(scratch, options.flush_method, page_bytes)?;
            let record = Record::new(&device, options.flush_method, evidence);
            keep(ctx, &record)?;
            record
        }
    };
    ctx.pool.set_flush_neighbors(record.choice.flush_neighbors);
    store.set_write_depth(record.choice.write_depth);
    Ok(Some(record))
}

fn take(scratch: &dyn Device, method: FlushMethod, page_bytes: usize) -> Result<Evidence> {
    let region = Region::begin(scratch, method == FlushMethod::DirectNoFsync)?;
    let evidence = measure(&region, page_bytes)?;
    region.end()?;
    Ok(evidence)
}

fn kept(ctx: &Context) -> Result<Option<Record>> {
    let page = ctx.pool.fix_s(PageNo(0))?;
    Ok(Record::decode(&page))
}

/// In page 0, by a mini-transaction: durable with the next commit or checkpoint, its loss before that does no harm.
fn keep(ctx: &Context, record: &Record) -> Result<()> {
    const _: () = assert!(RECORD_AT + RECORD_BYTES <= 4096);
    let mut mtr = ctx.mtr()?;
    let page = mtr.fix_x(PageNo(0))?;
    mtr.apply(page, &PageOp::Write { offset: RECORD_AT as u16, bytes: &record.encode() });
    mtr.commit();
    Ok(())
}
