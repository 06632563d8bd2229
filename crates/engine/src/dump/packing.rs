//! Compression of blocks with Zstandard. A program that was built without the feature `zstd` can neither write nor read
//! dumps.

use super::failed;
use crate::error::{Error, Result};
use std::io::Result as IoResult;

/// Zstandard.
#[cfg(feature = "zstd")]
mod backend {
    use std::io::Result;

    const LEVEL: i32 = 3;

    pub(crate) struct Packer(zstd::bulk::Compressor<'static>);
    pub(crate) struct Unpacker(zstd::bulk::Decompressor<'static>);

    impl Packer {
        pub(crate) fn new() -> Result<Option<Packer>> {
            zstd::bulk::Compressor::new(LEVEL).map(|zstd| Some(Packer(zstd)))
        }

        pub(crate) fn pack(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
            self.0.compress(bytes)
        }
    }

    impl Unpacker {
        pub(crate) fn new() -> Result<Option<Unpacker>> {
            zstd::bulk::Decompressor::new().map(|zstd| Some(Unpacker(zstd)))
        }

        pub(crate) fn unpack(&mut self, packed: &[u8], bytes: usize) -> Result<Vec<u8>> {
            self.0.decompress(packed, bytes)
        }
    }
}

/// No compressor is built in.
#[cfg(not(feature = "zstd"))]
mod backend {
    use std::convert::Infallible;
    use std::io::Result;

    pub(crate) struct Packer(Infallible);
    pub(crate) struct Unpacker(Infallible);

    impl Packer {
        pub(crate) fn new() -> Result<Option<Packer>> {
            Ok(None)
        }

        pub(crate) fn pack(&mut self, _: &[u8]) -> Result<Vec<u8>> {
            match self.0 {}
        }
    }

    impl Unpacker {
        pub(crate) fn new() -> Result<Option<Unpacker>> {
            Ok(None)
        }

        pub(crate) fn unpack(&mut self, _: &[u8], _: usize) -> Result<Vec<u8>> {
            match self.0 {}
        }
    }
}

pub(super) use backend::{Packer, Unpacker};

/// A compressor of blocks.
///
/// # Errors
/// [`Error::Usage`] if none is built in; no memory.
pub(super) fn packer() -> Result<Packer> {
    built_in(Packer::new(), "compression")
}

/// A decompressor of blocks.
///
/// # Errors
/// [`Error::Usage`] if none is built in; no memory.
pub(super) fn unpacker() -> Result<Unpacker> {
    built_in(Unpacker::new(), "decompression")
}

fn built_in<T>(made: IoResult<Option<T>>, operation: &'static str) -> Result<T> {
    let missing = "a dump is compressed with zstd, and this program was built without the feature `zstd` of the crate \
                   highwater";
    made.map_err(|error| failed(operation, error))?.ok_or_else(|| Error::Usage(missing.to_string()))
}

/// Most bytes of a compressed block of `bytes` bytes: Zstandard's bound for large inputs.
pub(super) fn most_packed_bytes(bytes: usize) -> usize {
    bytes + (bytes >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "zstd")]
    #[test]
    fn the_bound_is_that_of_zstandard() {
        for bytes in [128 << 10, 1 << 20, 64 << 20] {
            assert_eq!(most_packed_bytes(bytes), zstd::zstd_safe::compress_bound(bytes));
        }
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn what_is_missing_is_named() {
        for error in [packer().err(), unpacker().err()] {
            assert!(error.unwrap().to_string().contains("without the feature `zstd`"));
        }
    }
}
