// SPDX-License-Identifier: GPL-2.0-or-later
//! How fast a generator's clock goes beside this machine's.
//!
//! A batch says when the generator closed it, by the generator's clock. The host notes when the batch came, by its own
//! (CLOCK_MONOTONIC). The way of a batch takes some time, of which only the least is steady. So the quickest batch of
//! each stretch of time is kept, and all others are forgotten. NTP's clock filter does the same (RFC 5905, section
//! 10), and V. Paxson with times that go one way only (On calibrating measurements of packet transit times, SIGMETRICS
//! 1998). The rate is the median of the slopes between all pairs of these batches. Its interval is that of P. K. Sen
//! (Estimates of the regression coefficient based on Kendall's tau, JASA 63, 1968), which supposes nothing of how late
//! batches are, but that they are as late at the end as at the beginning: a way that becomes slower all the time looks
//! like drift.

use sample::Nanos;
use serde::Serialize;
use std::fmt;

/// The most stretches. Where there are more, two become one.
const STRETCHES_MAX: usize = 64;
/// The fewest that an estimate is made of: with fewer, the interval has no ends.
const STRETCHES_LEAST: usize = 10;
/// The length of the first stretches, as a power of two: about a millisecond.
const SHIFT_FIRST: u32 = 20;
/// How many standard deviations of Kendall's tau the interval has at either side: it misses one rate in a thousand.
const SIGMAS: f64 = 3.29;
/// Parts of 10⁹.
const PPB: f64 = 1e9;

/// From here on a rate is a doubt: neither a crystal of a board (30 ppm) nor that of a computer (50 ppm) is so far off,
/// and both together are not.
pub const DOUBTFUL_PPB: u64 = 100_000;

/// How a generator's clock goes beside this machine's, as far as a run tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// By how much the generator's clock gains on this machine's, in parts of 10⁹; below 0 where it loses. Each latency
    /// is too long by this share, if this machine's clock is right.
    pub gain_ppb: i64,
    /// The true rate is at most so far from that.
    pub uncertainty_ppb: u64,
    /// When the run started, by CLOCK_MONOTONIC of this machine: at the latest, since the quickest batch took time.
    #[serde(rename = "started_ns")]
    pub started: Nanos,
    /// Over which time.
    #[serde(rename = "span_ns")]
    pub span: Nanos,
    /// How many batches were looked at.
    pub batches: u64,
}

impl Drift {
    /// Whether one of the clocks goes otherwise than crystals do, for sure.
    pub fn is_doubtful(&self) -> bool {
        self.gain_ppb.unsigned_abs().saturating_sub(self.uncertainty_ppb) > DOUBTFUL_PPB
    }
}

/// As in `+40.1 ± 2.3 ppm`, or `+0.004 ± 0.012 ppm` where so much is known.
impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.uncertainty_ppb < 100 { 3 } else { 1 };
        let [gain, off] = [self.gain_ppb as f64, self.uncertainty_ppb as f64].map(|ppb| ppb / 1e3);
        write!(f, "{gain:+.digits$} ± {off:.digits$} ppm")
    }
}

/// When a batch was closed, and when it came.
#[derive(Clone, Copy)]
struct Moment {
    /// By the generator's clock, since the start of the run.
    theirs: f64,
    /// How much more this machine's clock said, since the first batch.
    lag: f64,
}

impl Moment {
    /// Its lag without what the rate makes of it.
    fn late(&self, slope: f64) -> f64 {
        self.lag - slope * self.theirs
    }
}

/// The quickest batches of a run.
pub(super) struct Moments {
    /// A stretch is 2^shift ns long, by the generator's clock.
    shift: u32,
    stretches: [Option<Moment>; STRETCHES_MAX],
    /// Of the first batch: the generator's time and ours.
    first: Option<(Nanos, Nanos)>,
    /// The latest time of the generator.
    last: Nanos,
    batches: u64,
    /// What is known of the rate, to tell which of two batches was quicker.
    slope: f64,
}

impl Moments {
    pub(super) fn new() -> Moments {
        let (shift, stretches) = (SHIFT_FIRST, [None; STRETCHES_MAX]);
        Moments { shift, stretches, first: None, last: Nanos(0), batches: 0, slope: 0.0 }
    }

