//! Reading segments, when the store is opened: what each holds, as its summary lists it or as its headers do.
//!
//! Rules: 4 to 6 of [`super::scan`]. Segments are read by several threads: an opening waits for the device, not for the
//! processor.

use super::format::{self, BLOCK_BYTES, Footer, Listed};
use super::image::Geometry;
use super::segments::Remains;
use crate::error::Result;
use highwater_storage::{AlignedBuf, Device};
use std::ops::Range;

/// Threads that read segments.
const READERS: usize = 8;

/// One segment as it was read.
pub struct Read {
    /// The highest sequence that it names.
    pub newest: u64,
    pub held: Option<Held>,
    pub read_bytes: u64,
}

/// What a segment holds.
pub struct Held {
    pub remains: Remains,
    pub durable: u64,
    pub batches: Vec<Listed>,
    /// The footer, if there is one of this life.
    pub footer: Option<Footer>,
}

/// Reads segments, in their order.
pub fn read_segments(device: &dyn Device, geometry: Geometry, segments: Range<u32>) -> Result<Vec<Read>> {
    if segments.len() < READERS {
        return segments.map(|n| read_segment(device, geometry, n)).collect();
    }
    let each = segments.len().div_ceil(READERS);
    let first = segments.start;
    std::thread::scope(|scope| {
        let parts: Vec<_> = (first..segments.end)
            .step_by(each)
            .map(|from| {
                let part = from..segments.end.min(from + each as u32);
                scope.spawn(move || part.map(|n| read_segment(device, geometry, n)).collect())
            })
            .collect();
        let joined = parts.into_iter().map(|part| match part.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let all: Result<Vec<Vec<Read>>> = joined.collect();
        Ok(all?.into_iter().flatten().collect())
    })
}

pub fn read_blocks(device: &dyn Device, at: u64, bytes: usize) -> Result<AlignedBuf> {
    let mut blocks = AlignedBuf::zeroed(bytes);
    device.read_at(at, &mut blocks)?;
    Ok(blocks)
}

/// Reads a segment (rule 4).
fn read_segment(device: &dyn Device, geometry: Geometry, segment: u32) -> Result<Read> {
    let end = geometry.start_of(segment + 1);
    let block = read_blocks(device, end - BLOCK_BYTES as u64, BLOCK_BYTES)?;
    let footer = format::parse_footer(&block, geometry.database_id);
    let mut read_bytes = BLOCK_BYTES as u64;
    let sealed = footer.filter(|footer| !footer.is_free && footer.end_bytes() as u64 <= geometry.segment_bytes);
    if let Some(footer) = sealed {
        let bytes = footer.end_bytes();
        read_bytes += bytes as u64;
        if let Some(batches) = footer.parse_summary(&read_blocks(device, end - bytes as u64, bytes)?) {
            let held = Some(Held::listed(segment, geometry, &footer, batches));
            return Ok(Read { newest: footer.newest, held, read_bytes });
        }
    }
    let mut held = read_headers(device, geometry, segment, &mut read_bytes)?;
    let newest = held.as_ref().map_or(0, |held| held.remains.newest).max(footer.map_or(0, |footer| footer.newest));
    if let Some(footer) = footer {
        held = match held {
            // Of the life that the footer calls dead, or an older one.
            Some(held) if footer.is_free && held.remains.life <= footer.life => None,
            Some(held) if !footer.is_free && held.remains.life == footer.life => {
                Some(Held { footer: Some(footer), ..held })
            }
            None if !footer.is_free => Some(Held::damaged(segment, &footer)),
            held => held,
        };
    }
    Ok(Read { newest, held, read_bytes })
}

impl Held {
    /// As the summary lists it.
    fn listed(segment: u32, geometry: Geometry, footer: &Footer, batches: Vec<Listed>) -> Held {
        let group = batches.last().map_or(0, |batch| batch.group);
        let (count, bytes) = (batches.len() as u64, geometry.segment_bytes);
        let remains = Remains { segment, life: footer.life, newest: footer.newest, batches: count, bytes, group };
        Held { remains, durable: footer.durable, batches, footer: Some(*footer) }
    }

    /// Of a segment whose summary and first header are damaged.
    fn damaged(segment: u32, footer: &Footer) -> Held {
        let remains = Remains { segment, life: footer.life, newest: 0, batches: 0, bytes: 0, group: 0 };
        Held { remains, durable: footer.durable, batches: Vec::new(), footer: Some(*footer) }
    }
}

/// Reads the headers of a segment one by one (rule 4).
fn read_headers(device: &dyn Device, geometry: Geometry, segment: u32, read_bytes: &mut u64) -> Result<Option<Held>> {
    let (start, most) = (geometry.start_of(segment), geometry.segment_bytes - BLOCK_BYTES as u64);
    let mut found: Option<Held> = None;
    let mut at = 0;
    while at < most {
        let block = read_blocks(device, start + at, BLOCK_BYTES)?;
        *read_bytes += BLOCK_BYTES as u64;
        let Some((header, entries)) = format::parse_header(&block, geometry.database_id) else { break };
        let follows = match &found {
            None => header.sequence == header.life,
            Some(Held { remains, .. }) => header.life == remains.life && header.sequence > remains.newest,
        };
        if !follows || at + header.bytes as u64 > most {
            break;
        }
        let listed = Listed { at: at as usize, sequence: header.sequence, group: header.group, entries };
        at += header.bytes as u64;
        let mut batches = found.map_or_else(Vec::new, |found| found.batches);
        batches.push(listed);
        let remains = Remains {
            segment,
            life: header.life,
            newest: header.sequence,
            batches: batches.len() as u64,
            bytes: at,
            group: header.group,
        };
        found = Some(Held { remains, durable: header.durable, batches, footer: None });
    }
    Ok(found)
}
