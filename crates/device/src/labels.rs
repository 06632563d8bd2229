//! A label for each block of a device (its stream, its name), stored as ranges of equal labels.

/// A label for each block of the device, stored as ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels<T> {
    /// First block of each range, ascending, the first at 0, and its label.
    stretches: Vec<(u32, T)>,
}

impl<T: Copy + PartialEq> Labels<T> {
    /// Gives all blocks one label.
    pub fn all(label: T) -> Labels<T> {
        Labels { stretches: vec![(0, label)] }
    }

    /// Gives `blocks` blocks from `first` the label.
    pub fn paint(&mut self, first: u32, blocks: u32, label: T) {
        let end = first.saturating_add(blocks);
        let after = self.at(end);
        self.stretches.retain(|(start, _)| *start < first || *start >= end);
        let at = self.stretches.partition_point(|(start, _)| *start < first);
        self.stretches.insert(at, (first, label));
        if end < u32::MAX && self.stretches.get(at + 1).is_none_or(|(start, _)| *start > end) {
            self.stretches.insert(at + 1, (end, after));
        }
        self.stretches.dedup_by(|next, previous| next.1 == previous.1);
    }

    /// The label of a block.
    #[inline]
    pub fn at(&self, lba: u32) -> T {
        self.stretches[self.stretches.partition_point(|(start, _)| *start <= lba) - 1].1
    }

    /// Replaces each label by its image under `f`.
    pub fn map<U: Copy + PartialEq>(&self, f: impl Fn(T) -> U) -> Labels<U> {
        let mut stretches: Vec<(u32, U)> = self.stretches.iter().map(|(start, label)| (*start, f(*label))).collect();
        stretches.dedup_by(|next, previous| next.1 == previous.1);
        Labels { stretches }
    }

    /// Calls `f` for each range of equal labels in `blocks` blocks from `lba`, with its first block, number of blocks
    /// and label.
    #[inline]
    pub fn split<E>(
        &self,
        lba: u32,
        blocks: u32,
        mut f: impl FnMut(u32, u32, T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.stretches.len() == 1 {
            return f(lba, blocks, self.stretches[0].1);
        }
        let end = lba + blocks;
        let mut index = self.stretches.partition_point(|(start, _)| *start <= lba) - 1;
        let mut lba = lba;
        while lba < end {
            let stop = self.stretches.get(index + 1).map_or(end, |(start, _)| end.min(*start));
            f(lba, stop - lba, self.stretches[index].1)?;
            lba = stop;
            index += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Painting stretches must give what painting every block by itself gives.
    #[test]
    fn labels_agree_with_a_plain_array() {
        let mut rng = Rng::with_seed(4);
        for _ in 0..200 {
            let (mut labels, mut array) = (Labels::all(0u8), [0u8; 200]);
            for _ in 0..12 {
                let (first, blocks, label) = (rng.u32(0..190), rng.u32(1..10), rng.u8(0..4));
                labels.paint(first, blocks, label);
                array[first as usize..(first + blocks) as usize].fill(label);
            }
            (0..200).for_each(|lba| assert_eq!(labels.at(lba), array[lba as usize]));
            let (lba, blocks) = (rng.u32(0..100), rng.u32(1..100));
            let mut seen = Vec::new();
            let done: std::result::Result<(), ()> = labels.split(lba, blocks, |first, n, label| {
                assert_eq!(first as usize, lba as usize + seen.len());
                seen.extend(std::iter::repeat_n(label, n as usize));
                Ok(())
            });
            assert!(done.is_ok());
            assert_eq!(seen, array[lba as usize..(lba + blocks) as usize]);
        }
    }
}
