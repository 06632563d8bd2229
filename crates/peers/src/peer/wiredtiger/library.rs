//! WiredTiger's library as safe Rust: connections, sessions, cursors.
//!
//! Rules
//! 1. A session, with its cursors, is used by one thread at a time, which `&mut` keeps; it may move between threads.
//! 2. Bytes that a cursor is on are shown to a closure and not kept: the cursor is reset afterwards, or moves on.
//! 3. A session keeps its connection open: the connection closes when the last of both is gone.

use crate::failure::{conflict, failed};
use highwater_bench::Result;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::ptr::null_mut;
use std::sync::Arc;

#[repr(C)]
struct RawConnection(c_void);
#[repr(C)]
struct RawSession(c_void);
#[repr(C)]
struct RawCursor(c_void);

unsafe extern "C" {
    fn hw_wt_open(home: *const c_char, config: *const c_char, connection: *mut *mut RawConnection) -> c_int;
    fn hw_wt_close(connection: *mut RawConnection) -> c_int;
    fn hw_wt_session(connection: *mut RawConnection, session: *mut *mut RawSession) -> c_int;
    fn hw_wt_session_close(session: *mut RawSession) -> c_int;
    fn hw_wt_create(session: *mut RawSession, uri: *const c_char, config: *const c_char) -> c_int;
    fn hw_wt_cursor(
        session: *mut RawSession,
        uri: *const c_char,
        config: *const c_char,
        cursor: *mut *mut RawCursor,
    ) -> c_int;
    fn hw_wt_begin(session: *mut RawSession) -> c_int;
    fn hw_wt_commit(session: *mut RawSession) -> c_int;
    fn hw_wt_rollback(session: *mut RawSession) -> c_int;
    fn hw_wt_sync_log(session: *mut RawSession) -> c_int;
    fn hw_wt_get(
        cursor: *mut RawCursor,
        key: *const u8,
        bytes: usize,
        value: *mut *const u8,
        value_bytes: *mut usize,
    ) -> c_int;
    fn hw_wt_insert(
        cursor: *mut RawCursor,
        key: *const u8,
        bytes: usize,
        value: *const u8,
        value_bytes: usize,
    ) -> c_int;
    fn hw_wt_remove(cursor: *mut RawCursor, key: *const u8, bytes: usize) -> c_int;
    fn hw_wt_near(cursor: *mut RawCursor, key: *const u8, bytes: usize, exact: *mut c_int) -> c_int;
    fn hw_wt_next(cursor: *mut RawCursor) -> c_int;
    fn hw_wt_prev(cursor: *mut RawCursor) -> c_int;
    fn hw_wt_reset(cursor: *mut RawCursor) -> c_int;
    fn hw_wt_entry(
        cursor: *mut RawCursor,
        key: *mut *const u8,
        bytes: *mut usize,
        value: *mut *const u8,
        value_bytes: *mut usize,
    ) -> c_int;
    fn wiredtiger_strerror(code: c_int) -> *const c_char;
    fn wiredtiger_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
}

const ROLLBACK: c_int = -31800;
const DUPLICATE_KEY: c_int = -31801;
const NOT_FOUND: c_int = -31803;

fn check(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        ROLLBACK => Err(conflict()),
        // SAFETY: the library returns a text that stays.
        code => Err(failed("wiredtiger", unsafe { CStr::from_ptr(wiredtiger_strerror(code)) }.to_string_lossy())),
    }
}

fn found(code: c_int) -> Result<bool> {
    if code == NOT_FOUND { Ok(false) } else { check(code).map(|()| true) }
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|e| failed("wiredtiger", e))
}

