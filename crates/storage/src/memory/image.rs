//! The bytes of an image, in chunks that images share until one is changed (copy on write).

use std::sync::Arc;

/// Bytes of a chunk: the largest page.
const CHUNK_BYTES: usize = 16 << 10;

type Chunk = [u8; CHUNK_BYTES];

static ZEROS: Chunk = [0; CHUNK_BYTES];

/// The chunks of an image, and its length in bytes. A chunk of zeros may be missing.
#[derive(Clone, Default)]
pub(super) struct Image {
    len: usize,
    chunks: Vec<Option<Arc<Chunk>>>,
}

/// A part of a range: the chunk, the bytes in the chunk, and the bytes in the range.
struct Part {
    chunk: usize,
    start: usize,
    from: usize,
    len: usize,
}

/// The parts of `len` bytes from `offset` on.
fn parts(offset: usize, len: usize) -> impl Iterator<Item = Part> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (chunk, start) = ((offset + from) / CHUNK_BYTES, (offset + from) % CHUNK_BYTES);
        let part = Part { chunk, start, from, len: (len - from).min(CHUNK_BYTES - start) };
        from += part.len;
        (part.len > 0).then_some(part)
    })
}

impl Image {
    pub(super) fn of(bytes: &[u8]) -> Image {
        let mut image = Image::default();
        image.resize(bytes.len());
        image.write(0, bytes);
        image
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Makes it shorter, or longer by zeros.
    pub(super) fn resize(&mut self, len: usize) {
        self.chunks.resize(len.div_ceil(CHUNK_BYTES), None);
        // Behind the end there are always zeros.
        if len < self.len
            && let Some(Some(last)) = self.chunks.get_mut(len / CHUNK_BYTES)
        {
            Arc::make_mut(last)[len % CHUNK_BYTES..].fill(0);
        }
        self.len = len;
    }

    /// Fills `buf` from `offset` on; the range is within.
    pub(super) fn read(&self, offset: usize, buf: &mut [u8]) {
        for part in parts(offset, buf.len()) {
            let into = &mut buf[part.from..part.from + part.len];
            match &self.chunks[part.chunk] {
                Some(chunk) => into.copy_from_slice(&chunk[part.start..part.start + part.len]),
                None => into.fill(0),
            }
        }
    }

    /// Puts `data` at `offset`; the range is within.
    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        for part in parts(offset, data.len()) {
            let data = &data[part.from..part.from + part.len];
            let chunk = &mut self.chunks[part.chunk];
            if chunk.is_none() && *data == ZEROS[..data.len()] {
                continue;
            }
            let chunk = Arc::make_mut(chunk.get_or_insert_with(|| Arc::new(ZEROS)));
            chunk[part.start..part.start + part.len].copy_from_slice(data);
        }
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn an_image_is_as_bytes_in_a_row_are_and_a_copy_does_not_follow() {
        let mut rng = Rng::with_seed(5);
        let (mut image, mut bytes) = (Image::default(), Vec::new());
        let mut copies = Vec::new();
        for round in 0..2000_u32 {
            if rng.u32(..10) == 0 {
                let len = rng.usize(..6 * CHUNK_BYTES);
                image.resize(len);
                bytes.resize(len, 0);
            }
            let offset = rng.usize(..=bytes.len());
            let len = rng.usize(..=(bytes.len() - offset).min(2 * CHUNK_BYTES + 1));
            image.write(offset, &vec![round as u8 % 3; len]);
            bytes[offset..offset + len].fill(round as u8 % 3);
            if rng.u32(..100) == 0 {
                copies.push((image.clone(), bytes.clone()));
            }
            let at = rng.usize(..=bytes.len());
            let mut read = vec![7; rng.usize(..=bytes.len() - at)];
            image.read(at, &mut read);
            assert_eq!(read, bytes[at..at + read.len()]);
        }
        assert_eq!((image.len(), image.to_vec() == bytes), (bytes.len(), true));
        assert!(copies.iter().all(|(image, bytes)| image.to_vec() == *bytes && Image::of(bytes).to_vec() == *bytes));
    }
}
