// SPDX-License-Identifier: GPL-2.0-or-later
//! What a generator can be set to, and within which limits. What is outside is refused with the limits, and nothing is
//! rounded to fit.

use super::{BATCH_MAX, Kind, Refused, Ticks, Timing, Why};
use sample::ResponderSet;

/// What can be set. The discriminant is its number on the wire; every value is 64 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Setting {
    /// From one trigger to the next, before jitter, in ticks: the frequency.
    Period = 1,
    /// How long the line stays high, in ticks; above 0. The duty cycle is this of a period.
    High = 2,
    /// Measurements a batch; 1 … [`BATCH_MAX`].
    Batch = 3,
    /// Triggers a run; above 0. 2⁶⁴−1: until the host stops it.
    Count = 4,
    /// The largest displacement of a trigger, in ticks.
    Jitter = 5,
    /// Seed of the displacements.
    Seed = 6,
    /// From the start to the first trigger, before its jitter, in ticks.
    Phase = 7,
    /// Whose answers are measured, a bit each; the most is all that the generator has.
    Responders = 8,
    /// How long the generator waits for answers after the last trigger, in ticks.
    Grace = 9,
    /// How old the first measurement of a batch that is not full may become, in ticks.
    Age = 10,
}

impl Setting {
    /// How many there are.
    pub const COUNT: usize = 10;

    /// All, in the order of their numbers, which begin with 1.
    pub const ALL: [Setting; Setting::COUNT] = [
        Setting::Period,
        Setting::High,
        Setting::Batch,
        Setting::Count,
        Setting::Jitter,
        Setting::Seed,
        Setting::Phase,
        Setting::Responders,
        Setting::Grace,
        Setting::Age,
    ];

    /// The one of this number.
    pub fn of(number: u8) -> Option<Setting> {
        Setting::ALL.into_iter().find(|setting| *setting as u8 == number)
    }

    /// Its word in messages and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Setting::Period => "period",
            Setting::High => "high",
            Setting::Batch => "batch",
            Setting::Count => "count",
            Setting::Jitter => "jitter",
            Setting::Seed => "seed",
            Setting::Phase => "phase",
            Setting::Responders => "responders",
            Setting::Grace => "grace",
            Setting::Age => "age",
        }
    }

    const fn index(self) -> usize {
        self as usize - 1
    }
}

/// A value of each setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings(pub(super) [u64; Setting::COUNT]);

impl Settings {
    /// These, in the order of [`Setting::ALL`].
    pub const fn new(values: [u64; Setting::COUNT]) -> Settings {
        Settings(values)
    }

    /// The value of one.
    pub const fn get(&self, setting: Setting) -> u64 {
        self.0[setting.index()]
    }

    /// Whose answers are measured.
    pub const fn responders(&self) -> ResponderSet {
        ResponderSet::ALL.at(self.get(Setting::Responders) as u16)
    }

    /// Gives one another value. [`Limits::check`] says whether it may have that.
    pub fn set(&mut self, setting: Setting, value: u64) {
        self.0[setting.index()] = value;
    }
}

/// Which values a setting may have: `least`, and every `step` from there on up to `most`. Of
/// [`Setting::Responders`]: any bits of `most`, and at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least value.
    pub least: u64,
    /// The greatest, or a bound to it.
    pub most: u64,
    /// From one to the next; above 0.
    pub step: u64,
}

impl Range {
    /// Every number from `least` to `most`.
    pub const fn new(least: u64, most: u64) -> Range {
        Range { least, most, step: 1 }
    }

    /// Why the value is none of these.
    fn wrong(self, value: u64) -> Option<Why> {
        if value < self.least || value > self.most {
            return Some(Why::OutsideLimits);
        }
        (!(value - self.least).is_multiple_of(self.step)).then_some(Why::NotAStep)
    }
}

/// What a generator holds of a train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How many times.
    pub count: u32,
    /// The last of them.
    pub last: Option<Ticks>,
    /// The shortest from one to the next.
    pub shortest_gap: Option<Ticks>,
}

/// All limits of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of each setting, in the order of [`Setting::ALL`].
    pub ranges: [Range; Setting::COUNT],
    /// The most times that a train may have; 0 for a generator that takes none.
    pub train: u32,
    /// The shortest time from one trigger to the next, whatever the schedule; above 0.
    pub gap: Ticks,
}

