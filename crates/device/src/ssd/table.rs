//! Large tables with random accesses. They are on huge pages if the system has them, which avoids most TLB misses (half
//! of the time of a write on a 32 GiB device).

use crate::error::{DeviceError, Result};

/// Allocates memory for `len` values; if there is not enough, the error says what to do.
pub(crate) fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(len).map_err(|_| too_large(len as f64 * size_of::<T>() as f64))?;
    Ok(room)
}

/// The error for `bytes` of memory that cannot be had.
pub(crate) fn too_large(bytes: f64) -> DeviceError {
    let gib = bytes / f64::from(1 << 30);
    DeviceError::Config(format!(
        "the emulation needs {gib:.1} GiB of memory for one of its tables, more than is available; use a smaller \
         --capacity"
    ))
}

/// A table of `len` copies of `value`. On Linux the memory is advised to be huge pages before it is touched.
pub(crate) fn table<T: Copy>(len: usize, value: T) -> Result<Box<[T]>> {
    let mut table = room(len)?;
    advise_huge(table.as_mut_ptr() as usize, len * size_of::<T>());
    table.resize(len, value);
    Ok(table.into_boxed_slice())
}

#[cfg(target_os = "linux")]
fn advise_huge(address: usize, bytes: usize) {
    const PAGE: usize = 4096;
    const HUGE: usize = 2 << 20;
    let first = address.next_multiple_of(PAGE);
    let end = (address + bytes) / PAGE * PAGE;
    if bytes < 2 * HUGE || end <= first {
        return;
    }
    // SAFETY: the range is within one live allocation, and MADV_HUGEPAGE changes neither contents nor access rights. A
    // refusal is harmless.
    unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: usize, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_any_size_hold_their_value() {
        for len in [0, 1, 1000, 3 << 20] {
            let table = table(len, 7u32).unwrap();
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|v| *v == 7));
        }
    }
}
