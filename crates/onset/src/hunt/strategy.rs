// SPDX-License-Identifier: GPL-2.0-or-later
//! Ways to choose the instants of triggers: what a trial does, from its number, a seed and what was found before.

use super::finding::{Best, Share};
use super::grounds::Begin;
use rig::FIRST_STAGE;
use sample::{Aim, Disturbance, Nanos, Rule, Schedule, Stretch, When};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Triggers at random come this far apart in the mean, as cyclictest's do.
const RANDOM_PERIOD: Nanos = Nanos::from_millis(1);
/// Aimed triggers are no closer than this: most answers have come by then.
pub(super) const GAP: Nanos = Nanos::from_micros(300);
/// Trials are this long, or a power of two times that: short ones are many, and long ones come to what the load does
/// later. So they become longer as a hunt goes on: twice as long after so many trials, up to 0.8 … 6.4 s. What comes more rarely is
/// for foresight.
const LENGTH: Nanos = Nanos::from_millis(50);
const LENGTHS: u64 = 4;
const TRIALS_PER_DOUBLING: u64 = 16;
const DOUBLINGS_MAX: u64 = 4;
/// Around a find, other instants are tried up to this far away.
const NEIGHBOURHOOD: Nanos = Nanos(1 << 17);
/// A disturbance comes up to this long before the last trigger, and at least so long: one that is close is still being served.
const DISTURBED_FROM: Nanos = Nanos(300);
const DISTURBED_TO: Nanos = Nanos::from_micros(60);

/// Who fired nothing in so many trials in a guest has no more of them.
const IDLE: u64 = 2;

/// The strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The baseline: at any time, as whoever waits for bad luck does.
    Random,
    /// As a stretch opens with interrupts or preemption off: each in turn.
    Coverage,
    /// As a stretch opens that is likely to be long.
    WindowStart,
    /// As a stretch opens inside another.
    WindowChain,
    /// So that the wake-up falls where the kernel does not schedule: preemption is off, or a call or a thread has just begun
    /// that is not preempted, or a lock is held that bottom halves wait for.
    StageAware,
    /// As a stretch opens that is known to be long, or where things are known to come together, because a trial without triggers has
    /// seen it.
    Foresight,
    /// The best find once more, its last instant moved, or with one more trigger shortly before it.
    Refine,
    /// The best find once more, with another device's interrupt shortly before its last trigger, or before the answer to that.
    Disturb,
}

/// All of them; of two that are due alike, the first has the turn.
pub const ALL: [Strategy; 8] = [
    Strategy::Foresight,
    Strategy::WindowStart,
    Strategy::WindowChain,
    Strategy::StageAware,
    Strategy::Coverage,
    Strategy::Refine,
    Strategy::Disturb,
    Strategy::Random,
];

