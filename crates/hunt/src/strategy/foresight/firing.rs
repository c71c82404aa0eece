// SPDX-License-Identifier: GPL-2.0-or-later
//! The triggers of foresight's trials: of trials that look ahead, and of trials that fire into what was seen.
//!
//! The trigger of a trial comes exactly where the scout saw the stretch. A trial finds the stretch by its number (see
//! [`Occurrence`](sample::Occurrence)), and records its stack.

use crate::foreseen::ForeseenStretch;
use sample::{Aim, Nanos, Rule, Schedule, Stretch, When};

/// A stretch that is longer than all others is fired into as it opens, and in further trials this many thousandths of
/// its length later. A short stretch may be long because an interrupt came in it. An earlier trigger moves this
/// interrupt, and then the stretch is short again. So each try is ten times as far in.
const THOUSANDTHS: [u64; ENTRIES] = [0, 1, 10, 100];
/// The number of ways to fire into such a stretch.
pub const ENTRIES: usize = 4;
/// How long a trial waits for its stretch after its time. The guest is as it was for the scout, so this is not needed.
/// It is chosen: ten times the latest known answer, 2.0 ms (docs/hunting.md, the table of random minutes).
const MARGIN: Nanos = Nanos::from_millis(20);

/// A scout that looks ahead until this time.
pub fn scouting(until: Nanos) -> When {
    When::Aimed(Aim {
        rule: Rule::Scout,
        kinds: every_kind(),
        gap: Nanos(0),
        count: 1,
        until,
        seed: 0,
    })
}

/// Trials that fire into this stretch alone, and nowhere before it. So the stretch comes exactly as foreseen.
pub fn entering(stretch: &ForeseenStretch, gap: Nanos) -> [When; ENTRIES] {
    THOUSANDTHS.map(|thousandths| {
        // An instruction takes a nanosecond or more, so this instant is in the stretch.
        let into = (stretch.length_insns * thousandths / 1_000).0;
        match into {
            // An aimed trigger records the stack of its stretch.
            0 => opening(stretch, gap),
            _ => When::Planned(Schedule::Explicit(vec![stretch.at_ns + Nanos(into)])),
        }
    })
}

/// A trial that fires as this stretch opens. It fires once: after the answer the guest goes another way, so later
/// stretches might not come. A trial of its own meets each of them exactly.
pub fn opening(stretch: &ForeseenStretch, gap: Nanos) -> When {
    When::Aimed(Aim {
        kinds: every_kind(),
        gap,
        count: 1,
        until: stretch.at_ns + MARGIN,
        rule: Rule::Listed(vec![stretch.occurrence]),
        seed: 0,
    })
}

fn every_kind() -> u8 {
    Stretch::ALL.iter().map(|kind| *kind as u8).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::stretch;
    use sample::Occurrence;

    fn listed(when: &When) -> &[Occurrence] {
        match when {
            When::Aimed(Aim { rule: Rule::Listed(list), .. }) => list,
            other => panic!("{other:?} has no list"),
        }
    }

    #[test]
    fn a_stretch_is_entered_as_it_opens_and_further_and_further_in() {
        let outstanding = stretch(Stretch::PreemptOff, 3, 2_000_000, Nanos(70_000_000));
        let [opens, further @ ..] = entering(&outstanding, Nanos(300));
        assert_eq!(listed(&opens), [outstanding.occurrence]);
        assert_eq!(opens.count(), 1);
        let further = further.map(|when| match when {
            When::Planned(Schedule::Explicit(instants)) => instants,
            other => panic!("{other:?} is not exact"),
        });
        let entered = [70_002_000, 70_020_000, 70_200_000].map(|at| vec![Nanos(at)]);
        assert_eq!(further, entered);
    }
}
