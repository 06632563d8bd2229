//! A page without its longest run of zeros: the cheapest way to make it smaller.
//!
//! The free space of a tree page is zeros until it is used. Leaving it out costs nothing compared with a write, and in
//! a store that is nearly full each saved percent of space saves several percent of cleaning.
//!
//! ```text
//! packed   where the zeros begin u32; the bytes before them; the bytes behind them
//! ```

/// Runs that do not hold a stretch of this length, at a multiple of it, are not looked for.
const STRETCH_BYTES: usize = 256;
/// Bytes in front of those of the page.
pub(super) const AT_BYTES: usize = 4;

/// Writes the page without its longest run of zeros to `out`; returns the length, `None` if it does not fit.
pub(super) fn leave_out(page: &[u8], out: &mut [u8]) -> Option<usize> {
    let (start, end) = longest(page);
    debug_assert!(page[start..end].iter().all(|byte| *byte == 0), "bytes from {start} to {end} are left out");
    let length = AT_BYTES + page.len() - (end - start);
    let out = out.get_mut(..length)?;
    out[..AT_BYTES].copy_from_slice(&(start as u32).to_le_bytes());
    let (before, behind) = out[AT_BYTES..].split_at_mut(start);
    before.copy_from_slice(&page[..start]);
    behind.copy_from_slice(&page[end..]);
    Some(length)
}

/// Fills `page` from what [`leave_out`] wrote; returns its length.
///
/// # Errors
/// In words why it cannot.
pub(super) fn put_back(packed: &[u8], page: &mut [u8]) -> Result<usize, String> {
    let (at, bytes) = packed.split_first_chunk::<AT_BYTES>().ok_or("its image is too short")?;
    let start = u32::from_le_bytes(*at) as usize;
    let zeros = page.len().checked_sub(bytes.len()).ok_or("its image is too long")?;
    if start > bytes.len() {
        return Err(format!("its image of {} bytes has zeros at byte {start}", bytes.len()));
    }
    page[..start].copy_from_slice(&bytes[..start]);
    page[start..start + zeros].fill(0);
    page[start + zeros..].copy_from_slice(&bytes[start..]);
    Ok(page.len())
}

/// Start and end of the longest run of zeros.
fn longest(page: &[u8]) -> (usize, usize) {
    let (mut best, mut at) = ((0, 0), 0);
    while let Some(stretch) = page.get(at..at + STRETCH_BYTES) {
        if stretch.iter().fold(0, |any, byte| any | byte) != 0 {
            at += STRETCH_BYTES;
            continue;
        }
        let start = page[..at].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let end = at + page[at..].iter().position(|byte| *byte != 0).unwrap_or(page.len() - at);
        if end - start > best.1 - best.0 {
            best = (start, end);
        }
        at = end.next_multiple_of(STRETCH_BYTES);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(runs: &[(usize, usize)]) -> Vec<u8> {
        let mut page = vec![5; 8192];
        runs.iter().for_each(|(start, end)| page[*start..*end].fill(0));
        page
    }

    #[test]
    fn the_longest_run_is_found_with_its_exact_ends() {
        for runs in [&[(0, 8192)][..], &[(3, 700)], &[(100, 400), (1001, 1777), (3000, 3600)], &[(7500, 8192)]] {
            let expected = *runs.iter().max_by_key(|(start, end)| end - start).unwrap();
            assert_eq!(longest(&page(runs)), expected, "{runs:?}");
        }
        assert_eq!(longest(&page(&[(1, 256)])), (0, 0), "shorter than a stretch");
    }

    #[test]
    fn a_page_comes_back_with_its_zeros() {
        for runs in [&[][..], &[(0, 8192)], &[(0, 600)], &[(3, 700)], &[(100, 400), (1001, 1777)], &[(7500, 8192)]] {
            let (page, mut out, mut read) = (page(runs), vec![9; 8196], vec![1; 8192]);
            let length = leave_out(&page, &mut out).unwrap();
            assert_eq!(put_back(&out[..length], &mut read), Ok(8192));
            assert!(read == page, "{runs:?}");
            assert_eq!(leave_out(&page, &mut out[..length - 1]), None);
        }
    }

    #[test]
    fn what_contradicts_itself_is_an_error() {
        for (packed, expected) in [
            (&[1, 0][..], "its image is too short"),
            (&[0; 8197], "its image is too long"),
            (&[2, 0, 0, 0, 7], "its image of 1 bytes has zeros at byte 2"),
        ] {
            assert_eq!(put_back(packed, &mut [0; 8192]), Err(expected.into()));
        }
    }
}
