// SPDX-License-Identifier: GPL-2.0-or-later
//! `[task]` and the section named for a probe: what is measured on the target itself.

use super::COUNT_MAX;
use super::diagnostic::{Place, known_words};
use super::document::Entry;
use super::read::{Reader, Section};
use probes::plan::{
    Async, BUSY_MAX, Component, Cyclictest, Gtod, Interface, Inversion, Ladder, Line, Mechanism,
    Noise, Overrun, Periodic, Placement, Plan, Probe, ReadClock, Rhealstone, Rtc, SleepMethod,
    Toggle,
};
use rt::Policy;
use sample::Nanos;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use std::cell::Cell;

/// The sections that name a probe; an experiment has one of them, or `[trigger]`.
pub(super) const PROBES: [&str; 10] = [
    "periodic",
    "gtod",
    "async",
    "rhealstone",
    "rtc",
    "noise",
    "toggle",
    "inversion",
    "ladder",
    "cyclictest",
];

/// Priority of the measuring task: above the kernel's interrupt threads (50), below its migration and watchdog
/// threads (99).
const POLICY: Policy = Policy::Fifo(90);
const COUNT: u64 = 10_000;
const PERIOD: Nanos = Nanos::from_millis(1);
/// A timer of the kernel needs a few µs; what is shorter would measure overruns only.
const PERIOD_MIN: Nanos = Nanos::from_micros(20);
const PERIOD_MAX: Nanos = Nanos::from_millis(3_600_000);
/// 2007 assessment, §2.
const WIDTH: Nanos = Nanos::from_micros(50);
const NOISE_DURATION: Nanos = Nanos::from_millis(10_000);
const NOISE_THRESHOLD: Nanos = Nanos::from_micros(1);
const INVERSION_HELD: Nanos = Nanos::from_micros(500);
const RTC_RATE_HZ: u32 = 2048;
/// CPUs that a kernel can have (NR_CPUS of Debian's amd64 kernels).
const CPU_MAX: u64 = 8191;

/// Reads the plan from `[task]` and the probe's section; `None` when something about it was noted.
pub(super) fn read(reader: &mut Reader, task: &Section, section: &Section) -> Option<Plan> {
    let noted = reader.problems.len();
    let policy = task.entry("policy").map_or(Some(POLICY), |e| policy(reader, e));
    let cpus = task.entry("cpus").map_or(Some(vec![0]), |e| cpus(reader, e));
    let pm_qos = task.entry("pm_qos").map_or(Some(false), |e| reader.boolean(e));
    let mut keys = Keys { reader, section };
    let probe = keys.probe();
    let plan = Plan { probe, policy: policy?, cpus: cpus?, pm_qos: pm_qos? };
    (reader.problems.len() == noted).then_some(plan)
}

fn policy(reader: &mut Reader, entry: &Entry) -> Option<Policy> {
    let (text, at) = reader.text(entry, "\"fifo:90\"")?;
    match text.parse() {
        Ok(policy) => Some(policy),
        Err(why) => {
            reader.note(at, format!("{text:?} is no scheduling policy"), format!("{why}"));
            None
        }
    }
}

/// A list of CPUs, without repetition, rising.
fn cpus(reader: &mut Reader, entry: &Entry) -> Option<Vec<u32>> {
    let mut cpus: Vec<u32> =
        reader.integers(entry, 0..=CPU_MAX, "[0, 1]")?.into_iter().map(|n| n as u32).collect();
    let asked = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < asked {
        reader.note(&entry.node.at, "a CPU is in cpus twice", "name each once");
        return None;
    }
    Some(cpus)
}

/// The keys of a probe's section. What is faulty is noted and replaced by its default, so that all faults are
/// found; nothing is made of it.
struct Keys<'r, 'a> {
    reader: &'r mut Reader,
    section: &'r Section<'a>,
}

