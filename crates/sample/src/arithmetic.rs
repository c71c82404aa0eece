// SPDX-License-Identifier: GPL-2.0-or-later
//! Arithmetic of units. A unit adds to itself alone, and a bare number multiplies or divides it. Operators overflow as
//! those of `u64` do: they panic in a debug build and wrap in a release build.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Shl, Sub, SubAssign};

use crate::{Bytes, Count, Insns, Nanos};

macro_rules! arithmetic {
    ($($unit:ident),*) => {$(
        impl $unit {
            /// Nothing.
            pub const ZERO: $unit = $unit(0);

            /// The greatest value.
            pub const MAX: $unit = $unit(u64::MAX);

            /// Sum, or `None` beyond 2⁶⁴−1.
            #[inline]
            pub const fn checked_add(self, other: $unit) -> Option<$unit> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some($unit(sum)),
                    None => None,
                }
            }

            /// Difference, or `None` below 0.
            #[inline]
            pub const fn checked_sub(self, other: $unit) -> Option<$unit> {
                match self.0.checked_sub(other.0) {
                    Some(difference) => Some($unit(difference)),
                    None => None,
                }
            }

            /// Product, or `None` beyond 2⁶⁴−1.
            #[inline]
            pub const fn checked_mul(self, times: u64) -> Option<$unit> {
                match self.0.checked_mul(times) {
                    Some(product) => Some($unit(product)),
                    None => None,
                }
            }

            /// Sum, and 2⁶⁴−1 where it would be beyond.
            #[inline]
            pub const fn saturating_add(self, other: $unit) -> $unit {
                $unit(self.0.saturating_add(other.0))
            }

            /// Difference, and 0 where it would be below.
            #[inline]
            pub const fn saturating_sub(self, other: $unit) -> $unit {
                $unit(self.0.saturating_sub(other.0))
            }

            /// Product, and 2⁶⁴−1 where it would be beyond.
            #[inline]
            pub const fn saturating_mul(self, times: u64) -> $unit {
                $unit(self.0.saturating_mul(times))
            }

            /// Difference modulo 2⁶⁴.
            #[inline]
            pub const fn wrapping_sub(self, other: $unit) -> $unit {
                $unit(self.0.wrapping_sub(other.0))
            }

            /// How far apart the two are, whichever is greater.
            #[inline]
            pub const fn abs_diff(self, other: $unit) -> $unit {
                $unit(self.0.abs_diff(other.0))
            }

            /// What part of `whole` this is: 0.5 is the half. A whole of 0 counts as 1.
            pub fn share_of(self, whole: $unit) -> f64 {
                self.0 as f64 / whole.0.max(1) as f64
            }

            /// How many hundredths of `whole` this is: 50 is the half. A whole of 0 counts as 1.
            pub fn percent_of(self, whole: $unit) -> f64 {
                100.0 * self.0 as f64 / whole.0.max(1) as f64
            }
        }

        impl Add for $unit {
            type Output = $unit;
            #[inline]
            fn add(self, other: $unit) -> $unit {
                $unit(self.0 + other.0)
            }
        }

        impl AddAssign for $unit {
            #[inline]
            fn add_assign(&mut self, other: $unit) {
                self.0 += other.0;
            }
        }

        impl Sub for $unit {
            type Output = $unit;
            #[inline]
            fn sub(self, other: $unit) -> $unit {
                $unit(self.0 - other.0)
            }
        }

        impl SubAssign for $unit {
            #[inline]
            fn sub_assign(&mut self, other: $unit) {
                self.0 -= other.0;
            }
        }

        impl Mul<u64> for $unit {
            type Output = $unit;
            #[inline]
            fn mul(self, times: u64) -> $unit {
                $unit(self.0 * times)
            }
        }

        impl Div<u64> for $unit {
            type Output = $unit;
            #[inline]
            fn div(self, parts: u64) -> $unit {
                $unit(self.0 / parts)
            }
        }

        /// How many times `other` fits in.
        impl Div for $unit {
            type Output = u64;
            #[inline]
            fn div(self, other: $unit) -> u64 {
                self.0 / other.0
            }
        }

        /// What is left where `other` fits in no more.
        impl Rem for $unit {
            type Output = $unit;
            #[inline]
            fn rem(self, other: $unit) -> $unit {
                $unit(self.0 % other.0)
            }
        }

        /// Doubled so often.
        impl<Times> Shl<Times> for $unit
        where
            u64: Shl<Times, Output = u64>,
        {
            type Output = $unit;
            #[inline]
            fn shl(self, times: Times) -> $unit {
                $unit(self.0 << times)
            }
        }

        impl Sum for $unit {
            #[inline]
            fn sum<I: Iterator<Item = $unit>>(all: I) -> $unit {
                $unit(all.map(|one| one.0).sum())
            }
        }
    )*};
}
arithmetic!(Nanos, Insns, Bytes, Count);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    macro_rules! as_numbers {
        ($($name:ident: $unit:ident),*) => {$(
            proptest! {
                #[test]
                fn $name(a: u64, b: u64, few in 1u64..1_000) {
                    let (x, y) = ($unit(a), $unit(b));
                    prop_assert_eq!(x.checked_add(y).map(|u| u.0), a.checked_add(b));
                    prop_assert_eq!(x.checked_sub(y).map(|u| u.0), a.checked_sub(b));
                    prop_assert_eq!(x.checked_mul(b).map(|u| u.0), a.checked_mul(b));
                    prop_assert_eq!(x.saturating_add(y).0, a.saturating_add(b));
                    prop_assert_eq!(x.saturating_sub(y).0, a.saturating_sub(b));
                    prop_assert_eq!(x.saturating_mul(few).0, a.saturating_mul(few));
                    prop_assert_eq!(x.wrapping_sub(y).0, a.wrapping_sub(b));
                    prop_assert_eq!(x.abs_diff(y).0, a.abs_diff(b));
                    prop_assert_eq!((x / few).0, a / few);
                    prop_assert_eq!((x / $unit(few), (x % $unit(few)).0), (a / few, a % few));
                    let (x, y) = ($unit(a / 2), $unit(b / 2));
                    prop_assert_eq!((x + y).0, a / 2 + b / 2);
                    prop_assert_eq!((x + y) - y, x);
                    prop_assert_eq!([x, y].into_iter().sum::<$unit>(), x + y);
                    let mut sum = x;
                    sum += y;
                    prop_assert_eq!(sum, x + y);
                    sum -= x;
                    prop_assert_eq!(sum, y);
                    prop_assert_eq!($unit(a / 1_000) * few, $unit(a / 1_000 * few));
                }
            }
        )*};
    }
    as_numbers!(nanoseconds_reckon_as_their_numbers: Nanos, instructions_reckon_as_their_numbers: Insns);

    #[test]
    fn a_share_of_nothing_is_told_and_not_divided_by_zero() {
        assert_eq!((Nanos(1).share_of(Nanos(4)), Nanos(1).percent_of(Nanos(4))), (0.25, 25.0));
        assert_eq!((Insns(0).share_of(Insns(0)), Insns(3).percent_of(Insns(0))), (0.0, 300.0));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "subtract with overflow")]
    fn a_difference_below_nothing_panics_in_a_debug_build() {
        let _ = Nanos(1) - Nanos(2);
    }
}