/// What the protocol itself allows, whatever a generator can do.
fn allowed(setting: Setting) -> Range {
    match setting {
        Setting::Batch => Range::new(1, BATCH_MAX as u64),
        Setting::Period | Setting::High | Setting::Count => Range::new(1, u64::MAX),
        Setting::Responders => Range::new(1, u16::MAX.into()),
        _ => Range::new(0, u64::MAX),
    }
}

impl Limits {
    /// Those of a setting.
    pub const fn range(&self, setting: Setting) -> Range {
        self.ranges[setting.index()]
    }

    /// Whether the protocol allows a generator to announce these. A host speaks to no other.
    pub fn is_sound(&self) -> bool {
        self.gap.0 > 0
            && Setting::ALL.into_iter().all(|setting| {
                let (range, allowed) = (self.range(setting), allowed(setting));
                allowed.least <= range.least
                    && range.least <= range.most
                    && range.most <= allowed.most
                    && range.step > 0
            })
    }

    /// Whether a setting may have this value.
    ///
    /// # Errors
    /// The refusal that is to be sent.
    pub fn check(&self, setting: Setting, value: u64) -> Result<(), Refused> {
        let range = self.range(setting);
        let wrong = match setting {
            Setting::Responders if value == 0 || value & !range.most != 0 => {
                Some(Why::OutsideLimits)
            }
            Setting::Responders => None,
            _ => range.wrong(value),
        };
        wrong.map_or(Ok(()), |why| Err(Refused::of_setting(why, Kind::SET, setting, value, range)))
    }

    /// Whether a run may start like this: the settings agree with each other, too. [`Limits::check`] has passed each.
    ///
    /// # Errors
    /// The refusal that is to be sent; its limits are those that the other settings leave.
    pub fn check_start(
        &self,
        settings: &Settings,
        timing: Timing,
        held: Held,
    ) -> Result<(), Refused> {
        let get = |setting| settings.get(setting);
        let outside = |setting, range| {
            let value = get(setting);
            Err(Refused::of_setting(Why::OutsideLimits, Kind::START, setting, value, range))
        };
        let within = |most| Range { most, ..self.range(Setting::High) };
        let (high, period, jitter) =
            (get(Setting::High), get(Setting::Period), get(Setting::Jitter));
        let shortest = match timing {
            Timing::Train if held.count == 0 => {
                return Err(Refused::of_train(Why::NoTrain, Kind::START, 0, self.train));
            }
            Timing::Train => held.shortest_gap.map_or(u64::MAX, |gap| gap.0),
            Timing::Periodic if get(Setting::Count) == 1 => u64::MAX,
            Timing::Periodic => {
                if period < self.gap.0 {
                    let range = self.range(Setting::Period);
                    return outside(Setting::Period, Range { least: self.gap.0, ..range });
                }
                if jitter > period - self.gap.0 {
                    return outside(Setting::Jitter, Range::new(0, period - self.gap.0));
                }
                period - jitter
            }
        };
        if high >= shortest {
            return outside(Setting::High, within(shortest - 1));
        }
        Ok(())
    }

    /// Whether these times may follow those that are held: `first` is the place of the first of them in the train, and
    /// one at place 0 begins a new train. What is held then.
    ///
    /// # Errors
    /// The refusal that is to be sent; nothing has changed.
    pub fn check_train(
        &self,
        held: Held,
        first: u32,
        times: impl Iterator<Item = Ticks>,
    ) -> Result<Held, Refused> {
        let mut held = if first == 0 { Held::default() } else { held };
        if first != held.count {
            let (value, next) = (first.into(), held.count);
            return Err(Refused::of_train(Why::Place, Kind::TRAIN, value, next));
        }
        for time in times {
            if held.count >= self.train {
                let value = u64::from(held.count) + 1;
                return Err(Refused::of_train(Why::OutsideLimits, Kind::TRAIN, value, self.train));
            }
            if let Some(last) = held.last {
                let gap = time.0.checked_sub(last.0).filter(|gap| *gap >= self.gap.0);
                let Some(gap) = gap else { return Err(self.too_early(last, time)) };
                let shortest = held.shortest_gap.map_or(gap, |shortest| shortest.0.min(gap));
                held.shortest_gap = Some(Ticks(shortest));
            }
            (held.count, held.last) = (held.count + 1, Some(time));
        }
        Ok(held)
    }

    fn too_early(&self, last: Ticks, time: Ticks) -> Refused {
        let least = last.0.saturating_add(self.gap.0);
        let range = Range::new(least, u64::MAX);
        Refused { why: Why::Order, command: Kind::TRAIN, setting: None, value: time.0, range }
    }
}

#[cfg(test)]
#[path = "tests/limits.rs"]
mod tests;
