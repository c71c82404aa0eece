// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes an excerpt as a Perfetto trace: TrackEvent packets, which the Perfetto UI and `trace_processor` read
//! (perfetto.dev/docs/reference/synthetic-track-event). The trace has virtual time where Perfetto expects the
//! machine's.
//!
//! The messages are declared here with the few fields that are used. The field numbers are those of
//! protos/perfetto/trace/{trace,trace_packet}.proto and protos/perfetto/trace/track_event/*.proto.

use crate::entries::without_place;
use crate::excerpt::{Excerpt, Now};
use crate::functions::{Call, Functions};
use crate::priority::priority;
use crate::symbols::named;
use crate::{Activity, At, Interrupt, Place, Role, Stacks, Symbols, TaskId, Tasks, What};
use prost::Message;
use sample::{ALL_RESPONDERS, Nanos};

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    /// The value 3 orders children by their ranks.
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

/// `TrackEvent.Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
const EXPLICIT: i32 = 3;

/// The tracks in the order in which they are shown, below the track that holds them all. A track's uuid is its place
/// here plus 2.
const TRACKS: [&str; 21] = [
    "line",
    "interrupts off",
    "interrupts",
    "softirqs",
    "preemption off",
    "scheduler",
    "running task",
    "wake-ups",
    "calls",
    "functions",
    "D0",
    "D1",
    "D2",
    "D3",
    "D4",
    "D5",
    "D6",
    "D7",
    "D8",
    "D9",
    "D10",
];
const LINE: usize = 0;
const WAKE_UPS: usize = 7;
const CALLS: usize = 8;
const FUNCTIONS: usize = 9;
const D0: usize = 10;
const _: () = assert!(TRACKS.len() == D0 + ALL_RESPONDERS.len(), "a track for each pin");
/// The uuid of the track that holds all others.
const CPU: u64 = 1;

/// What fills a track for some time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Place(Place),
    Interrupt(Interrupt),
    Softirq(Option<u64>),
    Word(&'static str),
    Task(TaskId),
}

/// What fills each track.
fn fills(now: &Now) -> [Option<Fill>; TRACKS.len()] {
    let mut fills = [None; TRACKS.len()];
    fills[1] = now.irqs_off.map(Fill::Place);
    match now.activity {
        Activity::Interrupt(interrupt) => fills[2] = Some(Fill::Interrupt(interrupt)),
        Activity::Softirq(function) => fills[3] = Some(Fill::Softirq(function)),
        Activity::Scheduler => fills[5] = Some(Fill::Word("scheduler")),
        Activity::Switch => fills[5] = Some(Fill::Word("switch")),
        _ => fills[3] = now.served_by_task.map(Fill::Softirq),
    }
    fills[4] = now.preempt_off.map(Fill::Place);
    fills[6] = now.running.map(Fill::Task);
    for (pin, fill) in fills[D0..].iter_mut().enumerate() {
        *fill = (now.level >> pin & 1 == 1).then_some(Fill::Word("high"));
    }
    fills
}

struct Writer<'a> {
    packets: Vec<Packet>,
    tasks: &'a Tasks,
    stacks: &'a Stacks,
    symbols: &'a dyn Symbols,
}

/// The excerpt as the bytes of a `.pftrace` file.
pub fn perfetto(
    excerpt: &Excerpt,
    tasks: &Tasks,
    stacks: &Stacks,
    symbols: &dyn Symbols,
) -> Vec<u8> {
    let mut writer = Writer { packets: Vec::new(), tasks, stacks, symbols };
    writer.describe();
    let mut before = fills(&excerpt.initial());
    if let Some(from) = excerpt.from() {
        writer.change(from, &[None; TRACKS.len()], &before);
    }
    let mut end = excerpt.from();
    let (mut functions, mut called) = (Functions::default(), Vec::new());
    for (event, now) in excerpt.states() {
        if functions.event(&event.what) {
            writer.functions(event.at, &mut called, functions.now().collect());
        }
        let after = fills(&now);
        writer.change(event.at, &before, &after);
        writer.instant(event.at, &event.what);
        before = after;
        end = Some(event.at);
    }
    if let Some(end) = end {
        // A slice that begins with the last event, such as the answer, lasts for a nanosecond. Otherwise nobody would
        // see it.
        let end = At { time: end.time + Nanos(1), ..end };
        writer.change(end, &before, &[None; TRACKS.len()]);
        writer.functions(end, &mut called, Vec::new());
    }
    Trace { packet: writer.packets }.encode_to_vec()
}

