// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `toggle`: how exactly a program makes a pulse (2007 assessment, §2 and figures 9–26: 50 µs every 1 ms, seen by
//! an oscilloscope).
//!
//! The rising edge of pulse `n` is due at `start + (n + 1) · period`. The falling edge is due a width later, whenever
//! the rising edge came. The latency of an edge is the reading of the clock after the write that makes the edge, minus
//! the instant when it was due. `width` is by how much the time between both readings differs from the width that the
//! plan asks for. This is what the program knows. Only somebody outside sees what the pin does; in the rig, the numbers
//! from outside replace these numbers.

pub(crate) mod line;

use crate::definition::{Definition, Key, Kind, Measure, Sampled, Text, Unsound, events, times};
use crate::plan::{Overrun, Plan, SleepMethod};
use crate::report::{Report, RunError};
use crate::run::{check_count, check_time};
use crate::threads::measuring;
use crate::x86_64::parallel_port::ParallelPort;
use crate::{Output, overhead};
use line::{Gpio, Level, Memory};
use rt::{Clock, PreciseSleep, Release, RuntimeLimit, SystemClock, Usage};
use sample::{Loss, Monotonic, Nanos, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

const RISE: u16 = 0;
const FALL: u16 = 1;
const WIDTH: u16 = 2;
/// A real-time thread that has not blocked for this long will never block again.
const RUNAWAY: Nanos = Nanos::from_millis(1_000);

pub(crate) const DEFINITION: Definition = Definition {
    name: "toggle",
    about: "How exactly a program makes a pulse on a line",
    keys: &[
        Key::period("Time from one pulse to the next."),
        Key {
            name: "width",
            kind: Kind::Time(Nanos::from_micros(1)),
            default: "50us",
            help: "How long each pulse keeps the line high.",
        },
        Key::count("Pulses."),
        Key::word::<SleepMethod>(
            "method",
            "precise",
            "How the task sleeps before an edge, as for periodic.",
        ),
        Key {
            name: "line",
            kind: Kind::Text(Text {
                read: |text| Some(json!(Line::read(text)?)),
                example: "parport:0x378",
                wrong: "no line to toggle",
                help: "write memory, parport:ADDRESS (as parport:0x378) or gpio:CHIP:LINE (as gpio:/dev/gpiochip0:17)",
            }),
            default: "memory",
            help: "The line to toggle: memory, parport:ADDRESS, gpio:CHIP:LINE.",
        },
    ],
    examples: [
        "onset measure toggle --period 1ms --width 50us",
        "onset measure toggle --line parport:0x378 --flavour 6.12-rt",
    ],
};

/// The probe's part of a plan: a series of the rising edges, one of the falling edges, and one of the widths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toggle {
    /// The time from rising edge to rising edge (2007 assessment, §2: 1 ms).
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// How long the line is high in each pulse (2007 assessment, §2: 50 µs).
    #[serde(rename = "width_ns")]
    pub width: Nanos,
    /// The number of pulses.
    pub count: u64,
    /// How the probe sleeps up to an edge.
    pub method: SleepMethod,
    /// The line that the probe toggles.
    pub line: Line,
}

/// The place of the pulses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// A variable. Nobody but the probe sees the pulse.
    Memory,
    /// Data pin 7 of the parallel port at this I/O address.
    ParallelPort(u16),
    /// A line of a GPIO chip: device (`/dev/gpiochip0`) and offset.
    Gpio(String, u32),
}

impl Line {
    /// Reads `memory`, `parport:0x378` or `gpio:/dev/gpiochip0:17`.
    fn read(text: &str) -> Option<Line> {
        match text.split_once(':') {
            None if text == "memory" => Some(Line::Memory),
            Some(("parport", address)) => {
                let digits = address.strip_prefix("0x").unwrap_or(address);
                u16::from_str_radix(digits, 16).ok().map(Line::ParallelPort)
            }
            Some(("gpio", line)) => line.rsplit_once(':').and_then(|(chip, offset)| {
                let offset = offset.parse().ok()?;
                chip.starts_with('/').then(|| Line::Gpio(chip.to_owned(), offset))
            }),
            _ => None,
        }
    }
}

impl Measure for Toggle {
    fn series(&self, _plan: &Plan) -> Vec<String> {
        ["rise", "fall", "width"].map(str::to_owned).into()
    }

    fn sampled(&self, series: &str) -> Sampled {
        match series {
            "width" => {
                Sampled::Other("its samples are differences of two lengths; take rise or fall")
            }
            _ => Sampled::Stretches,
        }
    }

    fn duration(&self) -> Nanos {
        times(self.period, self.count, 1)
    }

    fn events(&self) -> u64 {
        events(self.count, 3)
    }

    fn shortest_gap(&self) -> Option<Nanos> {
        Some(self.width.min(self.period))
    }

