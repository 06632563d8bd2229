//! `auto` at opening: the stored probe of this device, or a new one (always with `probe_again`, and while no probe is
//! final); the pool and the device get its choices. Also `auto` for a database that is about to be created.
//!
//! Rules
//! 1. At opening: comes after recovery, when the scratch space that the store lends protects nothing, and before
//!    threads start.
//! 2. Options other than `auto` are used unchanged, without a measurement.
//! 3. Before a creation the doublewrite file is measured beyond the bytes that show whether it was used. A crash
//!    meanwhile leaves files that count as not created.

use crate::config::{FlushMethod, FlushNeighbors, Options, PageCompression};
use crate::context::Context;
use crate::error::Result;
use crate::page::PageOp;
use crate::probe::{
    Evidence, KnownDevice, NewDatabase, ProbeRecord, RECORD_AT, RECORD_BYTES, Region, choose_new, measure,
    needs_evidence, rows_page,
};
use crate::store::{DOUBLEWRITE_START_BYTES, packing_us};
use crate::types::PageNo;
use highwater_storage::{Device, StorageSet};

/// Finds out what `auto` means here and sets it. `None` if nothing is `auto` or the device is not measured.
///
/// # Errors
/// An I/O error.
pub(super) fn choose_for_device(ctx: &Context, options: &Options) -> Result<Option<ProbeRecord>> {
    if options.flush_neighbors != FlushNeighbors::Auto {
        return Ok(None);
    }
    let (store, page_bytes) = (&**ctx.pool.store(), ctx.pool.page_bytes());
    let Some(device) = store.identity() else { return Ok(None) };
    let kept = kept(ctx)?.filter(|record| record.is_about(&device, options.flush_method, page_bytes));
    let is_wanted = |record: &ProbeRecord| options.probe_again || !record.is_settled();
    let record = match (kept, store.scratch()) {
        (Some(record), scratch) if !is_wanted(&record) || scratch.is_none() => record,
        (_, None) => return Ok(None),
        (kept, Some(scratch)) => {
            // From here on what the scratch space held is gone.
            store.make_standalone()?;
            ctx.log.note_store_mark(store.mark());
            ctx.log.mark_durable()?;
            let evidence = take(scratch, options.flush_method, page_bytes)?;
            let taken = ProbeRecord::new(&device, options.flush_method, evidence);
            let earlier = kept.filter(|_| !options.probe_again);
            let record = match &earlier {
                Some(earlier) => taken.with_earlier(earlier),
                None => taken,
            };
            keep(ctx, &record)?;
            record
        }
    };
    debug_assert!(
        record.is_about(&device, options.flush_method, page_bytes),
        "the measurements of another device are used for {device:?}"
    );
    ctx.pool.set_flush_neighbors(record.choice.flush_neighbors);
    store.set_write_depth(record.choice.write_depth);
    Ok(Some(record))
}

/// Chooses what is `auto` of a new database; the probe of the device comes with it if there was one.
///
/// # Errors
/// An I/O error.
pub(super) fn choose(storage: &StorageSet, options: &Options) -> Result<(NewDatabase, Option<ProbeRecord>)> {
    let device = storage.data.identity().filter(|_| needs_evidence(options));
    let Some(device) = device.filter(|device| storage.doublewrite.identity().as_ref() == Some(device)) else {
        return Ok((choose_new(options, &KnownDevice::default()), None));
    };
    let evidence = measure_unused(&*storage.doublewrite, options.flush_method)?;
    let page = rows_page(MEASURED_PAGE_BYTES);
    let [lz4_us, zstd_us] = [PageCompression::Lz4, PageCompression::Zstd].map(|codec| packing_us(&page, codec));
    let chosen = choose_new(options, &KnownDevice { evidence, lz4_us, zstd_us });
    Ok((chosen, evidence.map(|evidence| ProbeRecord::new(&device, options.flush_method, evidence))))
}

/// Page size that is measured before one is chosen.
const MEASURED_PAGE_BYTES: usize = 4096;

/// Measures a file of which only the start is in use; `None` if it cannot grow to the needed length.
pub(super) fn measure_unused(file: &dyn Device, method: FlushMethod) -> Result<Option<Evidence>> {
    let region = Region::begin_behind(DOUBLEWRITE_START_BYTES, file, method == FlushMethod::DirectNoFsync)?;
    let evidence = region.is_whole().then(|| measure(&region, MEASURED_PAGE_BYTES)).transpose()?;
    region.end()?;
    Ok(evidence)
}

fn take(scratch: &dyn Device, method: FlushMethod, page_bytes: usize) -> Result<Evidence> {
    let region = Region::begin(scratch, method == FlushMethod::DirectNoFsync)?;
    let evidence = measure(&region, page_bytes)?;
    region.end()?;
    Ok(evidence)
}

fn kept(ctx: &Context) -> Result<Option<ProbeRecord>> {
    let page = ctx.pool.fix_s(PageNo(0))?;
    Ok(ProbeRecord::decode(&page))
}

/// In page 0, by a mini-transaction: durable with the next commit or checkpoint, its loss before that does no harm.
fn keep(ctx: &Context, record: &ProbeRecord) -> Result<()> {
    const _: () = assert!(RECORD_AT + RECORD_BYTES <= 4096);
    let mut mtr = ctx.mtr()?;
    let page = mtr.fix_x(PageNo(0))?;
    mtr.apply(page, &PageOp::Write { offset: RECORD_AT as u16, bytes: &record.encode() });
    mtr.commit();
    Ok(())
}
