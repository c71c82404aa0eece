// SPDX-License-Identifier: GPL-2.0-or-later
//! The driver triggered by its own timer: a guest that measures itself. What it reads is checked here, record
//! by record. There is no plugin and no agent: process 1 is programs/timer.c.

use crate::programs::{boot, kernel_of_tests, program};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use testbench::{Lab, have_kernels};

const SAMPLE: u8 = 5;
const LOSS: u8 = 6;
/// `enum onset_loss` there, of which there are five.
const SUPERSEDED: usize = 1;
const SPURIOUS: usize = 2;
const TAINTED: usize = 3;
const DROPPED: usize = 4;
const HARDIRQ: u32 = 0;
const BH_WORK: u32 = 3;
const TASK: u32 = 7;

/// `struct onset_record` of driver/onset_wire.h.
struct Record {
    kind: u8,
    loss: u8,
    pin: u32,
    number: u64,
    due_ns: u64,
    latency_ns: u64,
}

impl Record {
    fn decode(b: &[u8]) -> Record {
        let u64_at = |i: usize| u64::from_le_bytes(b[i..i + 8].try_into().expect("8 bytes"));
        assert_eq!(b[2..4], [0, 0], "reserved");
        Record {
            kind: b[0],
            loss: b[1],
            pin: u32::from_le_bytes(b[4..8].try_into().expect("4 bytes")),
            number: u64_at(8),
            due_ns: u64_at(16),
            latency_ns: u64_at(24),
        }
    }
}

/// What one responder gave in one run.
#[derive(Default)]
struct Series {
    samples: Vec<Record>,
    losses: [u64; 5],
}

impl Series {
    fn triggers(&self) -> u64 {
        self.samples.len() as u64 + self.losses.iter().sum::<u64>()
    }

    fn latency_min(&self) -> u64 {
        self.samples.iter().map(|s| s.latency_ns).min().expect("samples")
    }
}

/// The series of one run by pin.
type Ladder = BTreeMap<u32, Series>;

/// What a guest left: its console, and the bytes that it wrote to the debug port.
struct Guest {
    console: String,
    bytes: Vec<u8>,
}

impl Guest {
    fn boot(kernel: &str) -> Guest {
        let lab = Lab::new();
        let kernel = kernel_of_tests(&lab, kernel);
        let init = program(&lab, "timer.c", &["-static"]);
        let driver = kernel.driver().expect("fetched with its headers");
        let (console, bytes) = boot(&lab, &kernel, &[("init", init), ("onset_port.ko", driver)]);
        Guest { console, bytes }
    }

    /// The runs, each ended by a record of zeros.
    fn runs(&self) -> Vec<Ladder> {
        let (mut runs, mut run) = (Vec::new(), Ladder::new());
        for bytes in self.bytes.chunks_exact(32) {
            let record = Record::decode(bytes);
            match record.kind {
                0 => runs.push(std::mem::take(&mut run)),
                SAMPLE => run.entry(record.pin).or_default().samples.push(record),
                LOSS => {
                    let series = run.entry(record.pin).or_default();
                    series.losses[usize::from(record.loss)] += record.number;
                }
                kind => panic!("a record of kind {kind}"),
            }
        }
        assert!(run.is_empty(), "the last run has an end");
        runs
    }

    #[track_caller]
    fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.console.contains(word), "{word:?} is not in:\n{}", self.console);
        }
    }
}

/// Every trigger ends as exactly one of sample and loss, for everyone; numbers rise, and times are those of the period.
fn assert_sound(ladder: &Ladder, period_ns: u64) {
    let hardirq = &ladder[&HARDIRQ];
    let first = &hardirq.samples[0];
    let origin_ns = first.due_ns - first.number * period_ns;
    for (pin, series) in ladder {
        assert_eq!(series.triggers(), hardirq.triggers(), "pin {pin}: {:?}", series.losses);
        assert!(series.samples.is_sorted_by(|a, b| a.number < b.number), "pin {pin}");
        assert!(series.samples.iter().all(|s| s.due_ns == origin_ns + s.number * period_ns));
        assert!(series.samples.iter().all(|s| s.number < series.triggers()), "pin {pin}");
    }
}

