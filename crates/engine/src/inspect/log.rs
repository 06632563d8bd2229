//! Looking at a redo log without opening it: both headers, and the groups since the last checkpoint. Nothing is
//! written.

use crate::error::Result;
use crate::log::format::{self, BLOCK_BYTES, LogGeometry, LogHeader, Unusable};
use crate::log::headers::read_header_slots;
use crate::log::{RecoveryScan, Window, Windows};
use highwater_storage::Device;

/// The redo log on a device.
#[derive(Debug)]
pub struct LogInfo {
    /// Both header slots: the header, or why there is none.
    pub headers: [std::result::Result<LogHeader, String>; 2],
    /// The slot of the newest header.
    pub newest: Option<usize>,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Groups since the checkpoint, if there is a header to start from and the file is as long as it says.
    pub scan: Option<RecoveryScan>,
    header: Option<LogHeader>,
}

/// Reads headers and groups.
///
/// # Errors
/// An I/O error, or a file too short for two headers.
pub fn look(device: &dyn Device) -> Result<LogInfo> {
    let len = device.len_bytes()?;
    let slots = read_header_slots(device)?;
    let (first, second) = slots.split_at(BLOCK_BYTES as usize);
    let decoded = [first, second].map(LogHeader::decode);
    let newest =
        (0..2).filter(|slot| decoded[*slot].is_ok()).max_by_key(|slot| decoded[*slot].map_or(0, |h| h.sequence));
    let header = newest.and_then(|slot| decoded[slot].ok());
    let usable = header
        .filter(|h| h.size_bytes <= len && format::is_size_possible(h.size_bytes) && format::are_lsns_possible(h));
    let is_sure = decoded.iter().all(|header| header.is_ok());
    let scan = match usable {
        Some(header) => Some(RecoveryScan::run(device, LogGeometry::of(&header), &header, is_sure)?),
        None => None,
    };
    let ring_end = usable.map_or(len, |header| header.size_bytes);
    let headers = decoded.map(|header| header.map_err(reason));
    Ok(LogInfo { headers, newest, ring_bytes: format::whole_blocks(ring_end) - 2 * BLOCK_BYTES, scan, header: usable })
}

impl LogInfo {
    /// Hands the groups since the checkpoint to `to`, a window of about `bytes` at a time.
    ///
    /// # Errors
    /// An I/O error, or [`Error::Corrupt`](crate::Error::Corrupt) if the device no longer gives what the scan found.
    pub fn each_window(&self, device: &dyn Device, bytes: usize, mut to: impl FnMut(&Window)) -> Result<()> {
        let (Some(header), Some(scan)) = (&self.header, &self.scan) else { return Ok(()) };
        let mut windows = Windows::new(device, LogGeometry::of(header), header, scan);
        let mut window = Window::default();
        while windows.read(bytes, &mut window)? {
            to(&window);
        }
        Ok(())
    }
}

fn reason(unusable: Unusable) -> String {
    match unusable {
        Unusable::Foreign => "it does not start with a header".to_string(),
        Unusable::Damaged => "its checksum is wrong".to_string(),
        Unusable::Version(version) => format!("format version {version}; this build reads {}", format::VERSION),
    }
}
