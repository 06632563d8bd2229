//! Lost pages. A page that could not be read when its changes had to be applied is overwritten with a lost page: the
//! redo of the changes is gone, so the old bytes must not count as the page's contents if they become readable again.
//!
//! ```text
//! 32  bytes of the reason  u16
//! 34  the reason           UTF-8
//! ```
//!
//! Rules
//! 1. A lost page verifies, and [`super::check_contents`] refuses it: each read of it is an error, and it never enters
//!    the pool.
//! 2. It stays lost until redo or a user formats it. Redo before that is skipped.

use super::PageType;
use super::bytes::{PageBytes, put_u16};
use super::header::{self, HEADER_BYTES};
use crate::error::{Error, PageDamage};
use crate::types::{Lsn, PageNo, cut_text};

const REASON: usize = HEADER_BYTES + 2;
/// A page's size does not matter for what is said of it.
const MAX_REASON_BYTES: usize = 300;

/// Makes `page` a lost page. `owner` is its index, 0 if that is not known; `lsn` is at or after all its changes that
/// are in the log.
pub(crate) fn format(page: &mut [u8], owner: u32, lsn: Lsn, reason: &str) {
    header::format(page, PageType::Lost, 0, owner);
    header::set_lsn(page, lsn);
    let reason = cut_text(reason, MAX_REASON_BYTES);
    put_u16(page, HEADER_BYTES, reason.len() as u16);
    page[REASON..REASON + reason.len()].copy_from_slice(reason.as_bytes());
    debug_assert!(error(page, PageNo(0)).to_string().contains(reason), "a reader is not told why the page is lost");
}

/// The error of a thread that reads a lost page.
pub(crate) fn error(page: &[u8], page_no: PageNo) -> Error {
    let bytes = page.u16_at(HEADER_BYTES) as usize;
    let reason = page.get(REASON..REASON + bytes).and_then(|reason| std::str::from_utf8(reason).ok());
    let reason = format!("its contents are lost: {}", reason.unwrap_or("why is not readable"));
    Error::damaged_page(page_no, PageDamage::Lost, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_page_verifies_and_its_error_says_why() {
        let mut page = vec![9; 4096];
        for reason in ["", "its checksum is wrong", &"ä".repeat(400)] {
            format(&mut page, 7, Lsn(90), reason);
            header::stamp(&mut page, PageNo(5));
            header::verify(&page, PageNo(5)).unwrap();
            assert_eq!((header::owner(&page), header::lsn(&page)), (7, Lsn(90)));
            let error = crate::page::check_contents(&page, PageNo(5)).unwrap_err();
            assert!(error.is_lost() && error.is_damage(), "{error}");
            assert!(error.to_string().contains(&reason[..reason.len().min(300)]), "{error}");
        }
        page[HEADER_BYTES + 1] = 0xff;
        assert!(crate::page::check_contents(&page, PageNo(5)).unwrap_err().is_lost());
    }
}
