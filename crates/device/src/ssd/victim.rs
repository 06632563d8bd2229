//! The choice of the next erase unit that garbage collection collects. Pure functions only.
//!
//! - *greedy*: the unit with the fewest valid slots.
//! - *cost-benefit*: the highest `age * (1 - u) / 2u`, u = valid share: the cleaner of Rosenblum and Ousterhout's
//!   log-structured file system, in the form Kawaguchi, Nishioka and Motoda (USENIX 1995) gave it for flash.
//! - *FIFO*: the unit that was filled first (cyclic cleaning; its write amplification has a closed formula).
//!
//! [`VictimIndex`](super::victim_index::VictimIndex) finds the same greedy and FIFO victims without a search of all
//! units; a test compares them.

use crate::error::DeviceError;
use serde::{Deserialize, Serialize};

/// The victim policy of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VictimPolicy {
    /// Fewest valid slots.
    Greedy,
    /// Best ratio of age times space gained to the cost of copying.
    CostBenefit,
    /// Filled first.
    Fifo,
}

highwater_storage::names!(VictimPolicy { Greedy => "greedy", CostBenefit => "cost-benefit", Fifo => "fifo" });

impl std::str::FromStr for VictimPolicy {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<VictimPolicy, DeviceError> {
        let what = || format!("victim policy \"{name}\" is not one of {}", VictimPolicy::names());
        VictimPolicy::named(name).ok_or_else(|| DeviceError::Config(what()))
    }
}

/// The facts about a full unit that a policy may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its number.
    pub unit: u32,
    /// Slots that still hold current data.
    pub valid: u32,
    /// Number of its slots.
    pub slots: u32,
    /// Time at which its last slot was written, in host blocks written.
    pub filled_at: u64,
}

/// The score of a candidate; the candidate with the highest score is the victim.
pub fn score(policy: VictimPolicy, candidate: &Candidate, now: u64) -> f64 {
    match policy {
        VictimPolicy::Greedy => -f64::from(candidate.valid),
        VictimPolicy::Fifo => -(candidate.filled_at as f64),
        VictimPolicy::CostBenefit => {
            let age = now.saturating_sub(candidate.filled_at) as f64 + 1.0;
            let utilisation = f64::from(candidate.valid) / f64::from(candidate.slots);
            if candidate.valid == 0 { f64::INFINITY } else { age * (1.0 - utilisation) / (2.0 * utilisation) }
        }
    }
}

/// The victim among `candidates` at time `now` (host blocks written): the highest score, the first of equals.
/// Units without a single invalid slot are never taken: collecting one gains nothing.
pub fn choose(policy: VictimPolicy, candidates: impl Iterator<Item = Candidate>, now: u64) -> Option<u32> {
    let mut best: Option<(f64, u32)> = None;
    for candidate in candidates.filter(|c| c.valid < c.slots || policy == VictimPolicy::Fifo) {
        let score = score(policy, &candidate, now);
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, candidate.unit));
        }
    }
    best.map(|(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(unit: u32, valid: u32, filled_at: u64) -> Candidate {
        Candidate { unit, valid, slots: 64, filled_at }
    }

    #[test]
    fn greedy_takes_the_emptiest() {
        let units = [unit(0, 40, 1), unit(1, 3, 9), unit(2, 3, 2)];
        assert_eq!(choose(VictimPolicy::Greedy, units.into_iter(), 10), Some(1));
    }

    #[test]
    fn fifo_takes_the_oldest_even_if_full() {
        let units = [unit(0, 1, 5), unit(1, 64, 2)];
        assert_eq!(choose(VictimPolicy::Fifo, units.into_iter(), 10), Some(1));
    }

    #[test]
    fn cost_benefit_weighs_age_against_space() {
        let old_and_fuller = unit(0, 32, 0);
        let new_and_emptier = unit(1, 24, 900);
        let pair = [old_and_fuller, new_and_emptier];
        assert_eq!(choose(VictimPolicy::CostBenefit, pair.into_iter(), 1000), Some(0));
        assert_eq!(choose(VictimPolicy::Greedy, pair.into_iter(), 1000), Some(1));
        assert_eq!(choose(VictimPolicy::CostBenefit, [old_and_fuller, unit(7, 0, 999)].into_iter(), 1000), Some(7));
    }

    #[test]
    fn a_full_unit_gains_nothing() {
        assert_eq!(choose(VictimPolicy::Greedy, [unit(0, 64, 0)].into_iter(), 1), None);
        assert_eq!(choose(VictimPolicy::Greedy, std::iter::empty(), 1), None);
    }
}
