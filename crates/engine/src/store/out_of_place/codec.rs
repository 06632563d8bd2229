//! Images: pages as they are stored, compressed or not.
//!
//! Rules
//! 1. An image is never larger than its page. A page that does not become smaller by a unit is stored as it is, so the
//!    length of an image says whether it is the page itself.
//! 2. Any other image names its codec, so the setting may change between two openings.
//! 3. A page that is not compressed, or not well, is stored without its longest run of zeros ([`super::zeros`]).
//! 4. No byte of an image is trusted: an image that cannot be decompressed to a whole page is an error. The page's own
//!    checksum verifies the result.
//! 5. LZ4 and Zstandard are features of the crate. An image of a codec that is not built in is not damage
//!    ([`Unreadable`]).

use super::format::UNIT_BYTES;
use super::zeros;
use crate::config::PageCompression;
use crate::error::Error;
use crate::types::PageNo;
use std::cell::RefCell;
use std::thread::LocalKey;
use std::time::Instant;

/// Codec u8, length of what follows u24.
const PREFIX_BYTES: usize = 4;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;
const WITHOUT_ZEROS: u8 = 3;
/// Level 3 gains nothing more on pages of a database.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 1;

thread_local! {
    #[cfg(feature = "lz4")]
    static LZ4_OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    #[cfg(feature = "zstd")]
    static ZSTD_OUT: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    #[cfg(feature = "zstd")]
    static ZSTD_IN: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends the image of a page to `images`; returns its length.
pub(crate) fn put_image(images: &mut Vec<u8>, page: &[u8], compression: PageCompression) -> usize {
    let start = images.len();
    // Only what is smaller by a unit is kept.
    let room = page.len() - UNIT_BYTES;
    images.resize(start + room, 0);
    let out = &mut images[start + PREFIX_BYTES..];
    let packed = compress(page, out, compression).or_else(|| Some((WITHOUT_ZEROS, zeros::leave_out(page, out)?)));
    match packed {
        Some((codec, length)) => {
            let word = u32::from(codec) | (length as u32) << 8;
            images[start..start + PREFIX_BYTES].copy_from_slice(&word.to_le_bytes());
            let bytes = (PREFIX_BYTES + length).next_multiple_of(UNIT_BYTES);
            images[start + PREFIX_BYTES + length..(start + bytes).min(start + room)].fill(0);
            images.resize(start + bytes, 0);
            let is_read = || read_image(&images[start..], &mut vec![0xA5; page.len()][..]).is_ok();
            debug_assert!(bytes < page.len() && is_read(), "rule 1: an image of {bytes} bytes is not read as its page");
            bytes
        }
        None => {
            images.truncate(start);
            images.extend_from_slice(page);
            page.len()
        }
    }
}

/// Runs with what the thread keeps. Work that asks again gets a new one, and so does a thread that is ending: it may
/// have none any more.
pub(super) fn with_kept<T: Default, R>(place: &'static LocalKey<RefCell<T>>, run: impl FnOnce(&mut T) -> R) -> R {
    let mut kept = place.try_with(RefCell::take).unwrap_or_default();
    let result = run(&mut kept);
    let _ = place.try_with(|place| place.replace(kept));
    result
}

/// Compresses into `out`; says with what, and how many bytes; `None` if it does not fit.
fn compress(page: &[u8], out: &mut [u8], compression: PageCompression) -> Option<(u8, usize)> {
    match compression {
        // What `auto` means is chosen before a store is opened.
        PageCompression::Off | PageCompression::Auto => None,
        #[cfg(feature = "lz4")]
        PageCompression::Lz4 => with_kept(&LZ4_OUT, |scratch| {
            // It needs space for the worst case.
            scratch.resize(lz4_flex::block::get_maximum_output_size(page.len()), 0);
            let length = lz4_flex::block::compress_into(page, scratch).ok()?;
            out.get_mut(..length)?.copy_from_slice(&scratch[..length]);
            Some((LZ4, length))
        }),
        #[cfg(feature = "zstd")]
        PageCompression::Zstd => with_kept(&ZSTD_OUT, |kept| {
            if kept.is_none() {
                *kept = Some(zstd::bulk::Compressor::new(ZSTD_LEVEL).ok()?);
            }
            Some((ZSTD, kept.as_mut()?.compress_to_buffer(page, out).ok()?))
        }),
        // Refused when the options are checked.
        #[cfg(not(all(feature = "lz4", feature = "zstd")))]
        _ => {
            let _ = (page, out);
            None
        }
    }
}

/// Microseconds that packing this page takes: the shortest of a few times. Infinite if the codec is not built in.
pub(crate) fn packing_us(page: &[u8], compression: PageCompression) -> f64 {
    const TIMES: usize = 9;
    if compression.missing_feature().is_some() {
        return f64::INFINITY;
    }
    let mut image = Vec::with_capacity(2 * page.len());
    let mut once = || {
        image.clear();
        let start = Instant::now();
        std::hint::black_box(put_image(&mut image, page, compression));
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..TIMES).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// The reason why an image cannot be decoded to a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is damaged; in words how.
    Damaged(String),
    /// It may be whole: this program was built without what decompresses it.
    #[cfg_attr(all(feature = "lz4", feature = "zstd"), allow(dead_code, reason = "of programs without a codec"))]
    NeedsFeature(&'static str),
}

impl Unreadable {
    /// As the error of a read of this page.
    pub(crate) fn of_page(self, page: PageNo) -> Error {
        match self {
            Unreadable::Damaged(reason) => Error::corrupt_page(page, reason),
            Unreadable::NeedsFeature(feature) => Error::Incompatible(format!(
                "page {page} is compressed with {feature}, and this program was built without the feature `{feature}` \
                 of the crate highwater"
            )),
        }
    }
}

/// Fills `page` from its image.
///
/// # Errors
/// Why it cannot.
pub(crate) fn read_image(image: &[u8], page: &mut [u8]) -> Result<(), Unreadable> {
    if image.len() == page.len() {
        page.copy_from_slice(image);
        return Ok(());
    }
    let prefix: [u8; PREFIX_BYTES] = image[..PREFIX_BYTES].try_into().expect("an image has a unit at least");
    let word = u32::from_le_bytes(prefix);
    let (codec, length) = (word as u8, (word >> 8) as usize);
    let packed = image.get(PREFIX_BYTES..PREFIX_BYTES + length);
    let claims = || Unreadable::Damaged(format!("its image of {} bytes claims to hold {length}", image.len()));
    let packed = packed.ok_or_else(claims)?;
    let got = match codec {
        #[cfg(feature = "lz4")]
        LZ4 => lz4_flex::block::decompress_into(packed, page).map_err(|e| e.to_string()),
        #[cfg(not(feature = "lz4"))]
        LZ4 => return Err(Unreadable::NeedsFeature("lz4")),
        #[cfg(feature = "zstd")]
        ZSTD => unpack_zstd(packed, page),
        #[cfg(not(feature = "zstd"))]
        ZSTD => return Err(Unreadable::NeedsFeature("zstd")),
        WITHOUT_ZEROS => zeros::put_back(packed, page),
        other => Err(format!("unknown codec {other}")),
    };
    match got {
        Ok(bytes) if bytes == page.len() => Ok(()),
        Ok(bytes) => Err(Unreadable::Damaged(format!("its image holds {bytes} bytes"))),
        Err(reason) => Err(Unreadable::Damaged(format!("its image cannot be decompressed: {reason}"))),
    }
}

/// Replaces the first bytes of the page in an image, if they are in it as they are.
pub(crate) fn put_start(image: &mut [u8], start: &[u8]) {
    if image[0] == WITHOUT_ZEROS {
        let at = PREFIX_BYTES + zeros::AT_BYTES;
        image[at..at + start.len()].copy_from_slice(start);
    }
}

#[cfg(feature = "zstd")]
fn unpack_zstd(packed: &[u8], page: &mut [u8]) -> Result<usize, String> {
    with_kept(&ZSTD_IN, |kept| {
        if kept.is_none() {
            *kept = Some(zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?);
        }
        let decompressor = kept.as_mut().ok_or("no decompressor")?;
        decompressor.decompress_to_buffer(packed, page).map_err(|e| e.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compressions that are built in.
    const ALL: &[PageCompression] = &[
        PageCompression::Off,
        #[cfg(feature = "lz4")]
        PageCompression::Lz4,
        #[cfg(feature = "zstd")]
        PageCompression::Zstd,
    ];

    fn page(entropy: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(entropy as u64);
        (0..8192).map(|at| if at % 8 < entropy { random.u8(..) } else { 7 }).collect()
    }

    #[test]
    fn every_image_gives_its_page_back() {
        for &compression in ALL {
            for entropy in 0..=8 {
                let (page, mut images) = (page(entropy), vec![9; 3]);
                let bytes = put_image(&mut images, &page, compression);
                assert_eq!((images.len() - 3, bytes % UNIT_BYTES), (bytes, 0));
                assert!(bytes <= page.len());
                let mut read = vec![1; page.len()];
                read_image(&images[3..], &mut read).unwrap();
                assert!(read == page, "{compression:?}, entropy {entropy}");
            }
        }
    }

    /// Images as programs with these features make them.
    #[test]
    fn an_image_of_a_codec_that_is_not_built_in_is_no_damage() {
        for (codec, feature, is_built_in) in
            [(LZ4, "lz4", cfg!(feature = "lz4")), (ZSTD, "zstd", cfg!(feature = "zstd"))]
        {
            let mut image = [0; UNIT_BYTES];
            image[..PREFIX_BYTES].copy_from_slice(&[codec, 9, 0, 0]);
            let error = read_image(&image, &mut vec![0; 8192]).unwrap_err();
            assert_eq!(error == Unreadable::NeedsFeature(feature), !is_built_in, "{feature}");
            let text = Unreadable::NeedsFeature(feature).of_page(PageNo(7));
            assert!(!text.is_damage() && text.to_string().contains(&format!("the feature `{feature}`")), "{text}");
        }
    }

    #[test]
    fn what_does_not_become_smaller_is_stored_as_it_is() {
        for &compression in ALL {
            let mut images = Vec::new();
            assert_eq!(put_image(&mut images, &page(8), compression), 8192);
            assert_eq!(images, page(8));
        }
        for compression in &ALL[1..] {
            assert!(put_image(&mut Vec::new(), &page(1), *compression) < 4096);
        }
    }

    #[test]
    fn a_damaged_image_is_an_error_or_another_page_never_a_panic() {
        for compression in &ALL[1..] {
            let mut images = Vec::new();
            put_image(&mut images, &page(2), *compression);
            let mut random = fastrand::Rng::with_seed(4);
            for _ in 0..3000 {
                let mut damaged = images.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..damaged.len());
                    damaged[at] = random.u8(..);
                }
                let _ = read_image(&damaged, &mut vec![0; 8192]);
            }
            let error = read_image(&[0xff; 512], &mut vec![0; 8192]).unwrap_err();
            assert!(matches!(&error, Unreadable::Damaged(reason) if reason.contains("claims")), "{error:?}");
        }
    }
}