impl Writer<'_> {
    fn describe(&mut self) {
        let mut describe = |descriptor: TrackDescriptor| {
            self.packets.push(Packet {
                trusted_packet_sequence_id: Some(1),
                track_descriptor: Some(descriptor),
                ..Packet::default()
            });
        };
        describe(TrackDescriptor {
            uuid: Some(CPU),
            name: Some("CPU 0".to_owned()),
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        });
        for (rank, name) in (0..).zip(TRACKS) {
            describe(TrackDescriptor {
                uuid: Some(uuid(rank)),
                name: Some(name.to_owned()),
                parent_uuid: Some(CPU),
                sibling_order_rank: Some(rank as i32),
                child_ordering: None,
            });
        }
    }

    /// Ends and begins slices where the filling of a track changed. Ends come first, so slices of a track never nest.
    fn change(
        &mut self,
        at: At,
        before: &[Option<Fill>; TRACKS.len()],
        after: &[Option<Fill>; TRACKS.len()],
    ) {
        for (track, (old, new)) in before.iter().zip(after).enumerate() {
            if old == new {
                continue;
            }
            if old.is_some() {
                self.event(at, track, SLICE_END, None, Vec::new());
            }
            if let Some(fill) = new {
                let (name, more) = self.fill(fill);
                self.event(at, track, SLICE_BEGIN, Some(name), more);
            }
        }
    }

    /// Ends the calls that are over, from the innermost out. Begins the new ones.
    fn functions(&mut self, at: At, called: &mut Vec<Call>, now: Vec<Call>) {
        let same = called.iter().zip(&now).take_while(|(was, is)| was == is).count();
        for _ in same..called.len() {
            self.event(at, FUNCTIONS, SLICE_END, None, Vec::new());
        }
        for call in &now[same..] {
            let name = without_place(&named(self.symbols, call.address));
            self.event(at, FUNCTIONS, SLICE_BEGIN, Some(name), Vec::new());
        }
        *called = now;
    }

    fn instant(&mut self, at: At, what: &What) {
        match *what {
            What::Trigger { number, .. } => {
                self.event(at, LINE, INSTANT, Some(format!("trigger {number}")), Vec::new());
            }
            What::Due { .. } => self.event(at, LINE, INSTANT, Some("due".to_owned()), Vec::new()),
            What::Done { .. } => self.event(at, LINE, INSTANT, Some("done".to_owned()), Vec::new()),
            What::Disturbance { timers } => {
                let name = format!("disturbance, timers: {timers}");
                self.event(at, LINE, INSTANT, Some(name), Vec::new());
            }
            // The event has the name of the woken task, since readers look for this name.
            What::Enter { role: Role::WakeUp, taken, place, .. } => {
                let more = self.stack(place);
                self.event(at, WAKE_UPS, INSTANT, Some(self.task(TaskId(taken))), more);
            }
            What::Enter { role, address, taken, place, .. } => {
                let mut more = self.stack(place);
                if role == Role::SwitchTo {
                    more.push(text("task", self.task(TaskId(taken))));
                }
                self.event(at, CALLS, INSTANT, Some(named(self.symbols, address)), more);
            }
            _ => {}
        }
    }

    fn event(
        &mut self,
        at: At,
        track: usize,
        kind: i32,
        name: Option<String>,
        mut more: Vec<DebugAnnotation>,
    ) {
        if kind != SLICE_END {
            let name = Some("instructions".to_owned());
            more.push(DebugAnnotation { uint_value: Some(at.insns.0), string_value: None, name });
        }
        self.packets.push(Packet {
            timestamp: Some(at.time.ns()),
            trusted_packet_sequence_id: Some(1),
            track_event: Some(TrackEvent {
                debug_annotations: more,
                r#type: Some(kind),
                track_uuid: Some(uuid(track)),
                name,
            }),
            track_descriptor: None,
        });
    }

    fn fill(&self, fill: &Fill) -> (String, Vec<DebugAnnotation>) {
        match *fill {
            Fill::Place(place) => {
                let first = self.stacks.names(place, self.symbols).into_iter().next();
                (first.unwrap_or_else(|| "off".to_owned()), self.stack(place))
            }
            Fill::Interrupt(Interrupt { entry, vector }) => {
                let entry = entry.map_or("interrupt".to_owned(), |e| named(self.symbols, e));
                let vector = vector.map(|v| text("vector", v.to_string()));
                (entry, vector.into_iter().collect())
            }
            Fill::Softirq(function) => {
                (function.map_or("softirq".to_owned(), |f| named(self.symbols, f)), Vec::new())
            }
            Fill::Word(word) => (word.to_owned(), Vec::new()),
            Fill::Task(task) => (self.task(task), Vec::new()),
        }
    }

    fn task(&self, task: TaskId) -> String {
        match self.tasks.get(task) {
            Some(t) => format!("{} [{}] {}", t.name, t.pid, priority(t.prio)),
            None => format!("task {:#x}", task.0),
        }
    }

    fn stack(&self, place: Place) -> Vec<DebugAnnotation> {
        let names = self.stacks.names(place, self.symbols);
        if names.is_empty() { Vec::new() } else { vec![text("stack", names.join("\n"))] }
    }
}