impl Keys<'_, '_> {
    fn probe(&mut self) -> Probe {
        match self.section.name {
            "periodic" => self.periodic(),
            "gtod" => Probe::Gtod(Gtod {
                clocks: self.words("clocks", &[ReadClock::Monotonic]),
                count: self.count(),
            }),
            "async" => Probe::Async(Async {
                mechanisms: self.words("mechanisms", &[Mechanism::Condvar]),
                placements: self.words("placements", &[Placement::Same]),
                period: self.period(),
                count: self.count(),
            }),
            "rhealstone" => Probe::Rhealstone(Rhealstone {
                components: self.words("components", &ALL_COMPONENTS),
                interfaces: self.words("interfaces", &[Interface::Sysv, Interface::Posix]),
                count: self.count(),
            }),
            "rtc" => Probe::Rtc(Rtc {
                rate_hz: self.rate(),
                count: self.count(),
                timerfd: self.boolean("timerfd"),
            }),
            "noise" => Probe::Noise(Noise {
                duration: self.duration("duration", NOISE_DURATION, PERIOD),
                threshold: self.duration("threshold", NOISE_THRESHOLD, Nanos(100)),
            }),
            "toggle" => self.toggle(),
            "inversion" => Probe::Inversion(Inversion {
                middle: self.durations(
                    "middle",
                    &[1, 2, 5, 10].map(Nanos::from_millis),
                    PERIOD_MIN,
                ),
                held: self.duration("held", INVERSION_HELD, PERIOD_MIN),
                count: self.count(),
            }),
            "ladder" => Probe::Ladder(Ladder { period: self.period(), count: self.count() }),
            _ => Probe::Cyclictest(Cyclictest {
                methods: self.words("methods", &[SleepMethod::ClockNanosleep]),
                period: self.period(),
                count: self.count(),
            }),
        }
    }

    fn periodic(&mut self) -> Probe {
        let methods = self.words("methods", &[SleepMethod::ClockNanosleep]);
        let periods = self.periods();
        let longest = periods.iter().max().copied().unwrap_or_default();
        if methods.contains(&SleepMethod::Busy) && longest > BUSY_MAX {
            let message = format!("no task can be busy for whole periods of {longest}");
            let at = self.section.entry("periods").map_or(&self.section.at, |e| &e.node.at);
            let help = format!("with busy, periods are at most {BUSY_MAX}; precise sleeps first");
            self.reader.note(at, message, help);
        }
        Probe::Periodic(Periodic {
            methods,
            periods,
            count: self.count(),
            overrun: self.word("overrun", Overrun::Skip),
            migrate: self.boolean("migrate"),
        })
    }

    fn toggle(&mut self) -> Probe {
        let (period, width) = (self.period(), self.duration("width", WIDTH, Nanos::from_micros(1)));
        if width >= period {
            let message = format!("a pulse of {width} does not fit into a period of {period}");
            let at = self.section.entry("width").map_or(&self.section.at, |e| &e.node.at);
            self.reader.note(at, message, "make it shorter than the period");
        }
        let (method, count) = (self.word("method", SleepMethod::Precise), self.count());
        Probe::Toggle(Toggle { period, width, count, method, line: self.line() })
    }

    /// `memory`, `parport:0x378` or `gpio:/dev/gpiochip0:17`.
    fn line(&mut self) -> Line {
        let Some(entry) = self.section.entry("line") else { return Line::Memory };
        let Some((text, at)) = self.reader.text(entry, "\"parport:0x378\"") else {
            return Line::Memory;
        };
        let parsed = match text.split_once(':') {
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
        };
        parsed.unwrap_or_else(|| {
            let help = "write memory, parport:ADDRESS (as parport:0x378) or gpio:CHIP:LINE (as gpio:/dev/gpiochip0:17)";
            self.reader.note(at, format!("{text:?} is no line to toggle"), help);
            Line::Memory
        })
    }

    fn count(&mut self) -> u64 {
        let entry = self.section.entry("count");
        entry.map_or(COUNT, |e| self.reader.integer(e, 1..=COUNT_MAX).unwrap_or(COUNT))
    }

    fn rate(&mut self) -> u32 {
        let Some(entry) = self.section.entry("rate_hz") else { return RTC_RATE_HZ };
        let Some(rate) = self.reader.integer(entry, 2..=8192) else { return RTC_RATE_HZ };
        if !rate.is_power_of_two() {
            let help = "the clock's chip divides by two: 2, 4, 8 … 8192";
            self.reader.note(&entry.node.at, format!("rate_hz cannot be {rate}"), help);
        }
        rate as u32
    }

