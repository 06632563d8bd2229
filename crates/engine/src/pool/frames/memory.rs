//! The pool's memory: mapped by the system in large pieces where it can.
//!
//! Rules
//! 1. Nearly every look at another page of the database reads three places that lie anywhere: the page table, the state
//!    of a frame, the page. In pieces of 4 KiB each of them would wait for the processor's own page tables too, and
//!    each frame's first use for the system.
//! 2. To ask for large pieces is advice: a refusal changes nothing.
//! 3. Memory is zeroed and page-aligned (enough for direct I/O), and resident only once touched.

use memmap2::MmapMut;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// Maps that many zero bytes.
///
/// # Errors
/// The system has no such memory.
pub fn map(bytes: usize) -> io::Result<MmapMut> {
    let mapping = MmapMut::map_anon(bytes)?;
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = mapping.advise(memmap2::Advice::HugePage);
    Ok(mapping)
}

/// A slice that never changes its length, in memory of its own.
pub struct Mapped<T> {
    start: NonNull<T>,
    len: usize,
    _mapping: MmapMut,
    _items: PhantomData<T>,
}

// SAFETY: it owns its items, as a boxed slice does.
unsafe impl<T: Send> Send for Mapped<T> {}
// SAFETY: shared, it gives out shared items only.
unsafe impl<T: Sync> Sync for Mapped<T> {}

impl<T> Mapped<T> {
    /// `len` items (at least one).
    ///
    /// # Errors
    /// The system has no such memory.
    pub fn new(len: usize, item: impl Fn() -> T) -> io::Result<Mapped<T>> {
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut mapping = map(bytes)?;
        let start = NonNull::new(mapping.as_mut_ptr().cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        for n in 0..len {
            // SAFETY: item `n` lies inside the mapping, which is aligned to a page and nobody else has.
            unsafe { start.add(n).write(item()) };
        }
        Ok(Mapped { start, len, _mapping: mapping, _items: PhantomData })
    }
}

impl<T> Deref for Mapped<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` made all items; they live as long as the mapping, which this owns, and are changed by nobody
        // but through their own shared references.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: the items are this one's alone, and nobody sees them again.
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

    #[test]
    fn what_no_system_has_is_an_error() {
        assert!(Mapped::new(usize::MAX / 4, || 0u64).is_err());
        assert!(map(usize::MAX / 4).is_err());
    }
}
