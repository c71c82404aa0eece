// SPDX-License-Identifier: GPL-2.0-or-later
//! Proofs on a simulated machine: how often a change that does nothing is said to do something, and how often a change
//! that does something is found. The noise of its blocks depends on the blocks before, drifts, and has long tails.

use sample::{Nanos, displacement};
use stats::{Effect, Paired, half, is_changed_first};

const PROOFS: u64 = 2_000;
/// The pairs of a proof: what `onset tune prove` takes on a machine, if nobody says another number.
const PAIRS: u64 = 50;

/// How a machine's blocks spread: of the logarithm of the statistic.
#[derive(Clone, Copy)]
struct Noise {
    /// The standard deviation of what lasts, and the share of it that the next block keeps.
    lasting: f64,
    kept: f64,
    /// The standard deviation of each block alone.
    own: f64,
    /// The rise from each block to the next.
    drift: f64,
}

/// A machine of which one block after the other is measured.
struct Machine {
    noise: Noise,
    seed: u64,
    draws: u64,
    lasting: f64,
    blocks: u64,
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Machine {
        Machine { noise, seed, draws: 0, lasting: 0.0, blocks: 0 }
    }

    /// Even from 0 to 1, without both.
    fn even(&mut self) -> f64 {
        self.draws += 1;
        // A proof's lots come from the seeds below 2³².
        let lot = displacement(self.seed | 1 << 40, self.draws, Nanos((1 << 53) - 2));
        (lot.0 + 1) as f64 / (1u64 << 53) as f64
    }

    /// Of the normal distribution (Box, Muller 1958).
    fn normal(&mut self) -> f64 {
        (-2.0 * self.even().ln()).sqrt() * (std::f64::consts::TAU * self.even()).cos()
    }

    /// The statistic of the next block, which the changes multiply by `ratio`.
    fn block(&mut self, ratio: f64) -> f64 {
        let Noise { lasting, kept, own, drift } = self.noise;
        self.lasting = kept * self.lasting + (1.0 - kept * kept).sqrt() * lasting * self.normal();
        self.blocks += 1;
        // One block of twenty is far out, as if something else ran.
        let out = if self.even() < 0.05 { 3.0 } else { 1.0 };
        let log = self.lasting + own * out * self.normal() + drift * self.blocks as f64;
        log.exp() * ratio
    }
}

/// What `pairs` say of a change that multiplies the statistic by `ratio`. The order is drawn, or the block without the
/// change is always the first.
fn proof(noise: Noise, seed: u64, ratio: f64, is_drawn: bool) -> Effect {
    let mut machine = Machine::new(noise, seed);
    let pair = |number| match is_drawn && is_changed_first(seed, number) {
        true => {
            let with = machine.block(ratio);
            (machine.block(1.0), with)
        }
        false => (machine.block(1.0), machine.block(ratio)),
    };
    let pairs: Vec<(f64, f64)> = (0..PAIRS).map(pair).collect();
    Paired::of(&pairs, 0.05).expect("pairs").effect
}

/// How many of the proofs say that a change does something, and that it helps.
fn said(noise: Noise, ratio: f64, is_drawn: bool) -> (u64, u64) {
    let effects: Vec<_> = (0..PROOFS).map(|seed| proof(noise, seed, ratio, is_drawn)).collect();
    let count = |is: fn(&Effect) -> bool| effects.iter().filter(|effect| is(effect)).count() as u64;
    (count(|e| matches!(e, Effect::Helps | Effect::Harms)), count(|e| *e == Effect::Helps))
}

const QUIET: Noise = Noise { lasting: 0.1, kept: 0.8, own: 0.1, drift: 0.0 };

#[test]
fn a_change_that_does_nothing_has_an_effect_in_at_most_one_of_twenty_proofs() {
    let drifting = Noise { drift: 0.05, ..QUIET };
    let lasting = Noise { lasting: 0.5, kept: 0.98, ..QUIET };
    let wild = Noise { lasting: 0.0, own: 1.0, ..QUIET };
    // A machine where every other block is worse: as bad as a rhythm can be for pairs.
    let rhythm = Noise { lasting: 0.5, kept: -0.95, ..QUIET };
    for (name, noise) in [
        ("quiet", QUIET),
        ("drifting", drifting),
        ("lasting", lasting),
        ("wild", wild),
        ("rhythm", rhythm),
    ] {
        let (effects, helps) = said(noise, 1.0, true);
        assert!(effects <= PROOFS / 20, "{name}: {effects} of {PROOFS} have an effect");
        assert!(effects > 0 && helps <= effects, "{name}: nothing ever has an effect");
    }
    // It is the lot that does this: with the block without the change always first, drift looks like an effect.
    let (effects, helps) = said(drifting, 1.0, false);
    assert!(effects > PROOFS / 4 && helps == 0, "{effects} of {PROOFS}, {helps} help");
}

#[test]
fn a_change_of_ten_percent_is_found() {
    let (effects, helps) = said(QUIET, 0.9, true);
    assert!(helps >= PROOFS * 9 / 10, "{helps} of {PROOFS}");
    assert!(effects - helps <= PROOFS / 1000, "{} harm", effects - helps);
    let (_, helps) = said(QUIET, 1.0 / 0.9, true);
    assert!(helps <= PROOFS / 1000, "{helps} of {PROOFS} help, and the change harms");
}

/// In a screening each pair tells something of every change.
#[test]
fn a_screening_keeps_what_helps_and_drops_much_of_what_does_nothing() {
    const CHANGES: usize = 8;
    let (mut helper, mut others) = (0, 0);
    for seed in 0..PROOFS {
        let mut machine = Machine::new(QUIET, seed);
        let mut pairs = [const { Vec::new() }; CHANGES];
        for number in 0..PAIRS / 2 {
            let is_in = half(seed, number, CHANGES);
            // The first change takes ten percent off, all others do nothing.
            let ratio = |has: bool| if has { 0.9 } else { 1.0 };
            let (one, other) = (machine.block(ratio(is_in[0])), machine.block(ratio(!is_in[0])));
            for (pairs, has) in pairs.iter_mut().zip(is_in) {
                pairs.push(if has { (other, one) } else { (one, other) });
            }
        }
        let kept = pairs.map(|pairs| Paired::of(&pairs, 0.05).expect("pairs").may_help());
        helper += u64::from(kept[0]);
        others += kept[1..].iter().filter(|kept| **kept).count() as u64;
    }
    assert!(helper >= PROOFS * 95 / 100, "{helper} of {PROOFS}");
    let all = PROOFS * (CHANGES as u64 - 1);
    assert!(others * 2 < all, "{others} of {all}");
}
