// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns the follower's events of a trial into what a hunt learns from: the stacks that opened stretches, the stacks
//! that were fired into, and for a scout the stretches and interrupts to come. Hunting reads events only here.

use hunt::{AT_ONCE, ForeseenStretch, Timeline};
use rig::Sees;
use sample::{At, Insns, Nanos, Occurrence, Stamp, Stretch, Virtual};
use std::collections::{BTreeSet, HashMap};
use trace::{StackId, Symbols, named};
use wire::Event;

/// What the follower said, as far as a hunt needs it.
#[derive(Clone, Default)]
pub struct Seen {
    /// The virtual nanoseconds of an instruction, as a power of two.
    shift: u8,
    stacks: HashMap<StackId, Vec<u64>>,
    pub openers: BTreeSet<StackId>,
    /// The stack of each aimed trigger, in the order of triggers.
    pub aimed: Vec<Option<StackId>>,
    pub triggers: Vec<Stamp<Virtual>>,
    /// The stretches that a scout tells of.
    pub foreseen: Vec<ForeseenStretch>,
    /// Those of these stretches that have had interrupts masked until now, or until an interrupt that had waited for
    /// the stretch's end. Each has the number of instructions until it opened.
    followed: Vec<(usize, Insns)>,
    /// The instructions until interrupts were masked.
    masked: Insns,
    /// Until when interrupts were masked.
    unmasked: Option<Stamp<Virtual>>,
    /// The interrupts that a scout sees.
    pub timeline: Timeline,
    /// When measuring began.
    origin: Option<Stamp<Virtual>>,
    /// The instructions when measuring began, at the first trigger, and at the last event.
    began: Insns,
    fired: Option<Insns>,
    executed: Insns,
    pub last: Option<Stamp<Virtual>>,
}

impl Sees for Seen {
    fn see(&mut self, event: &Event) {
        Seen::see(self, event);
    }
}

impl Seen {
    /// Nothing has been said yet. `shift` gives the time that an instruction of the guest takes.
    pub fn new(shift: u8) -> Seen {
        Seen { shift, timeline: Timeline::new(shift), ..Seen::default() }
    }

    /// Takes an event of the follower.
    pub fn see(&mut self, event: &Event) {
        match *event {
            Event::Frame { stack, address, .. } => {
                self.stacks.entry(stack).or_default().push(address);
            }
            Event::Masked { at, .. } => self.at(at),
            Event::Unmasked { at, opened, .. } => {
                self.openers.extend(opened);
                self.at(at);
            }
            Event::Preempt { opened, .. } => self.openers.extend(opened),
            Event::Aimed { stack, .. } => self.aimed.push(stack),
            Event::Trigger { at, .. } => {
                self.triggers.push(at.time);
                self.fired.get_or_insert(at.insns);
                self.at(at);
            }
            Event::Mark { at, .. } => {
                self.origin = Some(at.time);
                (self.began, self.executed) = (at.insns, at.insns);
            }
            Event::Pins { at, .. } | Event::End { at, .. } => self.at(at),
            _ => {}
        }
    }

    fn at(&mut self, at: At) {
        self.last = Some(at.time);
        self.executed = at.insns;
    }

    /// The instructions that the guest executed since measuring began, or since the first trigger.
    pub fn worked(&self, since_first_trigger: bool) -> Insns {
        let since = self.fired.filter(|_| since_first_trigger).unwrap_or(self.began);
        self.executed.saturating_sub(since)
    }

    /// Takes an event of a scout: beside what is seen of each trial, the stretches and the interrupts to come.
    /// `is_interrupt` says whether an interrupt leads to an address.
    pub fn scout(&mut self, event: &Event, is_interrupt: impl Fn(u64) -> bool) {
        self.see(event);
        let since = |at: At| self.origin.and_then(|origin| at.time.since(origin));
        match *event {
            Event::Masked { at, by } => {
                if let Some(at) = since(at) {
                    self.timeline.mask(at, || is_interrupt(by));
                }
                self.masked(at, || is_interrupt(by));
            }
            Event::Unmasked { at, .. } => {
                if let Some(at) = since(at) {
                    self.timeline.unmask(at);
                }
                self.unmasked(at);
            }
            Event::Stretch { opened, length, occurrence, .. } => {
                self.foresee(opened, length, occurrence);
            }
            _ => {}
        }
    }

    fn foresee(&mut self, opened: Stamp<Virtual>, length_insns: Insns, occurrence: Occurrence) {
        if occurrence.kind == Stretch::IrqsOff {
            self.followed.push((self.foreseen.len(), self.masked));
        }
        let at_ns = self.since_origin(opened);
        self.foreseen.push(ForeseenStretch { occurrence, length_insns, at_ns });
    }

    /// Learns that interrupts are masked from `at` on. If an interrupt that waited masks them, the stretches that ended
    /// just before go on.
    fn masked(&mut self, at: At, by_interrupt: impl FnOnce() -> bool) {
        self.masked = at.insns;
        // The comparison is by the clock, which also goes on while the guest waits for an interrupt.
        let at_once = Nanos(AT_ONCE.0 << self.shift);
        let waited = |end: Stamp<Virtual>| at.time.since(end).is_some_and(|gap| gap <= at_once);
        if !(self.unmasked.is_some_and(waited) && by_interrupt()) {
            self.followed.clear();
        }
    }

    fn unmasked(&mut self, at: At) {
        self.unmasked = Some(at.time);
        for (index, opened) in &self.followed {
            let stretch = &mut self.foreseen[*index];
            let until_now = at.insns.saturating_sub(*opened);
            stretch.length_insns = until_now.max(stretch.length_insns);
        }
    }

