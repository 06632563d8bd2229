//! Two-phase commit: the calls of the server as the coordinator of its binary log, and XA.

use crate::abi::{Bytes, Context, XidParts};
use crate::database::Database;
use crate::failure::{Code, guarded};
use crate::session::Session;
use highwater::{Result, Xid};

impl XidParts {
    fn xid(&self) -> Result<Xid> {
        Xid::new(self.format_id, self.global.elements(), self.branch.elements())
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_prepare(session: &mut Session, xid: &XidParts) -> i32 {
    guarded(|| {
        let xid = xid.xid()?;
        session.prepare(xid)?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_commit_ordered(session: &mut Session) {
    guarded(|| {
        if let Some(prepared) = session.prepared.take() {
            session.ordered = Some(prepared.commit_ordered());
        }
        Ok(Code::Ok)
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_recover(database: &Database, visit: extern "C" fn(Context, &XidParts), context: Context) -> i32 {
    guarded(|| {
        for prepared in database.db.prepared().iter().filter(|prepared| prepared.is_detached) {
            let xid = &prepared.xid;
            let (global, branch) = (Bytes::of(xid.global()), Bytes::of(xid.branch()));
            visit(context, &XidParts { format_id: xid.format_id(), global, branch });
        }
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_finish(database: &Database, xid: &XidParts, commit: u32) -> i32 {
    guarded(|| {
        database.db.finish_prepared(&xid.xid()?, commit != 0)?;
        database.postponed.go_on();
        Ok(Code::Ok)
    })
}
