//! A part of the pool that is written all the time, on cache lines of its own: a thread that only finds pages does not
//! pay for it.

use std::ops::Deref;

#[repr(align(64))]
pub struct Lone<T>(pub T);

impl<T> Deref for Lone<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
