//! Exact decimal numbers: an integer and the number of its digits after the point.
//!
//! Rules
//! 1. Value = unscaled / 10^scale. `1.0` and `1.00` are equal and print differently.
//! 2. At most 38 digits. Nothing is rounded silently: a number that does not fit is an error or `None`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Most digits of a `Decimal`.
pub(crate) const MAX_PRECISION: u8 = 38;

/// An exact decimal number of up to 38 digits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decimal {
    // Two halves instead of an i128, so that a value needs an alignment of 8 bytes only.
    high: i64,
    low: u64,
    scale: u8,
}

/// 10^0 to 10^38.
const POWERS_OF_TEN: [i128; MAX_PRECISION as usize + 1] = {
    let mut powers = [1; MAX_PRECISION as usize + 1];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

#[inline]
pub(crate) fn power_of_ten(n: u8) -> Option<i128> {
    POWERS_OF_TEN.get(usize::from(n)).copied()
}

impl Decimal {
    /// `unscaled / 10^scale`: `Decimal::new(1995, 2)` is 19.95. A scale above 38 counts as 38.
    pub const fn new(unscaled: i128, scale: u8) -> Decimal {
        let scale = if scale > MAX_PRECISION { MAX_PRECISION } else { scale };
        Decimal { high: (unscaled >> 64) as i64, low: unscaled as u64, scale }
    }

    /// The digits without the point: 1995 for 19.95.
    pub const fn unscaled(self) -> i128 {
        (self.high as i128) << 64 | self.low as i128
    }

    /// Digits after the point.
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// The same number with `scale` digits after the point; `None` if digits would be lost or it grows beyond 38
    /// digits.
    pub fn rescale(self, scale: u8) -> Option<Decimal> {
        let unscaled = match scale.cmp(&self.scale) {
            Ordering::Equal => return Some(self),
            Ordering::Greater => within(self.unscaled().checked_mul(power_of_ten(scale - self.scale)?)?)?,
            Ordering::Less => {
                let divisor = power_of_ten(self.scale - scale)?;
                if self.unscaled() % divisor != 0 {
                    return None;
                }
                self.unscaled() / divisor
            }
        };
        let rescaled = Decimal::new(unscaled, scale);
        debug_assert_eq!(rescaled, self, "rule 2: a number is rounded to {scale} digits");
        Some(rescaled)
    }

    /// Sum, with the larger of the two scales; `None` on overflow.
    pub fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let sum = self.rescale(scale)?.unscaled().checked_add(other.rescale(scale)?.unscaled())?;
        Some(Decimal::new(within(sum)?, scale))
    }

    /// Difference, with the larger of the two scales; `None` on overflow.
    pub fn checked_sub(self, other: Decimal) -> Option<Decimal> {
        self.checked_add(Decimal::new(other.unscaled().checked_neg()?, other.scale))
    }

    /// The nearest binary floating point number.
    pub fn to_f64(self) -> f64 {
        // A quotient of two numbers that are exact is rounded once.
        const EXACT: std::ops::RangeInclusive<i128> = -(1 << f64::MANTISSA_DIGITS)..=1 << f64::MANTISSA_DIGITS;
        const EXACT_POWER: u8 = 22;
        match EXACT.contains(&self.unscaled()) && self.scale <= EXACT_POWER {
            true => self.unscaled() as f64 / 10f64.powi(i32::from(self.scale)),
            false => format!("{}e-{}", self.unscaled(), self.scale).parse().unwrap_or(f64::NAN),
        }
    }

    /// Whole part and fraction (the fraction scaled to 38 digits, of the same sign), which compare as the numbers do.
    fn parts(self) -> (i128, i128) {
        let unit = power_of_ten(self.scale).unwrap_or(1);
        let widen = power_of_ten(MAX_PRECISION - self.scale).unwrap_or(1);
        (self.unscaled() / unit, (self.unscaled() % unit) * widen)
    }
}