fn assert_ladder(guest: &Guest, pins: &[u32]) {
    let runs = guest.runs();
    let [calm, fast, unread] = runs.as_slice() else { panic!("{} runs", runs.len()) };
    assert!(calm.keys().eq(pins), "{:?}", calm.keys());
    for (ladder, period_ns) in [(calm, 1_000_000), (fast, 20_000), (unread, 20_000)] {
        assert_sound(ladder, period_ns);
    }
    let hardirq = calm[&HARDIRQ].latency_min();
    for (pin, series) in calm {
        // An idle kernel may still keep interrupts off for some periods.
        assert!(series.triggers() >= 1000 && series.samples.len() >= 900, "pin {pin}");
        let but_superseded = series.triggers() - series.losses[SUPERSEDED];
        assert_eq!(series.samples.len() as u64, but_superseded, "pin {pin}: {:?}", series.losses);
        assert!(hardirq <= series.latency_min(), "pin {pin} before the hard handler");
    }
    assert!(fast[&TASK].samples.is_empty(), "it was stopped");
    assert!(unread[&HARDIRQ].losses[DROPPED] > 0, "the ring was never full");
    assert!(
        runs.iter().flat_map(BTreeMap::values).all(|s| s.losses[SPURIOUS] + s.losses[TAINTED] == 0)
    );
}

const ALL: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Guests that several tests look at.
static PLAIN: LazyLock<Guest> = LazyLock::new(|| Guest::boot("6.12"));
static RT: LazyLock<Guest> = LazyLock::new(|| Guest::boot("6.12-rt"));

#[test]
fn every_trigger_of_the_timer_is_answered_or_counted_for_each_responder() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    assert_ladder(&PLAIN, &ALL);
}

#[test]
fn every_trigger_of_the_timer_is_answered_or_counted_on_rt() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    assert_ladder(&RT, &ALL);
}

#[test]
fn the_timer_works_on_older_kernels_with_the_responders_that_they_have() {
    if !have_kernels(&["6.1", "6.1-rt"]) {
        return;
    }
    let pins: Vec<u32> = ALL.into_iter().filter(|pin| *pin != BH_WORK).collect();
    for kernel in ["6.1", "6.1-rt"] {
        assert_ladder(&Guest::boot(kernel), &pins);
    }
}

#[test]
fn a_guest_that_measures_itself_twice_gives_the_same_bytes() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let again = Guest::boot("6.12-rt");
    assert_eq!(blake3::hash(&again.bytes), blake3::hash(&RT.bytes));
}

#[test]
fn what_the_timer_cannot_do_is_refused_with_the_reason() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    PLAIN.says(&[
        "trigger=: \"wire\" is none of port (where there are I/O ports), gpio and timer",
        "load trigger=wire: Invalid argument",
        "period_ns=: a whole number of nanoseconds from 20000 to 1000000000",
        "load trigger=timer period_ns=19999: Invalid argument",
        "load trigger=timer period_ns=1000000001: Invalid argument",
        "cpu=1 is not online",
        "load trigger=timer cpu=1: Invalid argument",
        "threaded= is of trigger=port",
        "load trigger=timer threaded=Y: Invalid argument",
        "a parallel port has eight data pins, and none for tasklet_hi,waitqueue; name the first eight only",
        "load responders=hardirq,tasklet_hi,waitqueue: Invalid argument",
        "nothing disturbs at 0x4f44",
        "load trigger=timer disturbance_irq=5: No such device",
        "second open: Device or resource busy",
        "half a record: Invalid argument",
        "poll before the first trigger: 0",
        "read before the first trigger: Resource temporarily unavailable",
        "poll with time: 1",
        "read with time: 32",
    ]);
}
