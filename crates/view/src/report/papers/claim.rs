// SPDX-License-Identifier: GPL-2.0-or-later
//! One claim of a paper, and its outcome. A claim is a relation within one clock: between two kernels, two loads, or
//! two periods. A figure of the paper and a figure of onset are never divided by each other: a machine of 1998 and a
//! count of instructions have no common unit.
//!
//! The relation in each repetition decides (another seed in the rig, another run on a machine). Without several
//! repetitions nobody knows what differs by chance, and onset concludes nothing.

use super::figure;
use serde::Serialize;

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ClaimOutcome"))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every repetition shows what the paper says, by the smallest effect at least.
    Alike,
    /// Every repetition shows something else, by the smallest effect at least.
    Changed,
    /// The difference is below the smallest effect, or is not in every repetition.
    NoDifference,
    /// The runs of this report cannot decide the claim; the text says why.
    CannotBeTold,
}

/// A claim with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// What the paper says, with its numbers.
    pub paper: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// What onset measured; or why the runs cannot decide the claim.
    pub here: String,
    /// The relation here, of the repetition in the middle; null if the runs cannot decide the claim.
    pub figure: Option<String>,
    /// The smallest effect that counts as a difference.
    pub smallest_effect: Option<String>,
    /// The range of the relation over the repetitions, from the least to the greatest.
    pub spread: Option<String>,
}

/// With fewer repetitions than this, a spread says nothing.
pub(super) const REPETITIONS_MIN: usize = 3;

/// The unit of a relation. None of them is a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// One time divided by another of the same clock; 1 is no difference.
    Factor,
    /// A time divided by the length of a tick; 0 is no difference.
    Ticks,
    /// A part of a whole; 0 is none of it.
    Share,
}

impl Scale {
    fn text(self, value: f64) -> String {
        match self {
            Scale::Factor => format!("× {}", figure(value)),
            Scale::Ticks => format!("{} ticks", hundredths(value)),
            Scale::Share => hundredths(value),
        }
    }

    /// From the least to the greatest.
    fn range(self, least: f64, greatest: f64) -> String {
        match self {
            Scale::Ticks => format!("{} to {}", hundredths(least), self.text(greatest)),
            _ => format!("{} to {}", self.text(least), self.text(greatest)),
        }
    }
}

/// Without a sign before a zero.
fn hundredths(value: f64) -> String {
    format!("{:.2}", (value * 100.0).round() / 100.0 + 0.0)
}

/// What the paper's relation lets one expect of onset's relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    /// A difference upwards. Its size depends on the machine. So if onset does not see it, a set-up like this may be
    /// unable to show it.
    More,
    /// A difference upwards whose size no machine changes (a tick, a whole time). If onset does not see it, it is gone.
    Exactly,
    /// No difference.
    Same,
}

/// A claim before it is compared with runs.
pub(super) struct Said {
    /// What the paper says, with its numbers: a whole sentence.
    pub(super) paper: &'static str,
    /// What onset compares; a number follows.
    pub(super) what: &'static str,
    pub(super) scale: Scale,
    pub(super) expects: Expects,
    /// What counts as a difference: a factor above 1, or so many ticks.
    pub(super) effect: f64,
    /// Which runs the claim needs; for the text when some are missing.
    pub(super) needs: &'static str,
}

impl Said {
    /// The claim, decided by the relation in each repetition.
    pub(super) fn told(&self, now: &[f64], repetitions: &'static str) -> Claim {
        if now.is_empty() {
            return self.untold(format!("This claim needs {}.", self.needs));
        }
        if now.len() < REPETITIONS_MIN {
            let why = format!(
                "{}: {}. These are {} of the {REPETITIONS_MIN} {repetitions} that onset needs to know what differs by chance.",
                self.what,
                now.iter().map(|v| self.scale.text(*v)).collect::<Vec<_>>().join(", "),
                now.len(),
            );
            return self.untold(why);
        }
        let mut sorted = now.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (sorted[0], sorted[sorted.len() - 1]);
        // Of an even number the lower one, as in the tables beside it.
        let figure = self.scale.text(sorted[(sorted.len() - 1) / 2]);
        let here = format!("{}: {figure}.", self.what);
        let range = self.scale.range(least, greatest);
        Claim {
            paper: self.paper.into(),
            outcome: self.outcome(now),
            here,
            figure: Some(figure),
            smallest_effect: Some(self.scale.text(self.effect)),
            spread: Some(format!("{range} in {} {repetitions}", now.len())),
        }
    }

    fn outcome(&self, now: &[f64]) -> Outcome {
        let all = |is: &dyn Fn(f64) -> bool| now.iter().all(|v| is(*v));
        let above = |v: f64| v >= self.effect;
        let below = |v: f64| match self.scale {
            Scale::Factor => v <= 1.0 / self.effect,
            Scale::Ticks | Scale::Share => v <= -self.effect,
        };
        let neither = |v: f64| !above(v) && !below(v);
        // What is less than the smallest effect is not yet none.
        let gone = |v: f64| v.abs() < self.effect * GONE;
        match self.expects {
            Expects::More | Expects::Exactly if all(&above) => Outcome::Alike,
            Expects::More | Expects::Exactly if all(&below) => Outcome::Changed,
            Expects::Exactly if all(&gone) => Outcome::Changed,
            Expects::Same if all(&neither) => Outcome::Alike,
            Expects::Same if all(&above) || all(&below) => Outcome::Changed,
            _ => Outcome::NoDifference,
        }
    }

