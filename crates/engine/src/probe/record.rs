//! The record of a probe in page 0: time, device, measured times, choice.
//!
//! Layout, little-endian: checksum u32 of the rest, version u16, neighbors u8, flush method u8, then u32 each: depth,
//! pages, page bytes, sync, contiguous, scattered, three times at depths, measurements, steady (0 or 1); time u64
//! (seconds since 1970); device: length u16, 64 bytes. A record that does not verify is ignored: the device is measured
//! again.

use super::{Choice, DEPTHS, Evidence, MAX_MEASUREMENTS};
use crate::config::{FlushMethod, FlushNeighbors};
use crate::types::cut_text;

/// Place of the record in page 0, after the root slots.
pub(crate) const RECORD_AT: usize = 1024;
pub(crate) const RECORD_BYTES: usize = 8 + 4 * NUMBERS + 8 + 2 + DEVICE_BYTES;
const NUMBERS: usize = 8 + DEPTHS.len();
const DEVICE_BYTES: usize = 64;
const VERSION: u16 = 2;

/// A probe and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRecord {
    /// When, in seconds since 1970.
    pub taken_unix_s: u64,
    /// The device, as it names itself; the first 64 bytes of it.
    pub device: String,
    /// The flush method of the measurement.
    pub flush_method: FlushMethod,
    /// The shortest times of all measurements.
    pub evidence: Evidence,
    /// Number of measurements.
    pub measurements: u32,
    /// The choice.
    pub choice: Choice,
}

impl ProbeRecord {
    /// A record with the present time.
    pub fn new(device: &str, flush_method: FlushMethod, evidence: Evidence) -> ProbeRecord {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        ProbeRecord {
            taken_unix_s: since_1970.map_or(0, |d| d.as_secs()),
            device: shortened(device).to_string(),
            flush_method,
            evidence,
            measurements: 1,
            choice: super::choose(&evidence),
        }
    }

    /// With what an earlier measurement of the same device found.
    pub fn with_earlier(self, earlier: &ProbeRecord) -> ProbeRecord {
        let (page_bytes, before) = (self.evidence.page_bytes, earlier.evidence.page_bytes);
        debug_assert_eq!(page_bytes, before, "rule 4: times of pages of other sizes are compared");
        let evidence = self.evidence.best_of(earlier.evidence);
        let measurements = earlier.measurements.saturating_add(1);
        ProbeRecord { evidence, measurements, choice: super::choose(&evidence), ..self }
    }

    /// Whether it is kept for good: the next opening measures again if not.
    pub fn is_settled(&self) -> bool {
        self.evidence.is_steady || self.measurements >= MAX_MEASUREMENTS
    }

    /// Whether it is about this device and flush method.
    pub fn is_about(&self, device: &str, flush_method: FlushMethod, page_bytes: usize) -> bool {
        self.device == shortened(device)
            && self.flush_method == flush_method
            && self.evidence.page_bytes as usize == page_bytes
    }

    /// When, as a date.
    pub fn date(&self) -> String {
        let (days, seconds) = (self.taken_unix_s / 86_400, self.taken_unix_s % 86_400);
        let (year, month, day) = civil(days);
        format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60)
    }

    /// As bytes for page 0.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        debug_assert_ne!(self.choice.flush_neighbors, FlushNeighbors::Auto, "a measurement decides nothing");
        let (e, mut bytes) = (&self.evidence, [0; RECORD_BYTES]);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6] = neighbors_code(self.choice.flush_neighbors);
        bytes[7] = method_code(self.flush_method);
        let [first, second, third] = e.at_depth_us;
        let numbers = [self.choice.write_depth, e.pages, e.page_bytes, e.sync_us, e.contiguous_us, e.scattered_us];
        let numbers = numbers.into_iter().chain([first, second, third, self.measurements, e.is_steady.into()]);
        for (slot, number) in bytes[8..].chunks_exact_mut(4).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let at = 8 + 4 * NUMBERS;
        bytes[at..at + 8].copy_from_slice(&self.taken_unix_s.to_le_bytes());
        let device = shortened(&self.device).as_bytes();
        bytes[at + 8..at + 10].copy_from_slice(&(device.len() as u16).to_le_bytes());
        bytes[at + 10..at + 10 + device.len()].copy_from_slice(device);
        let sum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The record in the bytes of page 0, if there is one.
    pub fn decode(page: &[u8]) -> Option<ProbeRecord> {
        let bytes = page.get(RECORD_AT..RECORD_AT + RECORD_BYTES)?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        if u32_at(0)? != crc32c::crc32c(&bytes[4..]) || u16_at(4)? != VERSION {
            return None;
        }
        let number = |i: usize| u32_at(8 + 4 * i);
        let at = 8 + 4 * NUMBERS;
        let device = bytes.get(at + 10..at + 10 + usize::from(u16_at(at + 8)?))?;
        Some(ProbeRecord {
            taken_unix_s: u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?),
            device: std::str::from_utf8(device).ok()?.to_string(),
            flush_method: METHODS.get(usize::from(bytes[7])).copied()?,
            evidence: Evidence {
                pages: number(1)?,
                page_bytes: number(2)?,
                sync_us: number(3)?,
                contiguous_us: number(4)?,
                scattered_us: number(5)?,
                at_depth_us: [number(6)?, number(7)?, number(8)?],
                is_steady: number(10)? != 0,
            },
            measurements: number(9)?,
            choice: Choice {
                flush_neighbors: NEIGHBORS.get(usize::from(bytes[6])).copied()?,
                write_depth: number(0)?.max(1),
            },
        })
    }
}

impl std::fmt::Display for ProbeRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let neighbors = neighbors_code(self.choice.flush_neighbors);
        write!(
            f,
            "flush_neighbors {neighbors}, {} writes in flight; measured {} on {}: {}",
            self.choice.write_depth,
            self.date(),
            self.device,
            self.evidence
        )?;
        if self.is_settled() { Ok(()) } else { f.write_str("; others used the disk: the next opening measures again") }
    }
}

const METHODS: [FlushMethod; 4] =
    [FlushMethod::Fsync, FlushMethod::DSync, FlushMethod::Direct, FlushMethod::DirectNoFsync];
const NEIGHBORS: [FlushNeighbors; 3] = [FlushNeighbors::Off, FlushNeighbors::Contiguous, FlushNeighbors::Extent];

fn method_code(method: FlushMethod) -> u8 {
    METHODS.iter().position(|m| *m == method).unwrap_or(0) as u8
}

fn neighbors_code(neighbors: FlushNeighbors) -> u8 {
    NEIGHBORS.iter().position(|n| *n == neighbors).unwrap_or(0) as u8
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that leap days end them.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, of_year - (153 * march_month + 2) / 5 + 1)
}

fn shortened(device: &str) -> &str {
    cut_text(device, DEVICE_BYTES)
}
