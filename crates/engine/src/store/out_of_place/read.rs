//! Reading segments when the store is opened: the batches of each, from its summary or from its headers.
//!
//! Rules
//! 1. Rules 4 to 6 of [`super::scan`].
//! 2. Segments are read by many threads, since an opening waits for the device more than for the processor, and given
//!    on in any order, some at a time: this bounds the memory.
//! 3. A footer and its summary are read in one request, whose size is an estimate.
//! 4. A summary or footer that cannot be read counts as damaged: a bad block there costs nothing, because the headers
//!    have the same information. A required header that cannot be read is an error, because the images in its batch are
//!    unknown.

use super::format::{self, BLOCK_BYTES, Footer, GroupTails, Listed, Tail};
use super::image::StoreGeometry;
use super::segments::SegmentSummary;
use crate::error::Result;
use crate::sync::atomic::{AtomicU32, Ordering::Relaxed};
use highwater_storage::{AlignedBuf, Device};
use std::ops::Range;
use std::sync::mpsc::sync_channel;

/// Threads that read segments, unless another number is asked for.
pub(crate) const READERS: usize = 32;
/// Segments that are read before they are given on.
const AT_ONCE: usize = 256;

/// One segment as it was read.
pub(super) struct Read {
    pub segment: u32,
    /// The highest sequence that it names as its own.
    pub newest: u64,
    /// Sequence of the store's newest batch when it became free, if it is; else 0.
    pub freed: u64,
    /// Batches of the store that it names.
    pub tails: Vec<Tail>,
    pub held: Option<SegmentContents>,
    pub read_bytes: u64,
}

/// The contents of a segment.
pub(super) struct SegmentContents {
    pub remains: SegmentSummary,
    pub durable: u64,
    /// The tails that its last header names, or its footer if its summary was read.
    pub tails: GroupTails,
    /// The footer, if there is one of this life.
    pub footer: Option<Footer>,
    /// Bytes that include its summary: the stored one at its end, or one built from its headers.
    end: AlignedBuf,
    summary: Range<usize>,
}

/// Reads the segments of a store, region 0 counted, by this many threads, and gives them to `take`, some at a time. One
/// thread reads in order.
///
/// # Errors
/// An I/O error.
pub(super) fn read_segments(
    device: &dyn Device,
    geometry: StoreGeometry,
    segments: u32,
    readers: usize,
    mut take: impl FnMut(Vec<Read>),
) -> Result<()> {
    let uncompressed = geometry.segment_bytes - geometry.segment_room();
    if readers == 1 || (segments as usize) < readers {
        let mut end_bytes = uncompressed as usize;
        for first in (1..segments).step_by(AT_ONCE) {
            let some = first..segments.min(first + AT_ONCE as u32);
            let read: Result<_> = some.map(|n| read_segment(device, geometry, n, &mut end_bytes)).collect();
            take(read?);
        }
        return Ok(());
    }
    let next = AtomicU32::new(1);
    let (sender, receiver) = sync_channel(AT_ONCE);
    crate::sync::thread::scope(|scope| {
        for _ in 0..readers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let mut end_bytes = uncompressed as usize;
                let mut numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|n| *n < segments));
                // No thread receives after an error.
                numbers.all(|n| sender.send(read_segment(device, geometry, n, &mut end_bytes)).is_ok());
            });
        }
        drop(sender);
        let mut some = Vec::with_capacity(AT_ONCE);
        for read in receiver {
            some.push(read?);
            if some.len() == AT_ONCE {
                take(std::mem::take(&mut some));
            }
        }
        take(some);
        Ok(())
    })
}

pub(super) fn read_blocks(device: &dyn Device, at: u64, bytes: usize) -> Result<AlignedBuf> {
    let mut blocks = AlignedBuf::zeroed(bytes);
    device.read_at(at, &mut blocks)?;
    Ok(blocks)
}

/// The last `bytes` before `until`, or the last block of them if not all can be read, or nothing (rule 4).
fn read_end(device: &dyn Device, until: u64, bytes: usize) -> Result<AlignedBuf> {
    for bytes in [bytes, BLOCK_BYTES] {
        match read_blocks(device, until - bytes as u64, bytes) {
            Err(error) if error.is_failed_read() => {}
            read => return read,
        }
    }
    Ok(AlignedBuf::zeroed(0))
}