impl Strategy {
    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Random => "random",
            Strategy::Coverage => "coverage",
            Strategy::WindowStart => "window_start",
            Strategy::WindowChain => "window_chain",
            Strategy::StageAware => "stage_aware",
            Strategy::Foresight => "foresight",
            Strategy::Refine => "refine",
            Strategy::Disturb => "disturb",
        }
    }

    /// How much of a hunt's time is dealt to it, in 64ths where all take part. Two thirds go to looking ahead, which alone meets
    /// what is rare, and knows when things come together; a fifth to firing as stretches open, which meets what a trigger before has
    /// brought about; little to luck.
    pub fn weight(self) -> u64 {
        match self {
            Strategy::Foresight => 44,
            Strategy::WindowChain => 10,
            Strategy::WindowStart => 4,
            Strategy::Refine => 2,
            Strategy::Coverage | Strategy::StageAware | Strategy::Random | Strategy::Disturb => 1,
        }
    }

    /// Whether it has nothing to fire into in a guest where it did so much: a kernel of which no preemption count is known shows no
    /// stretch in another.
    pub fn is_idle(self, had: &Share) -> bool {
        self != Strategy::Foresight && had.trials >= IDLE && had.triggers == 0
    }

    /// About how much virtual time trial `number` takes, by which turns are dealt before it was made.
    pub fn usual(self, number: u64, best: Option<&Best>) -> Nanos {
        match (self, best) {
            (Strategy::Foresight, _) => FIRST_STAGE,
            (Strategy::Refine | Strategy::Disturb, Some(best)) => {
                triggers(best).last().copied().unwrap_or_default()
            }
            _ => Nanos((LENGTH.0 << doublings(number)) * ((1 << LENGTHS) - 1) / LENGTHS),
        }
    }

    /// Where trial `number` begins, in a round that is about this guest: a find is refined where it was made; luck has no
    /// choice; the others also go to where foresight has gone.
    pub fn begin<'a>(
        self,
        (number, guest): (u64, usize),
        seed: u64,
        best: Option<&Best>,
        grounds: impl Iterator<Item = &'a Begin>,
    ) -> Begin {
        let later = grounds.filter(|begin| begin.guest == guest && begin.is_later());
        let later: Vec<&Begin> = later.collect();
        let mut random = Random::new(seed.wrapping_add(1), number);
        match (self, best) {
            (Strategy::Refine | Strategy::Disturb, Some(best)) => best.begin,
            (Strategy::Random, _) => Begin::first(guest),
            _ if later.is_empty() || random.below(2) == 0 => Begin::first(guest),
            _ => *later[random.below(later.len() as u64) as usize],
        }
    }

    /// What disturbs the trial whose triggers are those of [`Strategy::when`]: once, since a storm makes any answer as late as
    /// one likes.
    pub fn disturbances(self, number: u64, seed: u64, best: Option<&Best>) -> Vec<Disturbance> {
        let last = best.and_then(|best| triggers(best).last().copied());
        let (Strategy::Disturb, Some(last)) = (self, last) else { return Vec::new() };
        let answered = Nanos(last.0 + best.map_or(0, |best| best.latency_ns.0));
        vec![disturbing((last, answered), &mut Random::new(seed, number))]
    }

    /// What trial `number` of a hunt with this seed does. What needs a find to begin with does as
    /// [`Strategy::WindowStart`] where there is none, and so does foresight, whose own trials are `foresight::firing`.
    pub fn when(self, number: u64, seed: u64, best: Option<&Best>) -> When {
        let mut random = Random::new(seed, number);
        let until = Nanos(LENGTH.0 << (random.below(LENGTHS) + doublings(number)));
        let mut aimed = |rule, kinds: &[u8]| {
            let kinds = kinds[random.below(kinds.len() as u64) as usize];
            let (gap, count) = (GAP, until.0 / GAP.0);
            When::Aimed(Aim { rule, kinds, gap, count, until, seed: random.next() })
        };
        match (self, best) {
            (Strategy::Random, _) => When::Planned(Schedule::Periodic {
                phase: RANDOM_PERIOD,
                period: RANDOM_PERIOD,
                jitter: Nanos(RANDOM_PERIOD.0 - 1),
                seed: random.next(),
                count: until.0 / RANDOM_PERIOD.0,
            }),
            (Strategy::Coverage, _) => aimed(Rule::Coverage, &[IRQS | PREEMPT]),
            (Strategy::WindowChain, _) => aimed(Rule::Nested, &[IRQS, PREEMPT, IRQS | PREEMPT]),
            (Strategy::StageAware, _) => {
                aimed(Rule::Longest, &[KERNEL, PREEMPT | KERNEL, KERNEL | BH_HELD])
            }
            (Strategy::Refine, Some(best)) => When::Planned(refined(best, &mut random)),
            (Strategy::Disturb, Some(best)) => When::Planned(Schedule::Explicit(triggers(best))),
            (
                Strategy::WindowStart | Strategy::Foresight | Strategy::Refine | Strategy::Disturb,
                _,
            ) => aimed(Rule::Longest, &[IRQS, PREEMPT, IRQS | PREEMPT]),
        }
    }
}

/// How often the lengths of trials were doubled until this one.
fn doublings(number: u64) -> u64 {
    (number / TRIALS_PER_DOUBLING).min(DOUBLINGS_MAX)
}

/// A disturbance, without timers or with some, shortly before the last trigger, which moves all that comes after it; or between
/// that trigger and its answer, which leaves what the trigger met as it was and adds to it.
fn disturbing((last, answered): (Nanos, Nanos), random: &mut Random) -> Disturbance {
    let timers = match random.below(2) {
        0 => 0,
        _ => 1 + random.below(Disturbance::TIMERS_MAX.into()) as u8,
    };
    let before = DISTURBED_FROM.0 + random.below(DISTURBED_TO.0 - DISTURBED_FROM.0 + 1);
    let at = match random.below(2) {
        0 => last.0.saturating_sub(before),
        _ => last.0 + random.below((answered.0 - last.0).max(1)),
    };
    Disturbance { at: Nanos(at), timers }
}

/// The find's triggers, up to the one that is answered late.
fn triggers(best: &Best) -> Vec<Nanos> {
    let count = best.instants.len().min(best.trigger as usize + 1);
    best.instants[..count].to_vec()
}

const IRQS: u8 = Stretch::IrqsOff as u8;
const PREEMPT: u8 = Stretch::PreemptOff as u8;
const KERNEL: u8 = Stretch::Unscheduled as u8;
const BH_HELD: u8 = Stretch::BhHeld as u8;