    fn unsound(&self) -> Option<Unsound> {
        let Toggle { period, width, .. } = self;
        (width >= period).then(|| Unsound {
            key: "width",
            wrong: format!("a pulse of {width} does not fit into a period of {period}"),
            remedy: "make it shorter than the period".into(),
        })
    }

    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        check_count(self.count)?;
        check_time("period_ns", self.period)?;
        check_time("width_ns", self.width)?;
        let wrong = |part, wrong: String| Err(RunError::Plan { part, wrong });
        if self.width >= self.period {
            return wrong("width_ns", format!("{} is not below the period", self.width));
        }
        if !matches!(self.method, SleepMethod::ClockNanosleep | SleepMethod::Precise) {
            return wrong(
                "method",
                "edges have absolute times: take the method clock_nanosleep or precise".into(),
            );
        }
        // The limit is refused where a stricter one is in force. The stricter one serves as well.
        let _guard = RuntimeLimit::hold(RUNAWAY);
        // The kernel refuses to bind a deadline thread.
        let bound = !matches!(plan.policy, rt::Policy::Deadline { .. });
        let cpus = [bound.then_some(plan.cpus[0])];
        let reports = measuring(plan.policy, &cpus, outputs, |_, output| {
            let mut pulses = Pulses { toggle: self, output, stop };
            match &self.line {
                Line::Memory => pulses.measure(Memory::new()),
                Line::ParallelPort(port) => pulses.measure(ParallelPort::open(*port)?),
                Line::Gpio(chip, offset) => pulses.measure(Gpio::open(chip, *offset)?),
            }
        })?;
        Ok(reports.into_iter().next().unwrap_or_default())
    }
}

struct Pulses<'a> {
    toggle: &'a Toggle,
    output: &'a mut Output,
    stop: &'a AtomicBool,
}

impl Pulses<'_> {
    fn measure(&mut self, mut line: impl Level) -> Result<Report, RunError> {
        // A driver that looked for the port may have left the line high. The first pulse would have no rising edge.
        line.set(false)?;
        let mut report = Report::default();
        report.largest("overhead_ns", overhead::clock_read().0);
        let before = Usage::of_thread();
        let done = match self.toggle.method {
            SleepMethod::Precise => {
                // At most half the time between pulses, so that the task blocks there. Within a short pulse it spins.
                let most = self.between() / 2;
                let mut sleep = PreciseSleep::calibrate(&SystemClock, most);
                self.hold(&mut line, |due| _ = sleep.sleep_until(&SystemClock, due))
            }
            _ => self.hold(&mut line, |due| SystemClock.sleep_until(due)),
        };
        // The line goes low, however the pulses ended.
        line.set(false)?;
        report.add("origin_ns", done?.ns());
        report.add("page_faults", Usage::of_thread().since(&before).page_faults());
        Ok(report)
    }

    /// The time from a falling edge to the next rising edge.
    fn between(&self) -> Nanos {
        self.toggle.period - self.toggle.width
    }

    /// Makes the pulses. Returns the instant from which their times count.
    fn hold(
        &mut self,
        line: &mut impl Level,
        mut sleep: impl FnMut(Stamp<Monotonic>),
    ) -> Result<Stamp<Monotonic>, RunError> {
        let Toggle { period, width, count, .. } = *self.toggle;
        let origin = rt::now();
        let first = origin + period;
        let mut release = Release::new(first, period, Overrun::Skip);
        loop {
            sleep(release.due());
            line.set(true)?;
            let rose = rt::now();
            let rise = release.woke(rose, release.passed(rose));
            self.put(RISE, rise.number, rise.due, origin, rise.latency);
            let due = rise.due + width;
            sleep(due);
            line.set(false)?;
            let fell = rt::now();
            self.put(FALL, rise.number, due, origin, fell.since(due));
            let differs = |length: Nanos| length.abs_diff(width);
            self.put(WIDTH, rise.number, rise.due, origin, fell.since(rose).map(differs));
            // Pulses that were not made have no edges.
            let skipped = rise.skipped.min(count - 1 - rise.number);
            if skipped > 0 {
                for series in [RISE, FALL, WIDTH] {
                    self.output.loss(series, Loss::Superseded, skipped);
                }
            }
            if rise.number + 1 + skipped >= count || self.stop.load(Ordering::Relaxed) {
                return Ok(origin);
            }
        }
    }

    #[inline]
    fn put(
        &mut self,
        series: u16,
        number: u64,
        due: Stamp<Monotonic>,
        origin: Stamp<Monotonic>,
        latency: Option<Nanos>,
    ) {
        match (due.since(origin), latency) {
            (Some(at), Some(latency)) => self.output.sample(series, number, at, latency),
            _ => self.output.loss(series, Loss::Tainted, 1),
        }
    }
}