    /// Takes a batch that was closed at `theirs` and came at `ours`.
    pub(super) fn take(&mut self, theirs: Nanos, ours: Nanos) {
        let first = *self.first.get_or_insert((theirs, ours));
        // Times below 2⁵³ ns, which is 104 days, are exact.
        let [theirs_on, ours_on] =
            [(theirs, first.0), (ours, first.1)].map(|(t, f)| (t - f).0 as f64);
        self.batches += 1;
        self.last = theirs;
        let index = |shift| (theirs - first.0).0 >> shift;
        while index(self.shift) >= STRETCHES_MAX as u64 {
            self.double();
        }
        let place = &mut self.stretches[index(self.shift) as usize];
        let moment = Moment { theirs: theirs_on, lag: ours_on - theirs_on };
        *place = quicker(*place, Some(moment), self.slope);
    }

    /// Makes one stretch of two.
    fn double(&mut self) {
        if let Some((slope, _)) = self.slope_and_uncertainty() {
            self.slope = slope;
        }
        for n in 0..STRETCHES_MAX {
            let of = |n: usize| self.stretches.get(n).copied().flatten();
            self.stretches[n] = quicker(of(2 * n), of(2 * n + 1), self.slope);
        }
        self.shift += 1;
    }

    fn kept(&self) -> Vec<Moment> {
        self.stretches.iter().copied().flatten().collect()
    }

    /// The slope of the lag over the generator's time, and how far the true one is from it at most.
    fn slope_and_uncertainty(&self) -> Option<(f64, f64)> {
        let kept = self.kept();
        if kept.len() < STRETCHES_LEAST {
            return None;
        }
        let pairs =
            kept.iter().enumerate().flat_map(|(n, a)| kept[n + 1..].iter().map(move |b| (a, b)));
        let mut slopes: Vec<f64> =
            pairs.map(|(a, b)| (b.lag - a.lag) / (b.theirs - a.theirs)).collect();
        slopes.sort_by(f64::total_cmp);
        let (n, count) = (kept.len() as f64, slopes.len());
        let width = SIGMAS * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let below = ((count as f64 - width) / 2.0).floor().max(0.0) as usize;
        let (low, high) = (slopes[below], slopes[count - 1 - below]);
        let median = (slopes[(count - 1) / 2] + slopes[count / 2]) / 2.0;
        Some((median, (median - low).max(high - median)))
    }

    /// What they tell; nothing, as long as there are too few.
    pub(super) fn drift(&self) -> Option<Drift> {
        let (first, (slope, uncertainty)) = (self.first?, self.slope_and_uncertainty()?);
        // `slope` is by how much our clock gains on theirs.
        let gain = 1.0 / (1.0 + slope) - 1.0;
        let least = self.kept().iter().map(|m| m.late(slope)).fold(f64::INFINITY, f64::min);
        let before_first = first.0.0 as f64 * (1.0 + slope) - least;
        Some(Drift {
            gain_ppb: (gain * PPB).round() as i64,
            // Rounded up, and never none: times are whole nanoseconds.
            uncertainty_ppb: (uncertainty * PPB).ceil() as u64 + 1,
            started: first.1.saturating_sub(Nanos(before_first.max(0.0) as u64)),
            span: self.last - first.0,
            batches: self.batches,
        })
    }
}

