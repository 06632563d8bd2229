//! Random numbers and strings that workloads share.
//!
//! Rules
//! 1. Each client has a generator (wyrand), whose sequence the seed determines.
//! 2. Strings go into caller's buffers.

use fastrand::Rng;

/// The generator of client (or loader) `number` of a run: clients with the same seed have different sequences.
pub fn rng(seed: u64, number: u64) -> Rng {
    // SplitMix64's finalizer, so that neighbouring seeds share nothing.
    let mut z = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x2545_F491_4F6C_DD1D);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Rng::with_seed(z ^ (z >> 31))
}

const ALPHANUMERIC: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789XY";

/// Appends `len` random letters and digits to `out`. Two letters are a little more frequent than the others: 64 symbols
/// cost no division.
pub fn push_alphanumeric(rng: &mut Rng, out: &mut String, len: usize) {
    let mut bits = 0u64;
    for i in 0..len {
        if i % 10 == 0 {
            bits = rng.u64(..);
        }
        out.push(char::from(ALPHANUMERIC[(bits & 63) as usize]));
        bits >>= 6;
    }
}

/// Appends `len` random digits to `out`.
pub fn push_digits(rng: &mut Rng, out: &mut String, len: usize) {
    let mut number = 0u64;
    for i in 0..len {
        if i % 9 == 0 {
            number = (u64::from(rng.u32(..)) * 1_000_000_000) >> 32;
        }
        out.push(char::from(b'0' + (number % 10) as u8));
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_depend_on_seed_and_number() {
        let draw = |seed, number| rng(seed, number).u64(..);
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(1, 2), draw(1, 3));
    }

    #[test]
    fn strings_have_their_length_and_alphabet() {
        let mut rng = rng(7, 0);
        let mut text = String::new();
        push_alphanumeric(&mut rng, &mut text, 501);
        assert!(text.len() == 501 && text.bytes().all(|b| b.is_ascii_alphanumeric()));
        text.clear();
        push_digits(&mut rng, &mut text, 5000);
        assert!(text.len() == 5000 && text.bytes().all(|b| b.is_ascii_digit()));
        let zeros = text.bytes().filter(|b| *b == b'0').count();
        assert!((400..600).contains(&zeros), "{zeros} zeros of 5000 digits");
    }
}