    /// The claim, undecided for this reason.
    pub(super) fn untold(&self, why: impl Into<String>) -> Claim {
        untold(self.paper, why)
    }
}

/// Less than this share of the smallest effect is no effect at all. It is chosen.
const GONE: f64 = 0.1;

/// A load under which the worst of a kernel without RT grows by less than this factor, compared with that kernel
/// without load, does not reach what is measured.
const REACHES: f64 = 1.5;

/// Why a claim about runs under load cannot be told: in no repetition the load reaches what is measured. `most` is the
/// greatest factor of all repetitions. None if the load reaches it.
pub(super) fn unreached(most: f64, measured: &str, worst: &str) -> Option<String> {
    (most < REACHES).then(|| {
        format!(
            "The load does not reach {measured}: under load {worst} of preempt=none is at most × {} of that without load.",
            figure(most)
        )
    })
}

/// A claim that no run here can decide.
pub(super) fn untold(paper: &str, why: impl Into<String>) -> Claim {
    Claim {
        paper: paper.into(),
        outcome: Outcome::CannotBeTold,
        here: why.into(),
        figure: None,
        smallest_effect: None,
        spread: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(expects: Expects, scale: Scale, effect: f64) -> Said {
        Said { paper: "A is more than B.", what: "A to B", scale, expects, effect, needs: "both" }
    }

    fn outcome(expects: Expects, now: &[f64]) -> Outcome {
        said(expects, Scale::Factor, 2.0).told(now, "seeds").outcome
    }

    #[test]
    fn alike_takes_the_smallest_effect_in_every_repetition() {
        assert_eq!(outcome(Expects::More, &[2.0, 30.0, 9.0]), Outcome::Alike);
        assert_eq!(outcome(Expects::More, &[1.9, 30.0, 9.0]), Outcome::NoDifference);
        assert_eq!(outcome(Expects::Same, &[0.6, 1.0, 1.9]), Outcome::Alike);
    }

    #[test]
    fn changed_takes_it_too_and_to_the_other_side() {
        assert_eq!(outcome(Expects::More, &[0.5, 0.1, 0.3]), Outcome::Changed);
        assert_eq!(outcome(Expects::Same, &[2.0, 2.5, 9.0]), Outcome::Changed);
        assert_eq!(outcome(Expects::Same, &[0.4, 2.5, 9.0]), Outcome::NoDifference);
    }

    #[test]
    fn a_difference_that_is_not_seen_is_gone_only_where_no_machine_changes_its_size() {
        assert_eq!(outcome(Expects::More, &[1.02, 0.98, 1.0]), Outcome::NoDifference);
        let ticks = said(Expects::Exactly, Scale::Ticks, 0.5);
        assert_eq!(ticks.told(&[0.01, 0.0, 0.02], "seeds").outcome, Outcome::Changed);
        assert_eq!(ticks.told(&[0.41, 0.42, 0.43], "seeds").outcome, Outcome::NoDifference);
        assert_eq!(
            ticks.told(&[1.0, 1.4, 1.6, 9.0], "seeds").figure.as_deref(),
            Some("1.40 ticks")
        );
        assert_eq!(ticks.told(&[1.0, 1.01, 0.99], "seeds").outcome, Outcome::Alike);
        assert_eq!(ticks.told(&[0.01, 0.0, 0.9], "seeds").outcome, Outcome::NoDifference);
    }

    #[test]
    fn one_repetition_decides_nothing_however_large_the_difference() {
        let claim = said(Expects::More, Scale::Factor, 2.0).told(&[1000.0], "seeds");
        assert_eq!(claim.outcome, Outcome::CannotBeTold);
        assert!(claim.here.contains("1 of the 3 seeds"), "{}", claim.here);
        assert_eq!((claim.smallest_effect, claim.spread), (None, None));
    }

    #[test]
    fn effect_and_spread_stand_beside_what_was_decided() {
        let claim = said(Expects::More, Scale::Factor, 2.0).told(&[31.0, 35.64, 33.0], "seeds");
        assert_eq!(claim.here, "A to B: × 33.0.");
        assert_eq!(claim.figure.as_deref(), Some("× 33.0"));
        assert_eq!(claim.smallest_effect.as_deref(), Some("× 2.00"));
        assert_eq!(claim.spread.as_deref(), Some("× 31.0 to × 35.6 in 3 seeds"));
    }

    #[test]
    fn a_zero_has_no_sign_and_a_range_its_unit_once() {
        assert_eq!(Scale::Ticks.range(-0.001, 0.574), "0.00 to 0.57 ticks");
        assert_eq!(Scale::Share.text(-0.0), "0.00");
    }
}
