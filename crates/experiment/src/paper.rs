// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables and figures of the papers that experiments make again; the report shows them in the papers' layout.

/// A table or figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Heursch, Rzehak: Rapid Reaction Linux (2001), tables 1 and 2.
    Delay2001,
    /// The same, tables 3 and 4.
    Periods2001,
    /// The same, table 5.
    Disk2001,
    /// The same, tables 6 and 7.
    Rhealstone2001,
    /// The same, §7: what the tick costs.
    Tick2001,
    /// Morgan: Real-Time in Linux (2002), LMbench.
    Costs2002,
    /// The same, preemption latency.
    Jitter2002,
    /// The same, the scheduler of fixed cost; and Çayır: Unintrusively Linux Kernel Real-Time Performance Measurement
    /// (2006), §4.3.3.
    Scheduler2002,
    /// The same (2006), figures 4.7 to 4.10.
    Realfeel2006,
    /// The same (2006), figures 5.9 to 5.12.
    Mechanisms2006,
    /// Rostedt, Hart: Internals of the RT Patch (2007), figures 3 and 4.
    Gtod2007,
    /// The same, figures 5 and 6.
    Sched2007,
    /// The same, figures 7 and 8.
    Async2007,
    /// The same, figures 1 and 2.
    Inversion2007,
    /// Arthur, Emde, Mc Guire: Assessment of the Realtime Preemption Patches (2007), figures 9 to 26.
    Toggle2007,
    /// The same, figure 25.
    Width2007,
    /// The same, figures 2 to 8.
    Costs2007,
}

impl Paper {
    /// All of them, in the order of their papers.
    pub const ALL: [Paper; 17] = [
        Paper::Delay2001,
        Paper::Periods2001,
        Paper::Disk2001,
        Paper::Rhealstone2001,
        Paper::Tick2001,
        Paper::Costs2002,
        Paper::Jitter2002,
        Paper::Scheduler2002,
        Paper::Realfeel2006,
        Paper::Mechanisms2006,
        Paper::Gtod2007,
        Paper::Sched2007,
        Paper::Async2007,
        Paper::Inversion2007,
        Paper::Toggle2007,
        Paper::Width2007,
        Paper::Costs2007,
    ];

    /// The word in experiments and bundles.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Delay2001 => "2001-delay",
            Paper::Periods2001 => "2001-periods",
            Paper::Disk2001 => "2001-disk",
            Paper::Rhealstone2001 => "2001-rhealstone",
            Paper::Tick2001 => "2001-tick",
            Paper::Costs2002 => "2002-costs",
            Paper::Jitter2002 => "2002-jitter",
            Paper::Scheduler2002 => "2002-scheduler",
            Paper::Realfeel2006 => "2006-realfeel",
            Paper::Mechanisms2006 => "2006-mechanisms",
            Paper::Gtod2007 => "2007-gtod",
            Paper::Sched2007 => "2007-sched",
            Paper::Async2007 => "2007-async",
            Paper::Inversion2007 => "2007-inversion",
            Paper::Toggle2007 => "2007-toggle",
            Paper::Width2007 => "2007-width",
            Paper::Costs2007 => "2007-costs",
        }
    }
}
