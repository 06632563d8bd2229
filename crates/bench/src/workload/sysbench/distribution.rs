//! sysbench's random distributions (`--rand-type`).
//!
//! Source: sysbench 1.0.20, `src/sb_rand.c` (uniform, gaussian, special, pareto; defaults `--rand-spec-iter=12`,
//! `--rand-spec-pct=1`, `--rand-spec-res=75`, `--rand-pareto-h=0.2`, type `special`); zipfian from the 1.1 line of the
//! same file (`--rand-zipfian-exp=0.8`), there as rejection-inversion sampling after Hörmann and Derflinger,
//! "Rejection-inversion to generate variates from monotone discrete distributions" (ACM TOMACS 6.3, 1996). The formulas
//! are implemented from the paper and the documented parameters.

use fastrand::Rng;

const GAUSSIAN_ROUNDS: u32 = 12;
const SPECIAL_PERCENT: f64 = 1.0;
const SPECIAL_SHARE_PERCENT: f64 = 75.0;
const PARETO_H: f64 = 0.2;
const ZIPFIAN_EXPONENT: f64 = 0.8;

/// The distribution of row numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RandType {
    /// Uniform.
    Uniform,
    /// The mean of twelve uniform numbers.
    Gaussian,
    /// sysbench 1.0's default: a quarter gaussian, three quarters uniform over the 1 % of rows in the middle.
    #[default]
    Special,
    /// A power law with h = 0.2: 80 % of draws hit 20 % of rows.
    Pareto,
    /// Zipf's law with exponent 0.8.
    Zipfian,
}

highwater_storage::names!(RandType {
    Uniform => "uniform",
    Gaussian => "gaussian",
    Special => "special",
    Pareto => "pareto",
    Zipfian => "zipfian",
});

/// Draws integers in `first..=last`.
#[derive(Clone, Debug)]
pub struct Distribution {
    kind: RandType,
    first: u64,
    last: u64,
    pareto_power: f64,
    zipf: Zipf,
}

impl Distribution {
    /// A distribution over `first..=last`.
    pub fn new(kind: RandType, first: u64, last: u64) -> Distribution {
        let last = last.max(first);
        let pareto_power = PARETO_H.ln() / (1.0 - PARETO_H).ln();
        Distribution { kind, first, last, pareto_power, zipf: Zipf::new(last - first + 1, ZIPFIAN_EXPONENT) }
    }

    /// The next number.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        let count = (self.last - self.first + 1) as f64;
        let offset = match self.kind {
            RandType::Uniform => return rng.u64(self.first..=self.last),
            RandType::Gaussian => count * mean_of_uniforms(rng),
            RandType::Special => self.special(rng),
            RandType::Pareto => count * rng.f64().powf(self.pareto_power),
            RandType::Zipfian => (self.zipf.next(rng) - 1) as f64,
        };
        (self.first + offset as u64).min(self.last)
    }

    fn special(&self, rng: &mut Rng) -> f64 {
        let span = (self.last - self.first) as f64;
        let draw = rng.f64();
        if draw * span * (100.0 / (100.0 - SPECIAL_SHARE_PERCENT)) < span {
            return span * mean_of_uniforms(rng);
        }
        let hot = span * SPECIAL_PERCENT / 100.0;
        draw * (hot + 1.0) + span / 2.0 - hot / 2.0
    }
}

fn mean_of_uniforms(rng: &mut Rng) -> f64 {
    (0..GAUSSIAN_ROUNDS).map(|_| rng.f64()).sum::<f64>() / f64::from(GAUSSIAN_ROUNDS)
}

/// Zipf's law over `1..=n` by rejection-inversion: `H` is the integral of the hat function `h(x) = x^-e`.
#[derive(Clone, Debug)]
struct Zipf {
    n: f64,
    exponent: f64,
    shortcut: f64,
    integral_first: f64,
    integral_last: f64,
}

impl Zipf {
    fn new(n: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { n: n as f64, exponent, shortcut: 0.0, integral_first: 0.0, integral_last: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(n as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.hat(2.0));
        zipf
    }

    fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.integral_last + rng.f64() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.hat(k) {
                return k as u64;
            }
        }
    }

    fn hat(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        ratio_expm1((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, x: f64) -> f64 {
        (ratio_ln1p((x * (1.0 - self.exponent)).max(-1.0)) * x).exp()
    }
}

/// ln(1 + x) / x, also near zero.
fn ratio_ln1p(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

/// (e^x - 1) / x, also near zero.
fn ratio_expm1(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::rng;

    fn shares(kind: RandType, rows: u64, draws: u32) -> Vec<u32> {
        let distribution = Distribution::new(kind, 1, rows);
        let mut rng = rng(3, 0);
        let mut hits = vec![0; rows as usize + 1];
        for _ in 0..draws {
            hits[distribution.next(&mut rng) as usize] += 1;
        }
        assert_eq!(hits[0], 0);
        hits
    }

    fn sum(hits: &[u32]) -> u32 {
        hits.iter().sum()
    }

    #[test]
    fn special_puts_three_quarters_into_the_middle_percent() {
        let hits = shares(RandType::Special, 10_000, 100_000);
        // sysbench draws the uniform part from the same number that chose it (0.25..1), so it fills the upper three
        // quarters of the middle.
        let middle = sum(&hits[4_950..=5_051]);
        assert!((74_000..=79_000).contains(&middle), "{middle}");
    }

    #[test]
    fn pareto_puts_eighty_percent_into_a_fifth() {
        let hits = shares(RandType::Pareto, 10_000, 100_000);
        let fifth = sum(&hits[1..=2_000]);
        assert!((79_000..=81_000).contains(&fifth), "{fifth}");
    }

    #[test]
    fn zipfian_follows_the_power_law() {
        let hits = shares(RandType::Zipfian, 1_000, 200_000);
        let ratio = f64::from(hits[1]) / f64::from(hits[16]);
        let law = 16f64.powf(ZIPFIAN_EXPONENT);
        assert!((ratio / law - 1.0).abs() < 0.15, "{ratio} against {law}");
    }

    #[test]
    fn gaussian_is_centred_and_uniform_is_flat() {
        let hits = shares(RandType::Gaussian, 1_000, 100_000);
        assert!(sum(&hits[400..=600]) > 70_000);
        let hits = shares(RandType::Uniform, 10, 100_000);
        assert!(hits[1..].iter().all(|h| (9_500..10_500).contains(h)), "{hits:?}");
    }

    #[test]
    fn one_row_is_enough() {
        for kind in RandType::ALL {
            assert_eq!(sum(&shares(kind, 1, 100)), 100);
        }
    }
}