fn text(name: &str, value: String) -> DebugAnnotation {
    let name = Some(name.to_owned());
    DebugAnnotation { name, string_value: Some(value), uint_value: None }
}

fn uuid(track: usize) -> u64 {
    CPU + 1 + track as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use crate::excerpt::tests::{excerpt, symbols};

    fn decoded() -> Trace {
        let reader = Reader::new(&[]);
        let bytes = perfetto(&excerpt(), reader.tasks(), reader.stacks(), &symbols());
        Trace::decode(bytes.as_slice()).expect("a trace")
    }

    /// The time, the kind and the name of each event of a track.
    fn track(trace: &Trace, name: &str) -> Vec<(u64, i32, String)> {
        let rank = TRACKS.iter().position(|t| *t == name).expect("a track");
        let of = |p: &Packet| {
            let event = p.track_event.as_ref().filter(|e| e.track_uuid == Some(uuid(rank)))?;
            Some((p.timestamp?, event.r#type?, event.name.clone().unwrap_or_default()))
        };
        trace.packet.iter().filter_map(of).collect()
    }

    #[test]
    fn each_track_shows_what_filled_it() {
        let trace = decoded();
        assert_eq!(
            track(&trace, "interrupts off"),
            [
                (10, SLICE_BEGIN, "f5+0x0".into()),
                (40, SLICE_END, String::new()),
                (50, SLICE_BEGIN, "f6+0x0".into()),
                (91, SLICE_END, String::new()),
            ]
        );
        assert_eq!(
            track(&trace, "line"),
            [(20, INSTANT, "trigger 3".into()), (30, INSTANT, "disturbance, timers: 8".into()),]
        );
        assert_eq!(
            track(&trace, "D2"),
            [(60, SLICE_BEGIN, "high".into()), (91, SLICE_END, String::new())]
        );
        assert_eq!(track(&trace, "wake-ups"), [(70, INSTANT, "task 0x1".into())]);
    }

    #[test]
    fn calls_of_functions_nest_on_a_track_of_their_own_and_end_with_the_trace() {
        let call = |address, stack_pointer| What::Function { address, stack_pointer };
        let events = [
            (10, What::Trigger { number: 0, level: 0 }),
            (20, call(5, 0x80)),
            (30, call(6, 0x40)),
            (40, What::Return { stack_pointer: 0x40 }),
            (50, call(7, 0x40)),
            (60, What::Pins { level: 1 }),
        ];
        let mut history = crate::History::new(100);
        for (ns, what) in events {
            let at = At::new(sample::Stamp::from_ns(ns), sample::Insns(ns));
            history.push(crate::Event { at, what });
        }
        let excerpt = history.excerpt(0, sample::Nanos(100)).expect("it is kept");
        let reader = Reader::new(&[]);
        let bytes = perfetto(&excerpt, reader.tasks(), reader.stacks(), &symbols());
        let trace = Trace::decode(bytes.as_slice()).expect("a trace");
        let (begin, end) =
            (|name: &str| (SLICE_BEGIN, name.to_owned()), || (SLICE_END, String::new()));
        let expected = [
            (20, begin("f5")),
            (30, begin("f6")),
            (40, end()),
            (50, begin("f7")),
            (61, end()),
            (61, end()),
        ];
        let expected = expected.map(|(at, (kind, name))| (at, kind, name));
        assert_eq!(track(&trace, "functions"), expected);
    }

    #[test]
    fn on_every_track_each_slice_that_begins_ends_before_the_next() {
        let trace = decoded();
        for name in TRACKS.into_iter().filter(|name| *name != TRACKS[FUNCTIONS]) {
            let kinds: Vec<_> = track(&trace, name).into_iter().map(|(_, kind, _)| kind).collect();
            let slices: Vec<_> = kinds.into_iter().filter(|k| *k != INSTANT).collect();
            assert!(slices.chunks(2).all(|c| c == [SLICE_BEGIN, SLICE_END]), "{name}: {slices:?}");
        }
    }
}
