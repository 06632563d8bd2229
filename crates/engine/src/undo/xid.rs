//! Names of transactions in two-phase commit (XIDs).
//!
//! Text form: `FORMAT:GLOBAL:BRANCH`. Letters, digits, `-`, `_` and `.` are unchanged, every other byte is `%` and two
//! hexadecimal digits. So the text is one word for a shell, and each name has one text.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The name of a transaction that is prepared: a format id, a global transaction id that all databases of one
/// transaction share, and a branch qualifier that distinguishes them. (The XID of the X/Open standard.)
///
/// ```
/// use highwater::Xid;
/// let xid = Xid::new(1, b"order 17", b"stock")?;
/// assert_eq!(xid.to_string(), "1:order%2017:stock");
/// assert_eq!(xid.to_string().parse::<Xid>()?, xid);
/// # Ok::<(), highwater::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid {
    format_id: i32,
    global: Box<[u8]>,
    branch: Box<[u8]>,
}

impl Xid {
    /// Most bytes of the global transaction id, and of the branch qualifier.
    pub const MAX_PART_BYTES: usize = 64;

    /// A name. The bytes are the caller's; a coordinator that makes only one branch in each database can leave the
    /// branch qualifier empty.
    ///
    /// # Errors
    /// [`Error::BadXid`] if the global id is empty, a part is longer than 64 bytes, or the format id is -1, which means
    /// no name at all.
    pub fn new(format_id: i32, global: &[u8], branch: &[u8]) -> Result<Xid> {
        let refuse = |reason: String| Err(Error::BadXid { reason });
        if format_id == -1 {
            return refuse("the format id -1 means that there is no name".to_string());
        }
        if global.is_empty() {
            return refuse("the global transaction id is empty".to_string());
        }
        for (part, what) in [(global, "global transaction id"), (branch, "branch qualifier")] {
            if part.len() > Xid::MAX_PART_BYTES {
                let (has, most) = (part.len(), Xid::MAX_PART_BYTES);
                return refuse(format!("the {what} has {has} bytes; at most {most} are allowed"));
            }
        }
        Ok(Xid { format_id, global: global.into(), branch: branch.into() })
    }

    /// Says how the other two parts are read; the engine ignores it.
    pub fn format_id(&self) -> i32 {
        self.format_id
    }

    /// The global transaction id.
    pub fn global(&self) -> &[u8] {
        &self.global
    }

    /// The branch qualifier.
    pub fn branch(&self) -> &[u8] {
        &self.branch
    }
}

/// A part of a name as text.
struct Part<'a>(&'a [u8]);

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => write!(f, "{}", *byte as char),
            other => write!(f, "%{other:02X}"),
        })
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.format_id, Part(&self.global), Part(&self.branch))
    }
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xid({self})")
    }
}

/// The bytes of a part that was written by [`Part`].
fn part_of(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        (bytes, rest) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                (bytes, tail)
            }
            (b'%', _) => return None,
            (byte, tail) => {
                bytes.push(*byte);
                (bytes, tail)
            }
        };
    }
    Some(bytes)
}

impl FromStr for Xid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Xid> {
        let parts: Vec<&str> = text.split(':').collect();
        let bad = || {
            let reason = format!("{text:?} is not written FORMAT:GLOBAL:BRANCH, as 1:order-17:stock");
            Error::BadXid { reason }
        };
        let [format_id, global, branch] = parts[..] else { return Err(bad()) };
        let format_id = format_id.parse().map_err(|_| bad())?;
        let (Some(global), Some(branch)) = (part_of(global), part_of(branch)) else { return Err(bad()) };
        Xid::new(format_id, &global, &branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_text_and_its_limits() {
        for (format_id, global, branch) in [
            (1, &b"order-17"[..], &b"stock"[..]),
            (0, b"a", b""),
            (i32::MIN, &[0, 255, b':', b'%'], b" \n"),
            (i32::MAX, &[7; 64], &[200; 64]),
        ] {
            let xid = Xid::new(format_id, global, branch).unwrap();
            assert_eq!((xid.format_id(), xid.global(), xid.branch()), (format_id, global, branch));
            let text = xid.to_string();
            assert_eq!(text.parse::<Xid>().unwrap(), xid);
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
        }
        for (format_id, global, branch) in
            [(-1, &b"a"[..], &b""[..]), (1, b"", b"a"), (1, &[1; 65], b""), (1, b"a", &[1; 65])]
        {
            assert!(matches!(Xid::new(format_id, global, branch), Err(Error::BadXid { .. })));
        }
        for text in ["", "1", "1:a", "1:a:b:c", "x:a:b", "1:%:b", "1:%2:b", "1:%xy:b", "1::b", "-1:a:b", "1:%é:b"] {
            assert!(matches!(text.parse::<Xid>(), Err(Error::BadXid { .. })), "{text}");
        }
    }
}
