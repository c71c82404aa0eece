// SPDX-License-Identifier: GPL-2.0-or-later
//! The list of all tables and figures of the five papers. A new experiment of a paper gets its entry here, in the place
//! of the `NotYet` that stood for it.

/// A table or figure, or several of one kind.
pub(super) struct Entry {
    /// The paper, as the pages cite it.
    pub(super) paper: &'static str,
    /// `table 1`, `figures 2 to 4`, or the section if the paper has no number for it.
    pub(super) place: &'static str,
    /// What it shows.
    pub(super) shows: &'static str,
    /// How onset makes it again.
    pub(super) made: Made,
}

/// How onset makes a table or figure again.
#[derive(Clone, Copy)]
pub(super) enum Made {
    /// By an experiment in `experiments/papers`.
    Experiment {
        /// Its file, without `.toml`; with a star at its end if several files belong together.
        file: &'static str,
        /// The table of the report.
        table: &'static str,
        /// A part of the sentence of the claim that leads.
        lead: &'static str,
        /// The paper's figure in that sentence.
        theirs: &'static str,
    },
    /// By another command; what there is to see, and why no claim is decided.
    Command { command: &'static str, why: &'static str },
    /// Not yet, and what is missing.
    #[allow(dead_code, reason = "the list may have none of them")]
    NotYet(&'static str),
    /// There is nothing that onset could measure; why.
    NoMeasurement(&'static str),
}

#[cfg(test)]
impl Entry {
    pub(super) fn file(&self) -> Option<&'static str> {
        match self.made {
            Made::Experiment { file, .. } => Some(file),
            _ => None,
        }
    }
}

const fn entry(paper: &'static str, place: &'static str, shows: &'static str, made: Made) -> Entry {
    Entry { paper, place, shows, made }
}

/// File and table; lead and the paper's figure.
const fn by(
    (file, table): (&'static str, &'static str),
    (lead, theirs): (&'static str, &'static str),
) -> Made {
    Made::Experiment { file, table, lead, theirs }
}

const A: &str = "2001";
const B: &str = "2002";
const C: &str = "2006";
const D: &str = "2007 internals";
const E: &str = "2007 assessment";

const DRAWING: Made = Made::NoMeasurement("a drawing, without a measurement");
const DESCRIPTION: Made = Made::NoMeasurement("a description of Linux 2.6, without a measurement");
const OTHERS: Made = Made::NoMeasurement(
    "other systems than Linux: QNX, VxWorks, Windows CE. onset measures none of them",
);
const CORES: Made =
    Made::NoMeasurement("other systems than Linux: RTLinux, RTAI. onset measures none of them");

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    entry(A, "table 1", "delay of a task that sleeps 50 ms, disk load",
        by(("2001-tables-1-2", "2001-1"), ("Timers that only the tick drives", "× 32.0"))),
    entry(A, "table 2", "delay of a task that sleeps 50 ms, network load",
        by(("2001-tables-1-2", "2001-2"), ("Timers that only the tick drives", "× 323"))),
    entry(A, "table 3", "other periods, precise timers",
        by(("2001-tables-3-4", "2001-3"), ("a period need not be a multiple", "× 1.55"))),
    entry(A, "table 4", "other periods, timers of the tick",
        by(("2001-tables-3-4", "2001-4"), ("the kernel adds a whole tick", "1 tick"))),
    entry(A, "table 5", "two periods under disk load",
        by(("2001-table-5", "2001-5"), ("shorten the mean delay", "× 36.3"))),
    entry(A, "table 6", "Rhealstone: preemption, messages",
        by(("2001-tables-6-7", "2001-6"), ("cost hardly anything: preemption takes 1.1 µs without them (C), 1.2", "× 1.09"))),
    entry(A, "table 7", "Rhealstone: semaphore, interrupt",
        by(("2001-tables-6-7", "2001-7"), ("a semaphore changes hands more quickly", "× 1.17"))),
    entry(A, "§7", "the cost of a faster tick",
        by(("2001-tick", "2001-tick"), ("Timers of microseconds cost not much", "× 1"))),
    entry(B, "Interrupt Latency, four charts", "the longest stretches with interrupts off, and their modules",
        Made::Command {
            command: "onset windows experiments/ladder-loads.toml --load net --kind irqs_off",
            why: "the ranking of today's kernels, with call stacks and modules; the charts' numbers are not in the text of the paper",
        }),
    entry(B, "Preemption Latency, two charts", "jitter of a task that the RTC wakes at 2 kHz",
        by(("2002-jitter", "2002-jitter"), ("A preemptible kernel answers sooner", "sooner"))),
    entry(B, "System Call Tests", "LMbench: ten system calls",
        by(("2002-costs", "2002-calls"), ("A new program takes much longer", "× 6.03"))),
    entry(B, "Context Switch Test", "LMbench: seven context switches",
        by(("2002-costs", "2002-switches"), ("A switch to a process with data", "× 6.67"))),
    entry(B, "Scheduler", "a scheduler whose cost does not depend on the number of tasks",
        by(("2002-scheduler", "2002-scheduler"), ("for SCHED_FIFO", "× 1"))),
    entry(C, "tables 2.1 to 2.6", "operating systems compared", OTHERS),
    entry(C, "tables 3.1 to 3.7", "structures of Linux 2.6", DESCRIPTION),
    entry(C, "figures 3.1 to 3.6", "interrupt controller, interrupt's way, run queue", DRAWING),
    entry(C, "figures 4.1 to 4.6", "kernels for real time, kinds of latency", DRAWING),
    entry(C, "§4.3.3", "the O(1) scheduler",
        by(("2002-scheduler", "2002-scheduler"), ("for SCHED_OTHER", "× 1"))),
    entry(C, "figures 4.7 to 4.8", "realfeel: an RTC at 2 kHz, vanilla and preempt",
        by(("2006-realfeel", "2006-realfeel"), ("The preemption patch", "× 5.15"))),
    entry(C, "figure 4.9", "the same, low latency",
        by(("2006-realfeel", "2006-realfeel"), ("Points of preemption", "× 179"))),
    entry(C, "figure 4.10", "preempt against low latency",
        by(("2006-realfeel", "2006-realfeel"), ("smaller worst case", "× 34.8"))),
    entry(C, "figure 5.1", "the measuring set-up",
        Made::NoMeasurement("a drawing; onset's own set-ups are in docs/rig.md and docs/wiring.md")),
    entry(C, "figures 5.2 to 5.3", "the program on the host",
        Made::Command { command: "onset live 127.0.0.1:7010 --frequency 1kHz", why: "a picture of a program; onset live is onset's" }),
    entry(C, "figure 5.4", "the interrupt generator's circuit",
        Made::NoMeasurement("a circuit; onset's own generator is in docs/wiring.md")),
    entry(C, "figure 5.5", "frequency and duty cycle of the trigger",
        Made::Command { command: "onset live 127.0.0.1:7010 --frequency 1kHz", why: "a picture of a signal; onset live sets the same two" }),
    entry(C, "figure 5.6", "the driver's flow chart", DRAWING),
    entry(C, "figures 5.7 to 5.8", "live charts of latencies",
        Made::Command { command: "onset live 127.0.0.1:7010 --frequency 1kHz", why: "pictures of a screen, without numbers" }),
    entry(C, "figure 5.9", "the interrupt handler: minimum, maximum, average, count",
        by(("2006-mechanisms-*", "2006-irq"), ("directly related to it", "directly related"))),
    entry(C, "figure 5.10", "a tasklet",
        by(("2006-mechanisms-*", "2006-tasklet"), ("directly related to it", "directly related"))),
    entry(C, "figure 5.11", "a work queue",
        by(("2006-mechanisms-*", "2006-workqueue"), ("directly related to it", "directly related"))),
    entry(C, "figure 5.12", "a task",
        by(("2006-mechanisms-*", "2006-task"), ("directly related to it", "directly related"))),
    entry(D, "figures 1 to 2", "priority inversion, unbounded and bounded",
        by(("2007-inversion", "2007-inversion"), ("Without priority inheritance", "all work"))),
    entry(D, "figures 3 to 4", "time between two clock reads",
        by(("2007-gtod", "2007-gtod"), ("consecutive clock reads", "× 12.2"))),
    entry(D, "figures 5 to 6", "a periodic thread of 5 ms",
        by(("2007-sched", "2007-sched"), ("Without timers of high resolution", "× 120"))),
    entry(D, "figures 7 to 8", "an event for a waiting thread",
        by(("2007-async", "2007-async"), ("vary less", "× 3.18"))),
    entry(E, "figure 1", "a photograph of oscilloscope and board",
        Made::NoMeasurement("a photograph")),
    entry(E, "figure 2", "LMbench: TCP",
        by(("2007-costs", "2007-costs"), ("(figure 2)", "costs most"))),
    entry(E, "figure 3", "LMbench: select on 100 files",
        by(("2007-costs", "2007-costs"), ("(figure 3)", "costs more"))),
    entry(E, "figure 4", "LMbench: page fault",
        by(("2007-costs", "2007-costs"), ("(figure 4)", "costs most"))),
    entry(E, "figure 5", "LMbench: context switch",
        by(("2007-costs", "2007-costs"), ("(figure 5)", "no significant impact"))),
    entry(E, "figure 6", "LMbench: memory read",
        by(("2007-costs", "2007-costs"), ("(figure 6)", "no significant difference"))),
    entry(E, "figure 7", "LMbench: a shell",
        by(("2007-costs", "2007-costs"), ("(figure 7)", "no significant difference"))),
    entry(E, "figure 8", "LMbench: null I/O",
        by(("2007-costs", "2007-costs"), ("(figure 8)", "costs more"))),
    entry(E, "figures 9 to 10", "a pulse each millisecond, PREEMPT_NONE",
        by(("2007-toggle", "2007-toggle"), ("keeps the pulse far better", "× 4"))),
    entry(E, "figures 11 to 12", "the same, PREEMPT",
        by(("2007-toggle", "2007-toggle"), ("CONFIG_PREEMPT alone hardly helps", "× 1"))),
    entry(E, "figures 13 to 21", "the same, PREEMPT_RT",
        by(("2007-toggle", "2007-toggle"), ("keeps the pulse far better", "× 4"))),
    entry(E, "figures 22 to 24", "the same, RTLinux, RTAI, LXRT", CORES),
    entry(E, "figure 25", "the pulse's length by the machine's speed",
        by(("2007-width-*", "2007-width"), ("The faster the processor", "80 µs at 600 MHz"))),
    entry(E, "figure 26", "worst jitter of each kernel",
        by(("2007-toggle", "2007-toggle"), ("keeps the pulse far better", "× 4"))),
];
