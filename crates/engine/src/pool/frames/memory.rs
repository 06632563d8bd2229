//! The pool's memory: mapped by the system in large pieces where it can.
//!
//! Rules
//! 1. Nearly every access to another page of the database reads three unrelated places: the page table, the state of a
//!    frame, the page. With memory pages of 4 KiB each access would also miss the TLB, and each frame's first use would
//!    be a page fault.
//! 2. Large pieces are a hint to the system: a refusal changes nothing.
//! 3. Memory is zeroed and page-aligned (enough for direct I/O), and resident only after its first use. Released memory
//!    is in the same state ([`release`]). Only Linux promises that; on other systems no memory is released.

use memmap2::MmapMut;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// Maps that many zero bytes.
///
/// # Errors
/// The system has no such memory.
pub(super) fn map(bytes: usize) -> io::Result<MmapMut> {
    let mapping = MmapMut::map_anon(bytes)?;
    prefer_large_pieces(&mapping, true);
    Ok(mapping)
}

/// Requests huge pages, or that no more are made: the system makes a huge page from a few touched pages and fills the
/// rest with zeros, which would allocate released memory again.
pub(super) fn prefer_large_pieces(mapping: &MmapMut, large: bool) {
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = mapping.advise(if large { memmap2::Advice::HugePage } else { memmap2::Advice::NoHugePage });
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (mapping, large);
}

/// Gives the memory of a part of a mapping back to the system: it is zero from now on, and takes none until it is
/// touched again. Advice too: a refusal changes nothing, nor does a part that is not whole pages of the system.
///
/// # Safety
/// No thread has a reference to these bytes. Volatile loads find what was there, or zero.
pub(super) unsafe fn release(mapping: &MmapMut, offset: usize, len: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if offset.is_multiple_of(system_page_bytes()) && len.is_multiple_of(system_page_bytes()) {
        // SAFETY: private memory without a file is zero when it is released and touched again, and whole pages of the
        // system are in the range, so no byte outside of it changes; the caller answers for those inside.
        let _ = unsafe { mapping.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, len) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (mapping, offset, len);
}

/// Whether the memory of such pages can be released: they are whole pages of the system.
pub(super) fn can_release(page_bytes: usize) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    return page_bytes.is_multiple_of(system_page_bytes());
    #[cfg(not(all(target_os = "linux", not(miri))))]
    return page_bytes == 0;
}

/// Has the allocator give the system what it keeps of memory that was freed: much that was freed in small pieces stays
/// with the process otherwise. Takes milliseconds.
pub(crate) fn release_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it locks each arena of the allocator that it looks at, and releases only memory that is not in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Size of the system's pages.
#[cfg(all(target_os = "linux", not(miri)))]
fn system_page_bytes() -> usize {
    // SAFETY: it reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(usize::MAX)
}

/// Fetches the cache line of an address, where the processor can be asked to.
#[inline(always)]
pub(super) fn fetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing that the program sees and never faults, for any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// A slice that never changes its length, in memory of its own.
pub(super) struct Mapped<T> {
    start: NonNull<T>,
    len: usize,
    _mapping: MmapMut,
    _items: PhantomData<T>,
}

// SAFETY: it owns its items, as a boxed slice does.
unsafe impl<T: Send> Send for Mapped<T> {}
// SAFETY: shared, it returns shared items only.
unsafe impl<T: Sync> Sync for Mapped<T> {}

impl<T> Mapped<T> {
    /// `len` items (at least one).
    ///
    /// # Errors
    /// The system has no such memory.
    pub(super) fn new(len: usize, item: impl Fn() -> T) -> io::Result<Mapped<T>> {
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut mapping = map(bytes)?;
        let start = NonNull::new(mapping.as_mut_ptr().cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        for n in 0..len {
            // SAFETY: item `n` is inside the mapping, which is aligned to a page and no other thread has.
            unsafe { start.add(n).write(item()) };
        }
        Ok(Mapped { start, len, _mapping: mapping, _items: PhantomData })
    }
}

impl<T> Deref for Mapped<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` made all items; they live as long as the mapping, which this owns, and are not changed by any
        // thread but through their own shared references.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: the items are this one's alone, and no thread sees them again.
        unsafe { std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len).drop_in_place() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn items_are_made_once_and_dropped_once() {
        let one = Arc::new(7u64);
        let many = Mapped::new(1000, || one.clone()).unwrap();
        assert_eq!((many.len(), Arc::strong_count(&one)), (1000, 1001));
        assert!(many.iter().all(|item| **item == 7));
        drop(many);
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn whole_pages_are_released_and_nothing_else() {
        let page = system_page_bytes();
        let mut mapping = map(4 * page).unwrap();
        mapping.fill(7);
        for (offset, len, zeros) in [(page / 2, page, 0), (page, page / 2, 0), (page, 2 * page, 2)] {
            // SAFETY: no reference to the mapping's bytes lives here.
            unsafe { release(&mapping, offset, len) };
            assert_eq!(mapping.chunks(page).filter(|bytes| bytes.iter().all(|byte| *byte == 0)).count(), zeros);
            assert_eq!(mapping.iter().filter(|byte| **byte == 0).count(), zeros * page);
        }
    }

    #[test]
    fn what_no_system_has_is_an_error() {
        assert!(Mapped::new(usize::MAX / 4 * 3, || 0u64).is_err());
        assert!(map(usize::MAX / 4 * 3).is_err());
    }
}
