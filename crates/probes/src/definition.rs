// SPDX-License-Identifier: GPL-2.0-or-later
//! The definition of a probe. From a [`Definition`] come the section of the probe in experiments, its options and their
//! help, and its part of a plan. [`Measure`] carries out the plan.
//!
//! A definition knows the ranges of single keys. [`Measure::unsound`] checks combinations of keys. Whatever only the
//! machine can tell is checked when the probe runs.

use crate::{Output, Plan, Probe, Report, RunError};
use rt::Policy;
use sample::Nanos;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use serde::{Serialize, de};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::sync::atomic::AtomicBool;

/// The shortest period. The kernel needs a few µs for a timer, so a shorter period would measure overruns only.
pub(crate) const PERIOD_MIN: Nanos = Nanos::from_micros(20);
/// The longest period, and the longest of all other lengths of time. A longer one is a mistake.
pub const TIME_MAX: Nanos = Nanos::from_millis(3_600_000);

/// A probe, as those who ask for one see it.
pub struct Definition {
    /// The probe's section in experiments, its word on the command line, and its name in plans.
    pub name: &'static str,
    /// What the probe measures, without a full stop.
    pub about: &'static str,
    /// The keys that a user can set, in the order of the probe's help.
    pub keys: &'static [Key],
    /// Two command lines that run the probe.
    pub examples: [&'static str; 2],
}

impl Definition {
    /// The probe's part of a plan where the user sets no key: fields by their names.
    pub fn defaults(&self) -> Map<String, Value> {
        self.keys.iter().map(|key| (key.field(), key.default_value())).collect()
    }

    /// Whether the probe is measured under a real-time policy where the user does not say.
    pub fn is_real_time(&self) -> bool {
        let probe = json!({ self.name: self.defaults() });
        let probe: Probe = serde_json::from_value(probe).expect("defaults make a probe");
        !matches!(probe.policy(), Policy::Other(_))
    }

    /// Whether the probe has a key for a count. A user can give a duration instead of a count.
    pub fn is_counted(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, Kind::Count))
    }
}

/// A setting of a probe.
pub struct Key {
    /// The key's name in experiments.
    pub name: &'static str,
    /// The values that the key takes.
    pub kind: Kind,
    /// The default, as a user would write it. A list has commas. `all` and `both` mean every word of the list.
    pub default: &'static str,
    /// What the key is, for the help of its option. `{}` stands for the words that the key takes.
    pub help: &'static str,
}

/// The values that a key takes.
pub enum Kind {
    /// How many samples a series has, 1 or more.
    Count,
    /// A whole number in this range.
    Number(u32, u32),
    /// A length of time, from this minimum up to [`TIME_MAX`].
    Time(Nanos),
    /// A list of lengths of time, each from this minimum up to [`TIME_MAX`].
    Times(Nanos),
    /// One of these words.
    Word(fn() -> &'static [&'static str]),
    /// A list of these words.
    Words(fn() -> &'static [&'static str]),
    /// True or false.
    Flag,
    /// A text that the probe itself reads.
    Text(Text),
}

/// The reader and the help of a text that the probe itself reads ([`Kind::Text`]).
pub struct Text {
    /// Turns the text into its value in the plan. `None` means that the text is not valid.
    pub read: fn(&str) -> Option<Value>,
    /// An example of a valid text.
    pub example: &'static str,
    /// What an invalid text is not, for the error message: "no line to toggle".
    pub wrong: &'static str,
    /// Which texts are valid.
    pub help: &'static str,
}

impl Key {
    /// The key `count`.
    pub(crate) const fn count(help: &'static str) -> Key {
        Key { name: "count", kind: Kind::Count, default: "10000", help }
    }

    /// The key `period`.
    pub(crate) const fn period(help: &'static str) -> Key {
        Key { name: "period", kind: Kind::Time(PERIOD_MIN), default: "1ms", help }
    }

