// SPDX-License-Identifier: GPL-2.0-or-later
//! What cyclictest prints, loop by loop.

use super::Cyclictest;
use crate::Output;
use crate::plan::SleepMethod;
use sample::{Loss, Monotonic, Nanos, Stamp};

/// Turns the lines of cyclictest into samples and losses.
pub(super) struct Loops {
    series: u16,
    /// The instant from which samples count.
    origin: Stamp<Monotonic>,
    /// The instant at which cyclictest was started. Its first loop began later.
    begun: Stamp<Monotonic>,
    period: Nanos,
    method: SleepMethod,
    /// How many loops it is to make.
    count: u64,
    /// The number that the next line should have.
    next: u64,
    /// How many periods have passed without a loop.
    passed: u64,
    /// The greatest latency of a line, and the one that cyclictest says at its end.
    longest_ns: i64,
    said_ns: Option<i64>,
}

impl Loops {
    /// Those of a cyclictest that starts now.
    pub(super) fn of(
        series: u16,
        probe: &Cyclictest,
        method: SleepMethod,
        origin: Stamp<Monotonic>,
    ) -> Loops {
        Loops {
            series,
            origin,
            begun: rt::now(),
            period: probe.period,
            method,
            count: probe.count,
            next: 0,
            passed: 0,
            longest_ns: i64::MIN,
            said_ns: None,
        }
    }

    /// Takes the end of the output, which nobody asked for before it came: loops that are not there were not made, and
    /// a latency that no line had is lost with others.
    pub(super) fn end(&mut self, output: &mut Output) {
        let lacking = self.count.saturating_sub(self.next);
        if lacking > 0 {
            output.loss(self.series, Loss::Unanswered, lacking);
        }
        if self.said_ns.is_some_and(|said| said > self.longest_ns) {
            output.loss(self.series, Loss::Dropped, 1);
        }
    }

    /// Takes a line. A line that is no loop, such as the heading or the summary, is ignored.
    pub(super) fn take(&mut self, line: &str, output: &mut Output) {
        if let Some(said) = maximum_of(line) {
            self.said_ns = Some(said);
        }
        let Some((number, latency_ns)) = loop_of(line) else { return };
        self.longest_ns = self.longest_ns.max(latency_ns);
        // This was seen once, on a very busy machine: cyclictest printed one loop over and over, with 0 as its latency.
        let Some(missing) = number.checked_sub(self.next) else {
            output.loss(self.series, Loss::Spurious, 1);
            return;
        };
        if missing > 0 {
            output.loss(self.series, Loss::Dropped, missing);
        }
        self.next = number.saturating_add(1);
        let number = number.saturating_add(self.passed);
        let begun = self.begun.since(self.origin);
        let at =
            begun.zip(number.checked_add(1).and_then(|n| n.checked_mul(self.period.0)).map(Nanos));
        match (at.and_then(|(begun, after)| begun.checked_add(after)), u64::try_from(latency_ns)) {
            (Some(at), Ok(latency)) => {
                output.sample(self.series, number, at, Nanos(latency));
                let passed = passed(self.method, Nanos(latency), self.period);
                self.passed = self.passed.saturating_add(passed);
                if passed > 0 {
                    output.loss(self.series, Loss::Superseded, passed);
                }
            }
            _ => output.loss(self.series, Loss::Tainted, 1),
        }
    }
}

/// How many periods cyclictest leaves out after a loop that was so late.
pub fn passed(method: SleepMethod, latency: Nanos, period: Nanos) -> u64 {
    // A relative sleep begins after the loop: what it would have passed comes later.
    if method == SleepMethod::Nanosleep { 0 } else { latency.0 / period.0.max(1) }
}

/// The number and the latency in ns of `       0:       4:   48334` (thread, loop, latency).
fn loop_of(line: &str) -> Option<(u64, i64)> {
    let mut fields = line.split(':').map(str::trim);
    let (thread, number, latency) = (fields.next()?, fields.next()?, fields.next()?);
    if thread != "0" || fields.next().is_some() {
        return None;
    }
    Some((number.parse().ok()?, latency.parse().ok()?))
}

/// The value of `      "max": 87266,`, which is in ns with `--nsecs` (rt-tests 2.4, `write_stats`).
fn maximum_of(line: &str) -> Option<i64> {
    line.trim().strip_prefix("\"max\":")?.trim().trim_end_matches(',').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::readings_of;

    #[test]
    fn lines_of_loops_are_told_from_headings_and_summary() {
        assert_eq!(loop_of("       0:       4:   48334\n"), Some((4, 48334)));
        assert_eq!(loop_of("       0:       0:      -7\n"), Some((0, -7)));
        for line in [
            "Using 1 cpus.",
            "Thread 0 Interval: 1500",
            "# /dev/cpu_dma_latency set to 0us",
            "  \"num_threads\": 1,",
            "    \"0\": {",
            "      \"max\": 87266,",
            "T: 0 (18508) P:80 I:1000 C:      5 Min:  39648 Act:   48334 Avg:   51241 Max:   62446",
            "       1:       4:   48334",
            "",
        ] {
            assert_eq!(loop_of(line), None, "{line}");
        }
        assert_eq!(maximum_of("      \"max\": 87266,\n"), Some(87266));
        assert_eq!(maximum_of("      \"min\": 65285,"), None);
    }

    #[test]
    fn periods_that_passed_have_numbers_as_those_of_the_loops() {
        let probe = Cyclictest {
            methods: vec![SleepMethod::ClockNanosleep],
            period: Nanos::from_millis(1),
            count: 3,
        };
        let readings = readings_of(|output| {
            let mut loops = Loops::of(0, &probe, SleepMethod::ClockNanosleep, rt::now());
            for line in ["0: 0: 50", "0: 1: 3200000", "0: 2: 60"] {
                loops.take(line, output);
            }
            loops.end(output);
        });
        let numbers: Vec<u64> = readings
            .iter()
            .filter_map(|reading| match reading {
                wire::Reading::Sample { number, .. } => Some(*number),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [0, 1, 5]);
        let lost = |reading: &wire::Reading| {
            matches!(reading, wire::Reading::Loss { loss: Loss::Superseded, count: 3, .. })
        };
        assert_eq!(readings.iter().filter(|reading| lost(reading)).count(), 1, "{readings:?}");
        assert_eq!(passed(SleepMethod::Nanosleep, Nanos(5), Nanos(2)), 0);
    }
}
