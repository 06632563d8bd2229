//! YCSB's request distributions.
//!
//! Source: `ZipfianGenerator` (Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994; theta
//! 0.99), `ScrambledZipfianGenerator` (10^10 items, zeta 26.469..., hashed onto the records by FNV-1a),
//! `SkewedLatestGenerator`.

use fastrand::Rng;

const THETA: f64 = 0.99;
/// Items of the scrambled generator, however many records there are.
const SCRAMBLED_ITEMS: f64 = 10_000_000_000.0;
/// zeta(10^10, 0.99), as YCSB has it precomputed.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Gray's generator for a fixed number of items.
#[derive(Clone, Copy, Debug)]
struct Gray {
    items: f64,
    zeta: f64,
    eta: f64,
}

impl Gray {
    fn new(items: f64, zeta: f64) -> Gray {
        let zeta_2 = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / items).powf(1.0 - THETA)) / (1.0 - zeta_2 / zeta);
        Gray { items, zeta, eta }
    }

    /// 0 is the most popular.
    fn next(&self, rng: &mut Rng) -> u64 {
        let u = rng.f64();
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) {
            1
        } else {
            (self.items * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Zipfian {
    over_records: Gray,
    records: u64,
    scrambled: Gray,
}

impl Zipfian {
    pub(crate) fn new(records: u64) -> Zipfian {
        Zipfian {
            over_records: Gray::new(records as f64, zeta(0, records)),
            records,
            scrambled: Gray::new(SCRAMBLED_ITEMS, SCRAMBLED_ZETA),
        }
    }

    /// A record below `records`. The popular records are scattered over `0..key_space`, and numbers from `records` on
    /// are drawn again, so the popular records stay the same while rows are inserted.
    pub(crate) fn scrambled(&self, rng: &mut Rng, records: u64, key_space: u64) -> u64 {
        loop {
            let record = fnv_hash(self.scrambled.next(rng)) % key_space;
            if record < records {
                return record;
            }
        }
    }

    /// A record below `records`; those with the highest numbers are popular.
    pub(crate) fn latest(&mut self, rng: &mut Rng, records: u64) -> u64 {
        if records > self.records {
            let zeta = self.over_records.zeta + zeta(self.records, records);
            self.over_records = Gray::new(records as f64, zeta);
            self.records = records;
        }
        (records - 1).saturating_sub(self.over_records.next(rng))
    }
}

/// Sum of 1 / i^theta for i in `from + 1 ..= to`.
fn zeta(from: u64, to: u64) -> f64 {
    (from + 1..=to).map(|i| (i as f64).powf(-THETA)).sum()
}

/// YCSB's 64-bit FNV-1a over the eight bytes of a number, lowest first, as a number that is not negative in 64 signed
/// bits.
pub(crate) fn fnv_hash(number: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::rng;

    #[test]
    fn latest_prefers_the_end_and_follows_growth() {
        let mut zipfian = Zipfian::new(1_000);
        let mut rng = rng(1, 0);
        for records in [1_000, 1_500] {
            let draws: Vec<u64> = (0..10_000).map(|_| zipfian.latest(&mut rng, records)).collect();
            assert!(draws.iter().all(|&d| d < records));
            let newest = draws.iter().filter(|&&d| d == records - 1).count();
            assert!((1_000..1_700).contains(&newest), "{newest} of 10000 hit the newest record");
        }
    }

    #[test]
    fn scrambled_spreads_the_popular_ones() {
        let zipfian = Zipfian::new(1_000);
        let mut rng = rng(2, 0);
        let mut hits = [0u32; 1_000];
        (0..100_000).for_each(|_| hits[zipfian.scrambled(&mut rng, 1_000, 1_000) as usize] += 1);
        let mut sorted: Vec<(u32, usize)> = hits.iter().copied().zip(0..).collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert!(sorted[0].0 > 3_500, "the most popular got {}", sorted[0].0);
        assert!(sorted[0].1.abs_diff(sorted[1].1) > 1);
    }

    #[test]
    fn the_popular_ones_stay_while_records_are_inserted() {
        let zipfian = Zipfian::new(1_000);
        let max_popular = |records| {
            let (mut rng, mut hits) = (rng(3, 0), [0u32; 1_100]);
            (0..100_000).for_each(|_| hits[zipfian.scrambled(&mut rng, records, 1_100) as usize] += 1);
            assert!(hits[records as usize..].iter().all(|&hits| hits == 0));
            assert!(hits[records as usize - 1] > 0, "the newest is drawn too");
            hits.iter().zip(0..).max().map(|(_, record)| record)
        };
        let first: Option<u64> = max_popular(1_000);
        assert!((1_001..1_020).all(|records| max_popular(records) == first));
    }

    #[test]
    fn hash_is_never_negative() {
        assert!((0..10_000).all(|n| fnv_hash(n) <= 1 << 63));
        assert_ne!(fnv_hash(1), fnv_hash(2));
    }
}
