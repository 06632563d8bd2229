//! Untorn writes, which no power cut tears: whether a file supports them, as a pure function of the kernel's answer.
//!
//! Linux 6.11 and later answer it for each file (`statx` with `STATX_WRITE_ATOMIC`), and then tear no write with
//! `RWF_ATOMIC` whose length is a power of two within the limits and which begins at a multiple of its length. It must
//! bypass the page cache. Device and file system both have to take part: an NVMe or SCSI device with atomic writes, and
//! ext4 or XFS, which give one block at least, or a block device itself.

/// The kernel's answers about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Whether writes bypass the page cache.
    pub(super) is_direct: bool,
    /// Minimum and maximum size of an untorn write; `None` if the kernel or the file system does not support such
    /// writes.
    pub(super) limits: Option<(u32, u32)>,
}

/// The reason why pieces of `bytes` cannot be written untorn; `None` if they can.
pub(super) fn refusal(evidence: Evidence, bytes: usize) -> Option<String> {
    let reason = match evidence {
        Evidence { is_direct: false, .. } => {
            "writes to it go through the page cache; take O_DIRECT, on a file system that has it".to_string()
        }
        Evidence { limits: None, .. } => {
            "kernel or file system do not say what they write untorn (Linux 6.11 and later do, with ext4 and XFS)"
                .into()
        }
        Evidence { limits: Some((_, 0)), .. } => {
            "its device, or the file system on it, promises no untorn writes (statx, STATX_WRITE_ATOMIC)".into()
        }
        Evidence { limits: Some((least, max)), .. } => {
            let fits = bytes.is_power_of_two() && (least as usize..=max as usize).contains(&bytes);
            if fits {
                return None;
            }
            format!("its device and file system promise untorn writes of {least} to {max} bytes")
        }
    };
    Some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_promises_is_taken() {
        let file = |is_direct, limits| Evidence { is_direct, limits };
        for (evidence, bytes, expected) in [
            (file(true, Some((4096, 16384))), 16384, None),
            (file(true, Some((4096, 16384))), 4096, None),
            (file(true, Some((512, 4096))), 16384, Some("of 512 to 4096 bytes")),
            (file(true, Some((8192, 65536))), 4096, Some("of 8192 to 65536 bytes")),
            (file(true, Some((512, 65536))), 12288, Some("of 512 to 65536 bytes")),
            (file(true, Some((0, 0))), 4096, Some("promises no untorn writes")),
            (file(true, None), 4096, Some("kernel or file system do not say")),
            (file(false, Some((512, 65536))), 4096, Some("take O_DIRECT")),
        ] {
            let found = refusal(evidence, bytes);
            match expected {
                None => assert_eq!(found, None, "{evidence:?}, {bytes}"),
                Some(part) => {
                    assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{evidence:?}: {found:?}")
                }
            }
        }
    }
}