/// `11.3.1`.
pub(crate) fn version() -> String {
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: it writes three numbers to where they are.
    unsafe { wiredtiger_version(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// An open database.
pub(crate) struct Connection(*mut RawConnection);

// SAFETY: WiredTiger's connection handle may be used by any number of threads.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens a database.
    pub(crate) fn open(home: &str, config: &str) -> Result<Connection> {
        let (home, config, mut connection) = (text(home)?, text(config)?, null_mut());
        // SAFETY: the texts end with zero and live through the call, which writes one pointer.
        check(unsafe { hw_wt_open(home.as_ptr(), config.as_ptr(), &mut connection) })?;
        Ok(Connection(connection))
    }

    /// Closes it, with a checkpoint.
    pub(crate) fn close(self) -> Result<()> {
        let connection = std::mem::ManuallyDrop::new(self);
        // SAFETY: open, and not used again: the value is consumed and not dropped.
        check(unsafe { hw_wt_close(connection.0) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: open, and not used again.
        let _ = unsafe { hw_wt_close(self.0) };
    }
}

pub(crate) struct Session {
    raw: *mut RawSession,
    _connection: Arc<Connection>,
}

// SAFETY: WiredTiger lets a session move between threads that do not use it at the same time.
unsafe impl Send for Session {}

impl Session {
    pub(crate) fn open(connection: &Arc<Connection>) -> Result<Session> {
        let mut raw = null_mut();
        // SAFETY: the connection is open; the call writes one pointer.
        check(unsafe { hw_wt_session(connection.0, &mut raw) })?;
        Ok(Session { raw, _connection: connection.clone() })
    }

    /// Makes an object unless it is there.
    pub(crate) fn create(&mut self, uri: &str, config: &str) -> Result<()> {
        let (uri, config) = (text(uri)?, text(config)?);
        // SAFETY: the session is open; the texts live through the call.
        check(unsafe { hw_wt_create(self.raw, uri.as_ptr(), config.as_ptr()) })
    }

    /// A cursor; it is used only while the session is open, which its owner sees to.
    pub(crate) fn cursor(&mut self, uri: &str, config: &str) -> Result<Cursor> {
        let (uri, config, mut raw) = (text(uri)?, text(config)?, null_mut());
        // SAFETY: the session is open; the texts live through the call, which writes one pointer.
        check(unsafe { hw_wt_cursor(self.raw, uri.as_ptr(), config.as_ptr(), &mut raw) })?;
        Ok(Cursor(raw))
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { hw_wt_begin(self.raw) })
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { hw_wt_commit(self.raw) })
    }

    /// Rolls it back.
    pub(crate) fn rollback(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { hw_wt_rollback(self.raw) })
    }

    /// Makes durable what was committed.
    pub(crate) fn sync_log(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { hw_wt_sync_log(self.raw) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: open, and not used again; its cursors close with it.
        let _ = unsafe { hw_wt_session_close(self.raw) };
    }
}

/// A cursor of a session.
pub(crate) struct Cursor(*mut RawCursor);

// SAFETY: a cursor moves with its session, which owns it together with it.
unsafe impl Send for Cursor {}

/// Bytes that the library points at.
fn bytes<'b>(start: *const u8, len: usize) -> &'b [u8] {
    if len == 0 {
        return b"";
    }
    // SAFETY: the library says that this many bytes are there, and they stay until the cursor moves: callers show them
    // and keep nothing.
    unsafe { std::slice::from_raw_parts(start, len) }
}

impl Cursor {
    /// Shows the value of a key.
    pub(crate) fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let (mut value, mut len) = (std::ptr::null(), 0);
        // SAFETY: the cursor's session is open; the key lives through the call, which writes a pointer and a length.
        let code = unsafe { hw_wt_get(self.0, key.as_ptr(), key.len(), &mut value, &mut len) };
        if !found(code)? {
            return Ok(None);
        }
        let shown = look(bytes(value, len));
        self.reset()?;
        Ok(Some(shown))
    }

    /// Puts an entry; false if the cursor does not overwrite and the key is there.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        // SAFETY: the cursor's session is open; key and value live through the call, which copies them.
        let code = unsafe { hw_wt_insert(self.0, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        if code == DUPLICATE_KEY {
            self.reset()?;
            return Ok(false);
        }
        check(code).map(|()| true)
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the cursor's session is open; the key lives through the call.
        let code = unsafe { hw_wt_remove(self.0, key.as_ptr(), key.len()) };
        found(code).map(drop)?;
        self.reset()
    }

    fn reset(&mut self) -> Result<()> {
        // SAFETY: the cursor's session is open.
        check(unsafe { hw_wt_reset(self.0) })
    }

    fn step(&mut self, reverse: bool) -> Result<bool> {
        // SAFETY: the cursor's session is open.
        found(unsafe { if reverse { hw_wt_prev(self.0) } else { hw_wt_next(self.0) } })
    }

    /// Goes to the first key from `from` on, or the last one before `to`.
    fn seek(&mut self, from: &[u8], to: &[u8], reverse: bool) -> Result<bool> {
        let start = if reverse { to } else { from };
        if start.is_empty() {
            self.reset()?;
            return self.step(reverse);
        }
        let mut exact = 0;
        // SAFETY: the cursor's session is open; the key lives through the call, which writes one number.
        if !found(unsafe { hw_wt_near(self.0, start.as_ptr(), start.len(), &mut exact) })? {
            return Ok(false);
        }
        let is_within = if reverse { exact < 0 } else { exact >= 0 };
        if is_within { Ok(true) } else { self.step(reverse) }
    }

    /// Shows the entries of a range until `visit` breaks.
    pub(crate) fn scan(
        &mut self,
        (from, to): (&[u8], &[u8]),
        reverse: bool,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut there = self.seek(from, to, reverse)?;
        while there {
            let (mut key, mut len, mut value, mut value_len) = (std::ptr::null(), 0, std::ptr::null(), 0);
            // SAFETY: the cursor is on an entry; the call writes pointers and lengths.
            check(unsafe { hw_wt_entry(self.0, &mut key, &mut len, &mut value, &mut value_len) })?;
            let key = bytes(key, len);
            let is_over = if reverse { key < from } else { !to.is_empty() && key >= to };
            if is_over || visit(key, bytes(value, value_len)).is_break() {
                break;
            }
            there = self.step(reverse)?;
        }
        self.reset()
    }
}
