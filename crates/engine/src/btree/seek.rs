//! The target of a descent.

/// The target of a descent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'k> {
    /// The leaf that covers this key.
    Covers(&'k [u8]),
    /// The leaf that holds keys just below this one (for walking backward).
    Before(&'k [u8]),
    /// The left-most leaf.
    First,
    /// The right-most leaf.
    Last,
}
