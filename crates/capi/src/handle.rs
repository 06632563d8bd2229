//! Handles, and pointers that come from C.
//!
//! Rules
//! 1. A handle is allocated and freed here. It begins with the tag of its type: a pointer to anything else, also to a
//!    handle of another type, is refused. A freed handle is refused only until its memory is reused.
//! 2. A parameter that is null where it may not be is refused by its name.
//! 3. [`Out::put`] writes a result to the caller's pointer after the call has succeeded.

use crate::failure::{Failure, Result};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A type that C knows by pointers alone.
pub(crate) trait Opaque {
    /// The contents of its handles.
    type Inner: Send + Sync;
    /// Tells it apart from the others.
    const TAG: u64;
    /// Its name in the header.
    const NAME: &'static str;
}

/// Declares what a handle of a type holds.
macro_rules! opaque {
    ($name:ident, $inner:ty, $tag:literal) => {
        impl $crate::handle::Opaque for $name {
            type Inner = $inner;
            const TAG: u64 = u64::from_be_bytes(*$tag);
            const NAME: &'static str = stringify!($name);
        }
    };
}
pub(crate) use opaque;

/// In the place of the tag once a handle is freed.
const FREED: u64 = 0;

#[repr(C)]
struct Handle<T> {
    tag: AtomicU64,
    inner: T,
}

/// A new handle.
pub(crate) fn new<O: Opaque>(inner: O::Inner) -> *mut O {
    Box::into_raw(Box::new(Handle { tag: AtomicU64::new(O::TAG), inner })).cast()
}

/// The tag of a handle, if the pointer can be one.
fn tag<'a, O: Opaque>(pointer: *const O) -> Result<&'a AtomicU64> {
    let pointer = pointer.cast::<AtomicU64>();
    if pointer.is_null() {
        return Err(Failure::Usage(format!("a null pointer was given for a {}", O::NAME)));
    }
    if !pointer.is_aligned() {
        return Err(Failure::Usage(format!("what was given as a {} is another value", O::NAME)));
    }
    // SAFETY: the header's rule: the caller's pointer is to a handle, and all handles begin with a tag.
    Ok(unsafe { &*pointer })
}

fn wrong<O: Opaque>(found: u64) -> Failure {
    match found {
        FREED => Failure::Usage(format!("the {} was freed", O::NAME)),
        _ => Failure::Usage(format!("what was given as a {} is another value", O::NAME)),
    }
}

/// The contents of a handle.
///
/// # Errors
/// The pointer is null, or not a handle of this type.
pub(crate) fn get<'a, O: Opaque>(pointer: *const O) -> Result<&'a O::Inner> {
    match tag(pointer)?.load(Ordering::Acquire) {
        // SAFETY: the tag says that it was made by `new` of this type; the header's rule: it is not freed meanwhile.
        found if found == O::TAG => Ok(unsafe { &(*pointer.cast::<Handle<O::Inner>>()).inner }),
        found => Err(wrong::<O>(found)),
    }
}

/// Takes a handle from its owner; `None` for null.
///
/// # Errors
/// It is not a handle of this type.
pub(crate) fn take<O: Opaque>(pointer: *mut O) -> Result<Option<O::Inner>> {
    if pointer.is_null() {
        return Ok(None);
    }
    match tag(pointer)?.compare_exchange(O::TAG, FREED, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: the tag says that it was made by `new` of this type, and was not taken before.
            let handle = unsafe { Box::from_raw(pointer.cast::<Handle<O::Inner>>()) };
            Ok(Some(handle.inner))
        }
        Err(found) => Err(wrong::<O>(found)),
    }
}

/// Frees a handle; another value is left alone.
pub(crate) fn free<O: Opaque>(pointer: *mut O) {
    // A panic while it is dropped ends here: no caller can get the error.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(take(pointer))));
}

