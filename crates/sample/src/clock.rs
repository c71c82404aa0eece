// SPDX-License-Identifier: GPL-2.0-or-later
//! Clock domains. A stamp carries its clock in the type, so that only stamps of one clock subtract.

use crate::Nanos;
use core::marker::PhantomData;
use core::ops::{Add, Sub};

/// Which clock a file or a series was measured with. Numbers of different clocks never share an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Clock {
    /// Virtual time of the rig: instructions × 2^shift ns, plus the time the guest slept. It holds the
    /// length of the kernel's path and nothing of caches, bus or firmware.
    Virtual,
    /// `CLOCK_MONOTONIC` of a real machine.
    Monotonic,
    /// The time-stamp counter of a real machine, converted to ns.
    Tsc,
    /// The counter of a generator of triggers outside the machine, converted to ns.
    Counter,
}

impl Clock {
    /// The word used in files, JSON and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Virtual => "virtual",
            Clock::Monotonic => "monotonic",
            Clock::Tsc => "tsc",
            Clock::Counter => "counter",
        }
    }
}

/// A clock as a type.
pub trait Domain: Copy {
    /// The same clock as a value.
    const CLOCK: Clock;
}

macro_rules! domains {
    ($($name:ident),*) => {$(
        #[doc = concat!("[`Clock::", stringify!($name), "`] as a type.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name;
        impl Domain for $name {
            const CLOCK: Clock = Clock::$name;
        }
    )*};
}
domains!(Virtual, Monotonic, Tsc);

/// A point in time of clock `C`, in nanoseconds since that clock's own zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp<C> {
    ns: u64,
    clock: PhantomData<C>,
}

impl<C: Domain> Stamp<C> {
    /// The point `ns` nanoseconds after the clock's zero.
    pub const fn from_ns(ns: u64) -> Self {
        Stamp { ns, clock: PhantomData }
    }

    /// Nanoseconds since the clock's zero.
    pub const fn ns(self) -> u64 {
        self.ns
    }

    /// Time passed since `earlier`; `None` when `earlier` is later, which callers count as a taint and
    /// never clamp (rule: nothing is clamped).
    pub fn since(self, earlier: Self) -> Option<Nanos> {
        self.ns.checked_sub(earlier.ns).map(Nanos)
    }

    /// The point `time` later, or `None` beyond 2⁶⁴−1 ns.
    #[inline]
    pub fn checked_add(self, time: Nanos) -> Option<Self> {
        self.ns.checked_add(time.0).map(Self::from_ns)
    }

    /// The point `time` earlier, or `None` before the clock's zero.
    #[inline]
    pub fn checked_sub(self, time: Nanos) -> Option<Self> {
        self.ns.checked_sub(time.0).map(Self::from_ns)
    }

    /// The point `time` earlier, and the clock's zero where it would be before.
    #[inline]
    pub fn saturating_sub(self, time: Nanos) -> Self {
        Self::from_ns(self.ns.saturating_sub(time.0))
    }

    /// The point `time` later, and the last one where it would be beyond.
    #[inline]
    pub fn saturating_add(self, time: Nanos) -> Self {
        Self::from_ns(self.ns.saturating_add(time.0))
    }
}

/// The point `time` later. Overflows as `u64` does.
impl<C: Domain> Add<Nanos> for Stamp<C> {
    type Output = Self;
    #[inline]
    fn add(self, time: Nanos) -> Self {
        Self::from_ns(self.ns + time.0)
    }
}

/// The point `time` earlier. Overflows as `u64` does.
impl<C: Domain> Sub<Nanos> for Stamp<C> {
    type Output = Self;
    #[inline]
    fn sub(self, time: Nanos) -> Self {
        Self::from_ns(self.ns - time.0)
    }
}

/// Time passed since `earlier`, for a caller who knows that it is no later. Overflows as `u64` does;
/// [`Stamp::since`] tells.
impl<C: Domain> Sub for Stamp<C> {
    type Output = Nanos;
    #[inline]
    fn sub(self, earlier: Self) -> Nanos {
        Nanos(self.ns - earlier.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_from_the_future_is_not_clamped_to_zero() {
        let (a, b) = (Stamp::<Virtual>::from_ns(5), Stamp::<Virtual>::from_ns(7));
        assert_eq!(b.since(a), Some(Nanos(2)));
        assert_eq!(a.since(b), None);
    }

    #[test]
    fn a_stamp_and_a_time_make_a_stamp_and_two_stamps_a_time() {
        let (a, b) = (Stamp::<Virtual>::from_ns(5), Stamp::<Virtual>::from_ns(7));
        assert_eq!((b - a, a + Nanos(2), b - Nanos(2)), (Nanos(2), b, a));
        assert_eq!((a.checked_add(Nanos(2)), a.checked_add(Nanos::MAX)), (Some(b), None));
        assert_eq!((b.checked_sub(Nanos(2)), a.checked_sub(Nanos(6))), (Some(a), None));
        assert_eq!(
            (a.saturating_add(Nanos::MAX).ns(), a.saturating_sub(Nanos(6)).ns()),
            (u64::MAX, 0)
        );
    }
}