/// The instants up to the find's, with that one moved by an offset of random size, small ones being as likely as large ones; in one of
/// three cases with another trigger before it, whose answer is then still going on.
fn refined(best: &Best, random: &mut Random) -> Schedule {
    let instants = triggers(best);
    let [before @ .., last] = instants.as_slice() else {
        return Schedule::Explicit(Vec::new());
    };
    let doublings = u64::from(NEIGHBOURHOOD.0.ilog2());
    let offset = (1 << random.below(doublings + 1)) + random.below(100);
    let earliest = before.last().map_or(0, |t| t.0) + Nanos::from_micros(2).0;
    let moved = match random.below(2) {
        0 => last.0 + offset,
        _ => last.0.saturating_sub(offset).max(earliest),
    };
    let mut times = before.to_vec();
    let extra = moved.saturating_sub(Nanos::from_micros(2).0 + random.below(50_000));
    if random.below(3) == 0 && extra > earliest {
        times.push(Nanos(extra));
    }
    times.push(Nanos(moved));
    Schedule::Explicit(times)
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        let known = || ALL.map(Strategy::name).join(", ");
        let found = ALL.into_iter().find(|s| s.name() == name);
        found.ok_or_else(|| format!("no strategy is called {name:?}; there are {}", known()))
    }
}

/// Random numbers of one trial (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64, number: u64) -> Random {
        let mut random = Random(seed);
        Random(random.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 … `end` − 1; `end` is small against 2⁶⁴, so that the remainder is even enough.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[cfg(test)]
mod tests {
    use super::{Strategy, *};
    use proptest::prelude::*;

    #[test]
    fn a_trial_is_the_same_for_the_same_number_and_seed_and_another_for_others() {
        for strategy in ALL {
            let when = |number, seed| strategy.when(number, seed, None);
            assert_eq!(when(3, 7), when(3, 7));
            assert_ne!(when(3, 7), when(4, 7), "{strategy}");
            assert_ne!(when(3, 7), when(3, 8), "{strategy}");
        }
    }

    #[test]
    fn only_one_strategy_disturbs_and_it_does_so_in_every_way_around_the_last_trigger() {
        let last = Nanos::from_millis(5);
        let instants = vec![Nanos::from_millis(2), last, Nanos::from_millis(9)];
        let latency_ns = Nanos(2_000_000);
        let best = Best { instants, trigger: 1, latency_ns, ..Best::default() };
        let made = |strategy: Strategy| {
            (0..100).flat_map(|n| strategy.disturbances(n, 7, Some(&best))).collect::<Vec<_>>()
        };
        for strategy in ALL.into_iter().filter(|s| *s != Strategy::Disturb) {
            assert_eq!(made(strategy), [], "{strategy}");
        }
        let made = made(Strategy::Disturb);
        assert_eq!(made.len(), 100);
        let with_timers = made.iter().filter(|d| d.timers > 0).count();
        assert!((30..70).contains(&with_timers), "{with_timers}");
        let before = made.iter().filter(|d| d.at < last).count();
        assert!((30..70).contains(&before), "{before}");
        for disturbance in made {
            let (at, until) = (disturbance.at.0, last.0 + latency_ns.0);
            assert!(
                (last.0 - 60_000..=last.0 - 300).contains(&at) || (last.0..until).contains(&at)
            );
            assert!(disturbance.timers <= Disturbance::TIMERS_MAX);
        }
        assert_eq!(Strategy::Disturb.disturbances(3, 7, None), []);
    }

    #[test]
    fn names_are_read_back_and_a_wrong_one_is_answered_with_all() {
        for strategy in ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        let error = "luck".parse::<Strategy>().unwrap_err();
        assert!(error.contains("window_chain") && error.contains("luck"), "{error}");
    }

    proptest! {
        #[test]
        fn a_refined_find_keeps_its_earlier_triggers_and_rises(
            gaps in proptest::collection::vec(10_000u64..2_000_000, 1..20), seed: u64, number: u64,
        ) {
            let instants: Vec<Nanos> = gaps
                .iter()
                .scan(0, |t, gap| { *t += gap; Some(Nanos(*t)) })
                .collect();
            let trigger = instants.len() as u64 - 1;
            let best = Best { instants: instants.clone(), trigger, ..Best::default() };
            let When::Planned(Schedule::Explicit(times)) = Strategy::Refine.when(number, seed, Some(&best))
            else { panic!("refining is exact") };
            let before = instants.len() - 1;
            prop_assert_eq!(&times[..before], &instants[..before]);
            prop_assert!(times.windows(2).all(|w| w[0] < w[1]));
            prop_assert!(times.len() == before + 1 || times.len() == before + 2);
        }
    }
}