    pub fn since_origin(&self, at: Stamp<Virtual>) -> Nanos {
        self.origin.and_then(|origin| at.since(origin)).unwrap_or_default()
    }

    /// The stack that opened the stretch at which this trigger was aimed. Empty for a trigger that was not aimed.
    pub fn stack_of(&self, trigger: u64) -> &[u64] {
        let aimed = self.aimed.get(trigger as usize).copied().flatten();
        let stack = aimed.and_then(|stack| self.stacks.get(&stack));
        stack.map_or(&[], Vec::as_slice)
    }

    /// The number of triggers until `end`, since measuring began.
    pub fn triggers_until(&self, end: Nanos) -> u64 {
        let until = |at: &&Stamp<Virtual>| self.since_origin(**at) <= end;
        self.triggers.iter().take_while(until).count() as u64
    }

    /// A number that stands for a stack in any guest of the same kernel. The guests' modules may lie elsewhere, so the
    /// number is made of names.
    pub fn hash(&self, stack: StackId, symbols: &dyn Symbols) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for frame in self.stacks.get(&stack).into_iter().flatten() {
            hasher.update(named(symbols, *frame).as_bytes()).update(b"\n");
        }
        let bytes = hasher.finalize();
        u64::from_le_bytes(*bytes.as_bytes().first_chunk().expect("it has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hunt::{Coincidence, ComingInterrupt};

    /// What masks: the entry of the timer's interrupt, or an instruction of the kernel.
    const TIMER: u64 = 0xffff_ffff_8200_0000;
    const CLI: u64 = 0xffff_ffff_8100_0000;

    #[test]
    fn an_interrupt_that_waited_for_the_end_of_a_stretch_is_part_of_it() {
        let mut seen = Seen::default();
        let stretches = [
            (1_000, 6_000, TIMER),
            (6_001, 9_000, TIMER),
            (9_003, 14_000, TIMER),
            (14_001, 15_000, CLI),
        ];
        seen.scout(&mark(at(500, 500)), |_| false);
        for (from, to, by) in stretches {
            tell(&mut seen, by, at(from, from), at(to, to));
        }
        let lengths = seen.foreseen.iter().map(|f| f.length_insns.0).collect::<Vec<_>>();
        // The third came too late to have waited, and the fourth is no interrupt.
        assert_eq!(lengths, [8_000, 2_999, 4_997, 999]);
        let begun = seen.foreseen.iter().map(|f| f.at_ns.0).collect::<Vec<_>>();
        assert_eq!(begun, [500, 5_501, 8_503, 13_501]);
    }

    #[test]
    fn a_stretch_is_as_long_as_its_instructions_however_long_one_takes() {
        let mut seen = Seen::new(3);
        // The times are in instructions. The last interrupt had waited. The one before it came while the guest did
        // nothing for a while.
        let stretches = [(100, 700, 0), (702, 900, 5_000), (902, 1_000, 5_000)];
        let at = |insns: u64, idle: u64| at((insns << 3) + idle, insns);
        seen.scout(&mark(at(50, 0)), |_| false);
        for (from, to, idle) in stretches {
            tell(&mut seen, TIMER, at(from, idle), at(to, idle));
        }
        let lengths = seen.foreseen.iter().map(|f| f.length_insns.0).collect::<Vec<_>>();
        assert_eq!(lengths, [600, 298, 98]);
        let begun = seen.foreseen.iter().map(|f| f.at_ns.0).collect::<Vec<_>>();
        assert_eq!(begun, [400, 5_216 + 5_000, 6_816 + 5_000]);
    }

    #[test]
    fn interrupts_are_on_the_timeline_with_who_masked_them_since_measuring_began() {
        let mut seen = Seen::default();
        let mut tell = |event| seen.scout(&event, |address| address == TIMER);
        let unmasked = |ns| Event::Unmasked { at: at(ns, ns), stack: None, opened: None };
        // Interrupts were masked since before measuring began, so the stretch that ends there was not seen to begin.
        tell(Event::Masked { at: at(40, 40), by: CLI });
        tell(mark(at(50, 50)));
        tell(unmasked(60));
        for (from, to, by) in [(1_050, 4_050, CLI), (9_050, 10_550, TIMER), (80_050, 81_550, TIMER)]
        {
            tell(Event::Masked { at: at(from, from), by });
            tell(unmasked(to));
        }
        let coming = ComingInterrupt { after_insns: Insns(5_000), takes_insns: Insns(1_500) };
        let met = [(1_005, 2_995, vec![coming]), (80_005, 1_495, Vec::new())];
        let met = met.map(|(at, masked, interrupts)| Coincidence {
            at_ns: Nanos(at),
            masked_insns: Insns(masked),
            interrupts,
        });
        assert_eq!(seen.timeline.coincidences(), met);
    }

    fn at(ns: u64, insns: u64) -> At {
        At::new(Stamp::from_ns(ns), Insns(insns))
    }

    fn mark(at: At) -> Event {
        Event::Mark { at, mark: wire::Mark::Measuring, control: 0, level: 0, raised: 0 }
    }

    /// A stretch with interrupts masked, as a scout tells it.
    fn tell(seen: &mut Seen, by: u64, from: At, to: At) {
        let occurrence = Occurrence { kind: Stretch::IrqsOff, key: 0, ordinal: 0 };
        let (opened, length) = (from.time, to.insns - from.insns);
        let masked = Event::Masked { at: from, by };
        let stretch = Event::Stretch { opened, cpu: 0, length, occurrence };
        let unmasked = Event::Unmasked { at: to, stack: None, opened: None };
        [masked, stretch, unmasked].iter().for_each(|event| seen.scout(event, |at| at == TIMER));
    }
}
