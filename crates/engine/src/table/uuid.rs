//! UUIDs: 16 bytes, which compare bytewise.

use std::fmt;
use std::str::FromStr;

/// A UUID of any version. Shown as `67e55044-10b1-426f-9247-bb680e5fe0c8`; the order is that of its bytes, so those of
/// version 7 are in the order of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

/// Bytes of the five groups of digits.
const GROUPS: [usize; 5] = [4, 2, 2, 2, 6];

impl Uuid {
    /// The UUID of these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<[u8; 16]> for Uuid {
    fn from(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        for (n, bytes) in GROUPS.into_iter().enumerate() {
            let (group, tail) = rest.split_at(bytes);
            if n > 0 {
                f.write_str("-")?;
            }
            group.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            rest = tail;
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = String;

    /// Reads 32 hexadecimal digits, with the four dashes or without.
    fn from_str(text: &str) -> Result<Uuid, String> {
        parse(text).ok_or_else(|| format!("{text:?} is not a UUID such as 67e55044-10b1-426f-9247-bb680e5fe0c8"))
    }
}

fn parse(text: &str) -> Option<Uuid> {
    let mut digits = text.to_string();
    if digits.len() == 36 {
        let is_dash = |at: &usize| digits.as_bytes()[*at] == b'-';
        [8, 13, 18, 23].iter().all(is_dash).then_some(())?;
        digits.retain(|c| c != '-');
    }
    let is_number = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u128::from_str_radix(&digits, 16).ok()).flatten().map(|number| Uuid(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let text = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!((uuid.to_string().as_str(), uuid.as_bytes()[0], uuid.as_bytes()[15]), (text, 0x67, 0xc8));
        assert_eq!(text.replace('-', "").to_uppercase().parse(), Ok(uuid));
        for wrong in ["", "67e55044", "67e55044-10b1-426f-9247-bb680e5fe0cg", "67e5504410b1-426f-9247-bb680e5fe0c8-"] {
            assert!(wrong.parse::<Uuid>().is_err(), "{wrong}");
        }
        assert!("\u{fc}7e55044-10b1-426f-9247-bb680e5fe0c".parse::<Uuid>().is_err());
    }
}