/// A place for a result.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// The place that a parameter names; what is in it stays until the result is there.
    ///
    /// # Errors
    /// It is null.
    pub(crate) fn new(pointer: *mut T, name: &str) -> Result<Out<T>> {
        match pointer.is_null() || !pointer.is_aligned() {
            true => Err(Failure::Usage(format!("a null pointer was given for {name}, where a result is to go"))),
            false => Ok(Out(pointer)),
        }
    }

    /// The pointer, or NULL: the caller may not need this result.
    pub(crate) fn optional(pointer: *mut T) -> Option<Out<T>> {
        Out::new(pointer, "").ok()
    }

    /// Puts the result into its place.
    pub(crate) fn put(self, result: T) {
        // SAFETY: it is neither null nor misaligned; the header's rule: the caller's pointer is to a place of this
        // type.
        unsafe { self.0.write(result) }
    }
}

impl<T> Out<*mut T> {
    /// As `new`, for a new handle: null until the call has succeeded, so that it can be freed in any case.
    ///
    /// # Errors
    /// It is null.
    pub(crate) fn handle(pointer: *mut *mut T, name: &str) -> Result<Out<*mut T>> {
        let out = Out::new(pointer, name)?;
        // SAFETY: as in `put`.
        unsafe { out.0.write(std::ptr::null_mut()) };
        Ok(out)
    }
}

/// The elements of an array; none for null and a count of 0.
///
/// # Errors
/// It is null, and has elements.
pub(crate) fn slice<'a, T>(data: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() || !data.is_aligned() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::Usage(format!("{name}: {count} elements were said to be where none can be")));
    }
    // SAFETY: the header's rule: the caller's pointer is to `count` elements that do not change during the call.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// A structure of the caller; `None` for null.
///
/// # Errors
/// The pointer is misaligned.
pub(crate) fn structure<'a, T>(pointer: *const T, name: &str) -> Result<Option<&'a T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    slice(pointer, 1, name).map(<[T]>::first)
}

fn c_str<'a>(pointer: *const c_char, name: &str) -> Result<&'a CStr> {
    if pointer.is_null() {
        return Err(Failure::Usage(format!("a null pointer was given for {name}")));
    }
    // SAFETY: the header's rule: the caller's pointer is to characters that end with a NUL and do not change meanwhile.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// Text of the caller.
///
/// # Errors
/// It is null, or no UTF-8.
pub(crate) fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    let text = c_str(pointer, name)?;
    text.to_str().map_err(|_| Failure::Usage(format!("{name} is not UTF-8: {text:?}")))
}

/// The same; `None` for null.
///
/// # Errors
/// It is no UTF-8.
pub(crate) fn optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() { Ok(None) } else { text(pointer, name).map(Some) }
}

/// Texts of the caller.
///
/// # Errors
/// As [`text`].
pub(crate) fn texts<'a>(data: *const *const c_char, count: usize, name: &str) -> Result<Vec<&'a str>> {
    slice(data, count, name)?.iter().map(|pointer| text(*pointer, name)).collect()
}

/// A path of the caller: any bytes, where paths are bytes.
///
/// # Errors
/// It is null; elsewhere, if it is no UTF-8.
pub(crate) fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Ok(Path::new(std::ffi::OsStr::from_bytes(c_str(pointer, name)?.to_bytes())))
    }
    #[cfg(not(unix))]
    text(pointer, name).map(Path::new)
}

/// The value of a number of an enumeration.
///
/// # Errors
/// It has another type.
pub(crate) fn chosen<T: Copy>(number: i32, enumeration: &str, all: &[(i32, T)]) -> Result<T> {
    let found = all.iter().find(|(value, _)| *value == number);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| Failure::Usage(format!("{number} is not a {enumeration}")))
}

/// Text for C, which ends at its first NUL there: that becomes a blank.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Frees a text that a function has returned (`char **`); null is ignored.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn highwater_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: the header's rule: it is a text that a function of this library has returned with
        // `CString::into_raw`.
        drop(unsafe { CString::from_raw(string) });
    }
}
