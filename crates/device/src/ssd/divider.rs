//! Exact division by a number known only at run time, with one multiplication.
//!
//! `n / d == (n * ceil(2^64 / d)) >> 64` for all 32-bit n and d >= 2 (Lemire, Kaser and Kurz, "Faster remainder by
//! direct computation", 2019). Mapping a slot to its erase unit is on the path of every write.

/// Divides by a fixed `d >= 2`.
#[derive(Clone, Copy)]
pub(super) struct Divider {
    magic: u64,
}

impl Divider {
    /// A divider by `d`, which must be at least 2.
    pub(super) fn new(d: u32) -> Divider {
        assert!(d >= 2, "division by {d}");
        Divider { magic: (u64::MAX / u64::from(d)) + 1 }
    }

    #[inline(always)]
    pub(super) fn divide(self, n: u32) -> u32 {
        ((u128::from(self.magic) * u128::from(n)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_operator() {
        for d in [2, 3, 7, 64, 192, 1024, 12_345, 65_536, 1_000_003, u32::MAX] {
            let divider = Divider::new(d);
            for n in (0..2000).chain([d - 1, d, d.saturating_add(1), u32::MAX - 1, u32::MAX]) {
                assert_eq!(divider.divide(n), n / d, "{n} / {d}");
            }
            for k in 1..1000u32 {
                if let Some(n) = d.checked_mul(k) {
                    assert_eq!((divider.divide(n), divider.divide(n - 1)), (k, k - 1));
                }
            }
        }
    }
}
