// SPDX-License-Identifier: GPL-2.0-or-later
//! The triggers of foresight's trials: of trials that look ahead, and of trials that fire into what was seen.
//!
//! The first trigger of a trial comes exactly where the scout saw the stretch. Each answer disturbs what follows. So a
//! trial finds later stretches by their number (see [`Occurrence`](sample::Occurrence)), and it does not fire into a
//! stretch that no longer exists.

use crate::dice::Dice;
use crate::foreseen::{ForeseenStretch, apart, by_length};
use sample::{Aim, Nanos, Rule, Schedule, Stretch, When};

/// A stretch that is outstanding is fired into as it opens, and in further trials this many thousandths of its length
/// later. A short stretch may be long because an interrupt came in it. An earlier trigger moves this interrupt, and
/// then the stretch is short again. So each try is ten times as far in.
const THOUSANDTHS: [u64; ENTRIES] = [0, 1, 10, 100];
/// The number of ways to fire into such a stretch.
pub const ENTRIES: usize = 4;
/// Of this many trials that fire as a stretch opens, one fires into this many stretches. The numbers are chosen: such a
/// trial takes as long as a hundred others.
const BROAD: u64 = 32;
const MANY: usize = 64;
/// How long a trial waits for a listed stretch after the time of the scout's last. It is chosen: ten times the latest
/// known answer, 2.0 ms (docs/hunting.md, the table of random minutes), since earlier answers delay the stretch.
const MARGIN: Nanos = Nanos::from_millis(20);

/// A scout that looks ahead until this time.
pub fn scouting(until: Nanos) -> When {
    When::Aimed(Aim::scout(until))
}

/// Trials that fire into this stretch alone, and nowhere before it. So the stretch comes exactly as foreseen.
pub fn entering(stretch: &ForeseenStretch, gap: Nanos) -> [When; ENTRIES] {
    THOUSANDTHS.map(|thousandths| {
        // An instruction takes a nanosecond or more, so this instant is in the stretch.
        let into = (stretch.length_insns * thousandths / 1_000).0;
        match into {
            // An aimed trigger records the stack of its stretch.
            0 => listed(&[*stretch], gap),
            _ => When::Planned(Schedule::Explicit(vec![stretch.at_ns + Nanos(into)])),
        }
    })
}

/// A trial that fires as `first` opens. After the answer the guest goes another way, and a foreseen stretch may not
/// come. So most trials fire once, and take milliseconds. Some fire into many of the later stretches, too: a hunt also
/// lists what is less late than the worst, and into that no trial fires first.
pub fn firing(
    foreseen: &[ForeseenStretch],
    first: ForeseenStretch,
    gap: Nanos,
    dice: &mut Dice,
) -> When {
    let many = if dice.below(BROAD) == 0 { MANY } else { 1 };
    let mut later = by_length(foreseen, |f| f.at_ns > first.at_ns);
    later.retain(|_| dice.below(4) != 0);
    listed(&apart(vec![first], &later, many), gap)
}

/// A trial that fires as these stretches open.
fn listed(chosen: &[ForeseenStretch], gap: Nanos) -> When {
    let last = chosen.iter().map(|f| f.at_ns).max().unwrap_or_default();
    When::Aimed(Aim {
        kinds: Stretch::every(),
        gap,
        count: chosen.len().max(1) as u64,
        until: last + MARGIN,
        rule: Rule::Listed(chosen.iter().map(|f| f.occurrence).collect()),
        seed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{second, stretch};
    use crate::foreseen::{APART, longest};
    use proptest::prelude::*;
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

    proptest! {
        #[test]
        fn what_is_fired_into_was_foreseen_and_is_apart_and_the_guest_runs_until_after_it(
            seed: u64, number: u64, first in 0usize..500,
        ) {
            let foreseen = longest(second());
            let first = foreseen[first];
            let when = firing(&foreseen, first, Nanos(300), &mut Dice::new(seed, number));
            let find = |o: &Occurrence| foreseen.iter().find(|f| f.occurrence == *o).map(|f| f.at_ns);
            let mut times: Vec<Nanos> = Vec::new();
            for occurrence in listed(&when) {
                times.push(find(occurrence).expect("it was foreseen"));
            }
            prop_assert_eq!(times[0], first.at_ns);
            prop_assert!(times[1..].iter().all(|at| *at > first.at_ns));
            times.sort();
            prop_assert!(times.windows(2).all(|w| w[1] - w[0] >= APART));
            prop_assert!(times.iter().all(|at| *at < when.longest_gap()));
            prop_assert_eq!(when.count(), times.len() as u64);
        }
    }
}