    /// A key that takes one word of an enum.
    pub(crate) const fn word<T: DeserializeOwned>(
        name: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Key {
        Key { name, kind: Kind::Word(words_of::<T>), default, help }
    }

    /// A key that takes a list of words of an enum.
    pub(crate) const fn words<T: DeserializeOwned>(
        name: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Key {
        Key { name, kind: Kind::Words(words_of::<T>), default, help }
    }

    /// A key that is true or false. It is false where the user does not set it.
    pub(crate) const fn flag(name: &'static str, help: &'static str) -> Key {
        Key { name, kind: Kind::Flag, default: "false", help }
    }

    /// The key's name in plans. The name ends with the unit.
    pub fn field(&self) -> String {
        match self.kind {
            Kind::Time(_) | Kind::Times(_) => format!("{}_ns", self.name),
            _ => self.name.to_owned(),
        }
    }

    /// The name of the key's option, and the unit of its number: `method` of `methods`, `rate` and `hz` of `rate_hz`.
    pub fn option(&self) -> (String, Option<&'static str>) {
        let (name, unit) = match self.kind {
            Kind::Times(_) | Kind::Words(_) => {
                (self.name.strip_suffix('s').unwrap_or(self.name), None)
            }
            Kind::Number(..) => {
                self.name.split_once('_').map_or((self.name, None), |(n, u)| (n, Some(u)))
            }
            _ => (self.name, None),
        };
        (name.replace('_', "-"), unit)
    }

    /// The key's default as a plan has it.
    ///
    /// # Panics
    /// If the key does not take its own default.
    pub fn default_value(&self) -> Value {
        let time = |text: &str| text.parse::<Nanos>().expect("a length of time with its unit");
        match &self.kind {
            Kind::Count | Kind::Number(..) => json!(self.default.parse::<u64>().expect("a number")),
            Kind::Time(_) => json!(time(self.default)),
            Kind::Times(_) => self.default.split(',').map(|text| json!(time(text))).collect(),
            Kind::Words(words) if matches!(self.default, "all" | "both") => json!(words()),
            Kind::Words(_) => self.default.split(',').collect(),
            Kind::Word(_) => json!(self.default),
            Kind::Flag => json!(false),
            Kind::Text(text) => (text.read)(self.default).expect("a text that the probe reads"),
        }
    }
}

/// How a probe carries out its part of a plan.
pub trait Measure {
    /// The names of the probe's series, in the order of their numbers. Limits and tables use these names.
    fn series(&self, plan: &Plan) -> Vec<String>;

    /// How many threads measure.
    fn threads(&self, _plan: &Plan) -> usize {
        1
    }

    /// About how long measuring takes at the least.
    fn duration(&self) -> Nanos;

    /// The most events that one of the probe's threads measures or loses.
    fn events(&self) -> u64;

    /// The shortest time between two samples of one measuring thread. `None` means that samples follow without a pause.
    fn shortest_gap(&self) -> Option<Nanos> {
        None
    }

    /// Whether a measuring task is busy for whole periods. The kernel may throttle such a task.
    fn spins(&self) -> bool {
        false
    }

    /// What the samples of a series are, for whoever explains them.
    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Other("its samples are not times by which a task was late")
    }

    /// The programs that the probe runs.
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    /// How the measuring task is scheduled where the user does not say: above the kernel's interrupt threads (50),
    /// below its migration and watchdog threads (99).
    fn policy(&self) -> Policy {
        Policy::Fifo(90)
    }

    /// Whether the probe's memory is locked while it measures.
    fn locks_memory(&self) -> bool {
        true
    }

    /// Finds values that are each in their range and that make no sense together.
    fn unsound(&self) -> Option<Unsound> {
        None
    }

    /// Measures until the work is done or `stop` is set. Each thread writes into its own of `outputs`.
    ///
    /// # Errors
    /// [`RunError`]. The outputs hold everything that was measured before the failure.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError>;
}

/// What the samples of a series are ([`Measure::sampled`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// Stretches on CLOCK_MONOTONIC, at whose end a task reads this clock. They begin at the instants that the samples
    /// name, counted from the counter `origin_ns`.
    Stretches,
    /// The same, but the samples do not name their instants. The calls of the task tell them.
    WakeUps,
    /// Something else, which this says.
    Other(&'static str),
}

/// Values that make no sense together ([`Measure::unsound`]).
pub struct Unsound {
    /// The key to change.
    pub key: &'static str,
    /// What is wrong.
    pub wrong: String,
    /// What to do about it.
    pub remedy: String,
}

/// The time for `series` series of `count` events, where one event takes `one`.
pub(crate) fn times(one: Nanos, count: u64, series: usize) -> Nanos {
    one.saturating_mul(count.saturating_mul(series as u64))
}

pub(crate) fn sum(all: &[Nanos]) -> Nanos {
    Nanos(all.iter().fold(0, |sum, one| sum.saturating_add(one.0)))
}

/// The number of events, where each of `series` series has `count` of them.
pub(crate) fn events(count: u64, series: usize) -> u64 {
    count.saturating_mul(series as u64)
}

/// The word for a value of an enum without fields, as files have it.
pub(crate) fn word(of: &impl Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(Value::String(word)) => word,
        other => panic!("not an enum without fields: {other:?}"),
    }
}