    fn boolean(&mut self, key: &str) -> bool {
        self.section.entry(key).is_some_and(|e| self.reader.boolean(e).unwrap_or(false))
    }

    fn period(&mut self) -> Nanos {
        self.duration("period", PERIOD, PERIOD_MIN)
    }

    fn periods(&mut self) -> Vec<Nanos> {
        self.durations("periods", &[PERIOD], PERIOD_MIN)
    }

    fn duration(&mut self, key: &str, default: Nanos, least: Nanos) -> Nanos {
        let Some(entry) = self.section.entry(key) else { return default };
        let Some((duration, at)) = self.reader.duration(entry) else { return default };
        self.check_duration(key, duration, at, least);
        duration
    }

    fn durations(&mut self, key: &str, default: &[Nanos], least: Nanos) -> Vec<Nanos> {
        let Some(entry) = self.section.entry(key) else { return default.to_vec() };
        let Some(found) = self.reader.durations(entry) else { return default.to_vec() };
        for (i, (duration, at)) in found.iter().enumerate() {
            self.check_duration(key, *duration, at, least);
            if found[..i].iter().any(|(earlier, _)| earlier == duration) {
                let message = format!("{duration} is in {key} twice");
                self.reader.note(at, message, "leave one of them out");
            }
        }
        found.into_iter().map(|(duration, _)| duration).collect()
    }

    fn check_duration(&mut self, key: &str, duration: Nanos, at: &Place, least: Nanos) {
        if duration < least || duration > PERIOD_MAX {
            let message = format!("{key} cannot be {duration}");
            self.reader.note(at, message, format!("it is from {least} to {PERIOD_MAX}"));
        }
    }

    fn word<T: DeserializeOwned>(&mut self, key: &str, default: T) -> T {
        let Some(entry) = self.section.entry(key) else { return default };
        let words = words_of::<T>();
        let Some((text, at)) = self.reader.text(entry, &format!("{:?}", words[0])) else {
            return default;
        };
        match parse(text) {
            Some(word) => word,
            None => {
                let help = known_words(text, words.iter().copied());
                self.reader.note(at, format!("unknown {key} {text:?}"), help);
                default
            }
        }
    }

    fn words<T: DeserializeOwned + Ord + Clone>(&mut self, key: &str, default: &[T]) -> Vec<T> {
        let Some(entry) = self.section.entry(key) else { return default.to_vec() };
        let words = words_of::<T>();
        let convert = |text: &str| {
            let help = || known_words(text, words.iter().copied());
            parse(text).ok_or_else(|| (format!("{text:?} is none of the {key}"), help()))
        };
        let found = self.reader.words(entry, &format!("[{:?}]", words[0]), convert);
        found.map_or(default.to_vec(), |found| found.into_iter().map(|(word, _)| word).collect())
    }
}

const ALL_COMPONENTS: [Component; 6] = [
    Component::TaskSwitch,
    Component::Preemption,
    Component::InterruptLatency,
    Component::SemaphoreShuffle,
    Component::DeadlockBreaking,
    Component::MessagePassing,
];

fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    T::deserialize(value::StrDeserializer::<value::Error>::new(text)).ok()
}

/// The words of an enum without fields, as it is read from files: serde knows them, so that no second list does.
fn words_of<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Ask<'c>(&'c Cell<&'static [&'static str]>);

    impl<'de> Deserializer<'de> for Ask<'_> {
        type Error = value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
            Err(value::Error::custom("not an enum"))
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _: &'static str,
            variants: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, value::Error> {
            self.0.set(variants);
            Err(value::Error::custom("only asked for its words"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }

    let words = Cell::new(&[][..]);
    let _ = T::deserialize(Ask(&words));
    words.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_enum_are_those_that_are_read() {
        assert_eq!(words_of::<Overrun>(), ["skip", "catch_up", "stop"]);
        for word in words_of::<Mechanism>() {
            assert!(parse::<Mechanism>(word).is_some(), "{word}");
        }
        assert_eq!(parse::<Overrun>("later"), None);
    }
}
