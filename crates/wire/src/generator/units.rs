// SPDX-License-Identifier: GPL-2.0-or-later
//! Times as a generator counts them, and what they are in nanoseconds. Nothing here is rounded without being told.

use core::num::NonZeroU32;
use sample::Nanos;

/// A length of time in ticks of the generator's clock; 0 … 2⁶⁴−1. An instant is the time since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// How long a tick is: `nanos`/`per` nanoseconds, exactly. A counter of 125 MHz has 8/1, one of 133 MHz 1000/133.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// So many nanoseconds …
    pub nanos: NonZeroU32,
    /// … are so many ticks.
    pub per: NonZeroU32,
}

/// A time that is no whole number of ticks. It lies between these two; a time too long for [`Ticks`] has no `above`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inexact {
    /// The longest shorter time, where there is one.
    pub below: Option<Ticks>,
    /// The shortest longer one.
    pub above: Option<Ticks>,
}

const NANOS_A_SECOND: u128 = 1_000_000_000;

impl Tick {
    /// A tick of one nanosecond, as virtual time has.
    pub const NANOSECOND: Tick = Tick { nanos: NonZeroU32::MIN, per: NonZeroU32::MIN };

    /// How many ticks this is.
    ///
    /// # Errors
    /// The two times nearest to one that is no whole number of ticks.
    pub fn ticks(self, time: Nanos) -> Result<Ticks, Inexact> {
        self.exactly(u128::from(time.0) * u128::from(self.per.get()), self.nanos.get().into())
    }

    /// The period of a frequency of `hertz`/`per` Hz. One of 1/10 Hz is ten seconds.
    ///
    /// # Errors
    /// The two periods nearest to one that is no whole number of ticks.
    pub fn period(self, hertz: NonZeroU32, per: NonZeroU32) -> Result<Ticks, Inexact> {
        let over = u128::from(self.nanos.get()) * u128::from(hertz.get());
        self.exactly(NANOS_A_SECOND * u128::from(per.get()) * u128::from(self.per.get()), over)
    }

    fn exactly(self, ticks: u128, over: u128) -> Result<Ticks, Inexact> {
        let whole = |n: u128| u64::try_from(n).ok().map(Ticks);
        match whole(ticks / over) {
            Some(exact) if ticks.is_multiple_of(over) => Ok(exact),
            below => Err(Inexact { below, above: whole(ticks / over + 1) }),
        }
    }

    /// The whole nanoseconds of `ticks`, and whether nothing is missing: otherwise less than one is. `None` beyond
    /// 2⁶⁴−1 ns.
    pub fn nanos(self, ticks: Ticks) -> Option<(Nanos, bool)> {
        let (all, per) = (u128::from(ticks.0) * u128::from(self.nanos.get()), self.per.get());
        let whole = u64::try_from(all / u128::from(per)).ok()?;
        Some((Nanos(whole), all.is_multiple_of(per.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(nanos: u32, per: u32) -> Tick {
        let whole = |n| NonZeroU32::new(n).expect("above 0");
        Tick { nanos: whole(nanos), per: whole(per) }
    }

    fn hertz(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).expect("above 0")
    }

    #[test]
    fn a_frequency_that_is_a_whole_number_of_ticks_is_that_period() {
        assert_eq!(tick(8, 1).period(hertz(1_000), hertz(1)), Ok(Ticks(125_000)));
        assert_eq!(tick(1_000, 133).period(hertz(16), hertz(1)), Ok(Ticks(8_312_500)));
        assert_eq!(Tick::NANOSECOND.period(hertz(1), hertz(10)), Ok(Ticks(10_000_000_000)));
    }

    #[test]
    fn one_that_is_not_is_told_with_the_periods_around_it() {
        let between = |below, above| Err(Inexact { below: Some(Ticks(below)), above });
        let above = Some(Ticks(41_666_667));
        assert_eq!(tick(8, 1).period(hertz(3), hertz(1)), between(41_666_666, above));
        assert_eq!(tick(8, 1).ticks(Nanos(9)), between(1, Some(Ticks(2))));
        let largest = hertz(u32::MAX);
        let too_long = Inexact { below: None, above: None };
        assert_eq!(tick(1, u32::MAX).period(hertz(1), largest), Err(too_long));
    }

    #[test]
    fn ticks_say_whether_they_are_whole_nanoseconds() {
        assert_eq!(tick(8, 1).nanos(Ticks(3)), Some((Nanos(24), true)));
        assert_eq!(tick(1_000, 133).nanos(Ticks(1)), Some((Nanos(7), false)));
        assert_eq!(tick(8, 1).nanos(Ticks(u64::MAX)), None);
    }
}