/// The words of an enum without fields, as files have them. serde knows these words, so no second list of them exists.
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
            Err(de::Error::custom("only asked for its words"))
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
    use crate::PROBES;
    use crate::plan::{Mechanism, Overrun};

    #[test]
    fn the_words_of_an_enum_are_those_that_are_read_and_written() {
        assert_eq!(words_of::<Overrun>(), ["skip", "catch_up", "stop"]);
        for text in words_of::<Mechanism>() {
            let read: Mechanism = serde_json::from_value(json!(text)).expect(text);
            assert_eq!(&word(&read), text);
        }
    }

    /// The defaults as bundles have them. The readers of bundles know no other form.
    const IN_BUNDLES: [&str; 12] = [
        concat!(
            r#"{"periodic":{"methods":["clock_nanosleep"],"periods_ns":[1000000],"count":10000,"#,
            r#""overrun":"skip","migrate":false,"slack_ns":1}}"#,
        ),
        r#"{"gtod":{"clocks":["monotonic"],"count":10000}}"#,
        r#"{"async":{"mechanisms":["condvar"],"placements":["same"],"period_ns":1000000,"count":10000}}"#,
        concat!(
            r#"{"rhealstone":{"components":["task_switch","preemption","interrupt_latency","#,
            r#""semaphore_shuffle","deadlock_breaking","message_passing"],"interfaces":["sysv","posix"],"#,
            r#""count":10000}}"#,
        ),
        r#"{"rtc":{"rate_hz":2048,"count":10000,"timerfd":false}}"#,
        r#"{"noise":{"duration_ns":10000000000,"threshold_ns":1000}}"#,
        r#"{"toggle":{"period_ns":1000000,"width_ns":50000,"count":10000,"method":"precise","line":"memory"}}"#,
        r#"{"inversion":{"middle_ns":[1000000,2000000,5000000,10000000],"held_ns":500000,"count":10000}}"#,
        concat!(
            r#"{"ladder":{"period_ns":1000000,"count":10000,"responders":["hardirq","threaded_irq","#,
            r#""tasklet","bh_work","work","work_highpri","kthread","task"]}}"#,
        ),
        r#"{"cyclictest":{"methods":["clock_nanosleep"],"period_ns":1000000,"count":10000}}"#,
        r#"{"cycles":{"period_ns":1000000,"count":10000}}"#,
        concat!(
            r#"{"cost":{"suites":["syscalls","processes","context","ipc","files","memory","network","scheduler"],"#,
            r#""count":11,"repetitions":5,"seed":1}}"#,
        ),
    ];

    #[test]
    fn a_ladder_of_before_there_was_a_choice_has_the_responders_that_there_were() {
        let text = r#"{"ladder":{"period_ns":1000000,"count":10000}}"#;
        let before: Probe = serde_json::from_str(text).expect("an older plan");
        let today = IN_BUNDLES.iter().find(|text| text.contains("ladder")).expect("one of all");
        assert_eq!(before, serde_json::from_str(today).expect("today's"));
    }

    #[test]
    fn the_plans_of_bundles_stay_as_they_are() {
        for text in IN_BUNDLES {
            let probe: Probe = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&probe).expect("plain data"), text);
            let name = probe.name();
            let definition = PROBES.into_iter().find(|d| d.name == name).expect(name);
            let defaults = json!({ name: definition.defaults() });
            assert_eq!(serde_json::from_value::<Probe>(defaults).expect(name), probe);
        }
    }

    #[test]
    fn every_definition_makes_a_probe_of_its_name_and_the_plan_reads_back() {
        for definition in PROBES {
            let defaults = json!({ definition.name: definition.defaults() });
            let probe: Probe = serde_json::from_value(defaults.clone()).expect(definition.name);
            assert_eq!(probe.name(), definition.name);
            assert!(probe.unsound().is_none() && probe.duration() > Nanos(0));
            assert_eq!(serde_json::to_value(&probe).expect("plain data"), defaults);
            let plan = Plan {
                probe,
                policy: Policy::Fifo(90),
                cpus: vec![0],
                pm_qos: false,
                program: None,
            };
            let series = plan.series();
            assert!(!series.is_empty() && plan.probe.events() >= series.len() as u64);
            let text = serde_json::to_string(&plan).expect("plain data");
            assert_eq!(serde_json::from_str::<Plan>(&text).expect("a plan"), plan);
        }
    }
}