/// Reads a segment (rule 4 of [`super::scan`]). `end_bytes` is what the end of the previous segment took.
fn read_segment(device: &dyn Device, geometry: StoreGeometry, segment: u32, end_bytes: &mut usize) -> Result<Read> {
    let until = geometry.start_of(segment + 1);
    let mut end = read_end(device, until, *end_bytes)?;
    let mut read_bytes = end.len() as u64;
    let block = end.len().checked_sub(BLOCK_BYTES).map(|at| &end[at..]);
    let footer = block.and_then(|block| format::parse_footer(block, geometry.identity(segment)));
    let sealed = footer.filter(|footer| !footer.is_free && footer.end_bytes() as u64 <= geometry.segment_bytes);
    if let Some(footer) = sealed {
        let bytes = footer.end_bytes();
        if bytes > end.len() {
            end = read_end(device, until, bytes)?;
            read_bytes += bytes as u64;
        }
        *end_bytes = bytes;
        let summary = end.len().checked_sub(bytes).and_then(|from| Some((from, footer.summary(&end[from..])?.len())));
        if let Some((from, len)) = summary {
            let held = Some(SegmentContents::listed(segment, geometry, &footer, end, from..from + len));
            return Ok(Read {
                segment,
                newest: footer.newest,
                freed: 0,
                tails: footer.tails.to_vec(),
                held,
                read_bytes,
            });
        }
    }
    let last = sealed.map(|footer| footer.newest);
    let mut held = read_headers(device, geometry, segment, last, &mut read_bytes)?;
    let newest = held.as_ref().map_or(0, |held| held.remains.newest).max(footer.map_or(0, |footer| footer.newest));
    let in_headers = held.as_ref().map(|held| held.tails);
    let tails = in_headers.into_iter().chain(footer.map(|footer| footer.tails)).flatten().collect();
    let freed = footer.filter(|footer| footer.is_free).map_or(0, |footer| footer.newest);
    if let Some(footer) = footer {
        // Headers of an older life are remains: a power cut kept the footer and lost what was written before it. So are
        // those of a life that the footer calls dead.
        let first_life = footer.life.saturating_add(u64::from(footer.is_free));
        held = match held.filter(|held| held.remains.life >= first_life) {
            Some(held) if held.remains.life == footer.life => Some(SegmentContents { footer: Some(footer), ..held }),
            None if !footer.is_free => Some(SegmentContents::without_batches(segment, &footer)),
            held => held,
        };
    }
    Ok(Read { segment, newest, freed, tails, held, read_bytes })
}

impl SegmentContents {
    /// The summary of its batches.
    pub(super) fn summary(&self) -> &[u8] {
        &self.end[self.summary.clone()]
    }

    /// As the summary lists it.
    fn listed(
        segment: u32,
        geometry: StoreGeometry,
        footer: &Footer,
        end: AlignedBuf,
        summary: Range<usize>,
    ) -> SegmentContents {
        let (mut batches, mut group, mut batches_end) = (0, 0, 0);
        for batch in format::batches(&end[summary.clone()]) {
            (batches, group, batches_end) = (batches + 1, batch.group, batch.end());
        }
        let (bytes, newest) = ((batches_end as u64).min(geometry.segment_bytes), footer.newest);
        let remains = SegmentSummary { segment, life: footer.life, newest, batches, bytes, group };
        SegmentContents { remains, durable: footer.durable, tails: footer.tails, footer: Some(*footer), end, summary }
    }

    /// Of a segment of which neither the summary nor the first header of the footer's life is there.
    fn without_batches(segment: u32, footer: &Footer) -> SegmentContents {
        let remains = SegmentSummary { segment, life: footer.life, newest: 0, batches: 0, bytes: 0, group: 0 };
        let (durable, tails, end) = (footer.durable, footer.tails, AlignedBuf::zeroed(0));
        SegmentContents { remains, durable, tails, footer: Some(*footer), end, summary: 0..0 }
    }
}

/// Reads the headers of a segment one by one (rule 4 of [`super::scan`]), up to the `last` batch, if that is known.
fn read_headers(
    device: &dyn Device,
    geometry: StoreGeometry,
    segment: u32,
    last: Option<u64>,
    read_bytes: &mut u64,
) -> Result<Option<SegmentContents>> {
    let (start, max) = (geometry.start_of(segment), geometry.segment_bytes - BLOCK_BYTES as u64);
    let mut found: Option<(SegmentSummary, u64, GroupTails)> = None;
    let (mut at, mut summary) = (0, Vec::new());
    while at < max && found.is_none_or(|(remains, ..)| Some(remains.newest) != last) {
        let block = read_blocks(device, start + at, BLOCK_BYTES)?;
        *read_bytes += BLOCK_BYTES as u64;
        let Some((header, entries)) = format::parse_header(&block, geometry.identity(segment), at as usize) else {
            break;
        };
        let follows = match &found {
            None => header.sequence == header.life,
            Some((remains, ..)) => header.life == remains.life && header.sequence > remains.newest,
        };
        if !follows || at + header.bytes as u64 > max {
            break;
        }
        let listed = Listed { at: at as usize, sequence: header.sequence, group: header.group, entries };
        format::add_to_summary(&mut summary, &listed);
        at += header.bytes as u64;
        let remains = SegmentSummary {
            segment,
            life: header.life,
            newest: header.sequence,
            batches: found.map_or(0, |(remains, ..)| remains.batches) + 1,
            bytes: at,
            group: header.group,
        };
        found = Some((remains, header.durable, header.tails));
    }
    let mut end = AlignedBuf::zeroed(summary.len());
    end.copy_from_slice(&summary);
    let held = |(remains, durable, tails)| SegmentContents {
        remains,
        durable,
        tails,
        footer: None,
        summary: 0..end.len(),
        end,
    };
    Ok(found.map(held))
}
