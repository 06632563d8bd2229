//! The pool with a real log and mini-transactions over memory.

mod crash;
#[cfg(target_pointer_width = "64")]
mod dirty_model;
mod eviction;
mod finding;
mod flushing;
mod load_runs;
#[cfg(target_pointer_width = "64")]
mod lookup_model;

use crate::context::Context;
use crate::page::{PageOp, PageType};
use crate::space::Space;
use crate::types::{Lsn, PageNo, SegmentId};

const SEGMENT: SegmentId = SegmentId(99);
const FIELD: u16 = 64;

fn new_page(ctx: &Context, space: &Space) -> PageNo {
    let new_page = || {
        let mut mtr = ctx.mtr_with(4096, 1)?;
        let page_no = space.allocate(&mut mtr, SEGMENT, None)?;
        let page = mtr.new_page(page_no);
        mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: SEGMENT.0 });
        mtr.commit();
        Ok(page_no)
    };
    space.with_room(ctx, new_page).unwrap()
}

fn put(ctx: &Context, page: PageNo, value: u64) -> Lsn {
    let mut mtr = ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    mtr.apply(latched, &PageOp::Write { offset: FIELD, bytes: &value.to_le_bytes() });
    mtr.commit()
}

fn get(ctx: &Context, page: PageNo) -> u64 {
    let guard = ctx.pool.fix_s(page).unwrap();
    u64::from_le_bytes(guard[FIELD as usize..FIELD as usize + 8].try_into().unwrap())
}

fn try_put(ctx: &Context, page: PageNo, value: u64) -> crate::error::Result<Lsn> {
    let mut mtr = ctx.mtr()?;
    let latched = mtr.fix_x(page)?;
    mtr.apply(latched, &PageOp::Write { offset: FIELD, bytes: &value.to_le_bytes() });
    Ok(mtr.commit())
}
