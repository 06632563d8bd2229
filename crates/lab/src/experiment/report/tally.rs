//! Counts of claims by verdict.

use crate::experiment::{Claim, Verdict};
use highwater_report::{Tile, Tone};

/// Claims by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    holds: usize,
    lost: usize,
    undecided: usize,
}

impl Tally {
    /// Of these claims.
    pub fn of<'c>(claims: impl Iterator<Item = &'c Claim>) -> Tally {
        let mut tally = Tally::default();
        for claim in claims {
            match claim.verdict {
                Verdict::Holds => tally.holds += 1,
                Verdict::Lost => tally.lost += 1,
                Verdict::Undecided => tally.undecided += 1,
            }
        }
        tally
    }

    /// Number of claims.
    pub fn all(&self) -> usize {
        self.holds + self.lost + self.undecided
    }

    /// `3 of 4`.
    pub fn text(&self) -> String {
        format!("{} of {}", self.holds, self.all())
    }

    /// The text of the counts.
    pub fn note(&self) -> String {
        match self.undecided {
            0 => "claims hold".into(),
            undecided => format!("claims hold, {undecided} {}", Verdict::Undecided.text()),
        }
    }

    /// Bad with a lost claim, good if all hold.
    pub fn tone(&self) -> Tone {
        match (self.lost, self.undecided) {
            (0, 0) => Tone::Good,
            (0, _) => Tone::Plain,
            _ => Tone::Bad,
        }
    }

    /// As a figure of a page's summary.
    pub fn tile(&self, name: &str) -> Tile {
        Tile::new(name, self.text(), "").note(self.note()).tone(self.tone())
    }
}