/// The batch that took less time to come.
fn quicker(a: Option<Moment>, b: Option<Moment>, slope: f64) -> Option<Moment> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.late(slope) < a.late(slope) { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, of a seed.
    struct Dice(u64);

    impl Dice {
        /// Evenly from 0 to below 1.
        fn draw(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    const STARTED: f64 = 5e12;

    /// Batches of a clock with this gain, one every `every` ns of it, each on its way for as long as `way` draws.
    fn batches(gain: f64, every: f64, count: u32, mut way: impl FnMut(u32) -> f64) -> Moments {
        let mut moments = Moments::new();
        let mut before = 0.0;
        for n in 1..=count {
            let theirs = every * f64::from(n);
            // A line keeps the order.
            let ours = (STARTED + theirs / (1.0 + gain) + way(n)).max(before);
            before = ours;
            moments.take(Nanos(theirs as u64), Nanos(ours as u64));
        }
        moments
    }

    #[test]
    fn the_true_rate_is_within_the_stated_interval_however_late_batches_are() {
        let mut missed = 0;
        let mut tried = 0;
        for seed in 0..60 {
            for gain in [40e-6, -25e-6, 0.0, 400e-6] {
                for kind in 0..3 {
                    let mut dice = Dice(seed * 3 + kind);
                    let way = move |_| {
                        let even = dice.draw();
                        match kind {
                            // Up to the millisecond of a USB frame; as a queue of others makes it; seldom at all quick.
                            0 => 60e3 + 1e6 * even,
                            1 => 60e3 - 300e3 * (1.0 - even).ln(),
                            _ => 60e3 + if even < 0.1 { 5e3 * even } else { 20e6 * even },
                        }
                    };
                    let drift = batches(gain, 50e6, 400, way).drift().expect("many batches");
                    let off = (drift.gain_ppb as f64 - gain * PPB).abs();
                    tried += 1;
                    missed += u32::from(off > drift.uncertainty_ppb as f64);
                    assert_eq!(drift.batches, 400);
                }
            }
        }
        // One in a thousand, by definition of the interval.
        assert!(missed <= 3, "{missed} of {tried}");
    }

    #[test]
    fn a_longer_run_tells_the_rate_more_closely_and_memory_does_not_grow() {
        let known = |count| {
            let mut dice = Dice(7);
            let moments = batches(40e-6, 50e6, count, move |_| 60e3 + 1e6 * dice.draw());
            moments.drift().expect("many batches")
        };
        let [minute, hour] = [1_200, 72_000].map(known);
        assert!(minute.uncertainty_ppb > 10 * hour.uncertainty_ppb, "{minute:?} {hour:?}");
        assert!(hour.uncertainty_ppb < 200, "{hour:?}");
        assert!(hour.gain_ppb.abs_diff(40_000) <= hour.uncertainty_ppb, "{hour:?}");
        assert_eq!(hour.span, Nanos(50_000_000 * 71_999));
        // The start is known from above: 60 µs are the least that a batch takes.
        let late = hour.started.0 as f64 - STARTED;
        assert!((0.0..2e6).contains(&late), "{late}");
    }

    #[test]
    fn stalls_of_the_host_do_not_move_the_rate() {
        let mut dice = Dice(3);
        // Twice the host takes nothing for two seconds, and then all that waited.
        let way = move |n: u32| {
            let waits = |from: u32| {
                if (from..from + 40).contains(&n) { f64::from(from + 40 - n) * 50e6 } else { 0.0 }
            };
            60e3 + 200e3 * dice.draw() + waits(500) + waits(900)
        };
        let drift = batches(40e-6, 50e6, 1_200, way).drift().expect("many batches");
        assert!(drift.gain_ppb.abs_diff(40_000) <= drift.uncertainty_ppb, "{drift:?}");
        assert!(drift.uncertainty_ppb < 20_000, "{drift:?}");
    }

    #[test]
    fn too_little_says_nothing_and_only_what_is_sure_is_doubtful() {
        assert_eq!(Moments::new().drift(), None);
        assert_eq!(batches(40e-6, 50e6, 9, |_| 0.0).drift(), None);
        // Of one time there is no rate, however often it is told.
        let mut moments = Moments::new();
        (0..1_000).for_each(|n| moments.take(Nanos(5), Nanos(n)));
        assert_eq!(moments.drift(), None);
        let exact = batches(150e-6, 50e6, 1_000, |_| 0.0).drift().expect("many batches");
        assert!(exact.is_doubtful(), "{exact:?}");
        assert!(!Drift { uncertainty_ppb: 60_000, ..exact }.is_doubtful());
        assert!(!batches(70e-6, 50e6, 1_000, |_| 0.0).drift().expect("many").is_doubtful());
        let told =
            |gain_ppb, uncertainty_ppb| Drift { gain_ppb, uncertainty_ppb, ..exact }.to_string();
        assert_eq!(told(40_120, 2_340), "+40.1 ± 2.3 ppm");
        assert_eq!(told(-4, 12), "-0.004 ± 0.012 ppm");
    }
}
