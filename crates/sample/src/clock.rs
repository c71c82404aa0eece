// SPDX-License-Identifier: GPL-2.0-or-later
//! Clock domains. A stamp carries its clock in the type, so that only stamps of one clock subtract.

use crate::Nanos;
use core::marker::PhantomData;

/// Which clock a file or a series was measured with. Numbers of different clocks never share an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
}

impl Clock {
    /// The word used in files, JSON and pages.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Virtual => "virtual",
            Clock::Monotonic => "monotonic",
            Clock::Tsc => "tsc",
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
}