/// The number, if it has no more than 38 digits.
fn within(unscaled: i128) -> Option<i128> {
    Some(unscaled)
        .filter(|unscaled| power_of_ten(MAX_PRECISION).is_some_and(|end| unscaled.unsigned_abs() < end as u128))
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if self.scale == other.scale {
            return self.unscaled().cmp(&other.unscaled());
        }
        self.parts().cmp(&other.parts())
    }
}

impl From<i64> for Decimal {
    fn from(n: i64) -> Decimal {
        Decimal::new(i128::from(n), 0)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", self.unscaled().unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale == 0 { "" } else { "." };
        f.pad_integral(self.high >= 0, "", &format!("{whole}{point}{fraction}"))
    }
}

impl FromStr for Decimal {
    type Err = String;

    /// Reads `-12.50`: an optional sign, digits, an optional point and more digits.
    fn from_str(text: &str) -> Result<Decimal, String> {
        let bad = || format!("{text:?} is not a decimal number of at most {MAX_PRECISION} digits");
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        if whole.len() + fraction.len() == 0 || fraction.len() > usize::from(MAX_PRECISION) {
            return Err(bad());
        }
        let mut unscaled = 0i128;
        for c in whole.chars().chain(fraction.chars()) {
            let digit = c.to_digit(10).ok_or_else(bad)?;
            unscaled = unscaled.checked_mul(10).and_then(|n| n.checked_add(i128::from(digit))).ok_or_else(bad)?;
        }
        if unscaled >= 10i128.pow(u32::from(MAX_PRECISION)) {
            return Err(bad());
        }
        Ok(Decimal::new(if negative { -unscaled } else { unscaled }, fraction.len() as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_writes() {
        for text in ["0", "0.00", "-0.05", "19.95", "-7", "12345678901234567890123456789012345678"] {
            assert_eq!(text.parse::<Decimal>().unwrap().to_string(), text);
        }
        assert_eq!(".5".parse::<Decimal>().unwrap(), Decimal::new(5, 1));
        for text in ["", "-", ".", "1e3", "1.2.3", "١", "123456789012345678901234567890123456789"] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_keeps_every_digit() {
        let a = Decimal::new(1995, 2);
        assert_eq!(a.checked_add(Decimal::new(5, 3)).unwrap().to_string(), "19.955");
        assert_eq!(a.checked_sub(a).unwrap(), Decimal::from(0));
        assert_eq!(a.rescale(1), None);
        assert_eq!(Decimal::new(100, 2).rescale(0), Some(Decimal::from(1)));
        let nines = Decimal::new(10i128.pow(38) - 1, 0);
        assert_eq!((nines.checked_add(Decimal::new(1, 0)), nines.rescale(1)), (None, None));
        for text in
            ["0.3", "9007199254740993", "1.00000000000000011102230246251565404", "12345678901234567890.123456789"]
        {
            let nearest: f64 = text.parse().unwrap();
            assert_eq!(text.parse::<Decimal>().unwrap().to_f64(), nearest, "{text}");
        }
        assert_eq!(Decimal::new(i128::MAX / 2, 0).rescale(38), None);
    }

    proptest! {
        #[test]
        fn text_round_trips(n in -10i128.pow(38) + 1..10i128.pow(38), scale in 0u8..=38) {
            let d = Decimal::new(n, scale);
            let back: Decimal = d.to_string().parse().unwrap();
            prop_assert_eq!((back.unscaled(), back.scale()), (n, scale));
        }

        #[test]
        fn order_is_that_of_the_numbers(a in any::<i32>(), b in any::<i32>(), s in 0u8..12, t in 0u8..12) {
            let scaled = |n: i32, scale: u8| i128::from(n) * 10i128.pow(12 - u32::from(scale));
            let exact = scaled(a, s).cmp(&scaled(b, t));
            prop_assert_eq!(Decimal::new(a.into(), s).cmp(&Decimal::new(b.into(), t)), exact);
        }
    }
}
