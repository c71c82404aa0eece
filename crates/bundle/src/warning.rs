// SPDX-License-Identifier: GPL-2.0-or-later
//! The warnings: every doubt about a run. A warning says what onset saw (the symptom), the probable cause, and what to
//! do next (the action).

use sample::SeriesName;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A doubt about a run. In JSON it is an object with `code`, `symptom`, `cause`, `action` and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = schema::complete))]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
pub enum Warning {
    /// Records were lost between what measures and the collector. Invalidates.
    ChannelDropped {
        /// Records that were lost.
        records: u64,
    },
    /// The guest's kernel panicked. Invalidates.
    GuestPanicked {
        /// What the kernel wrote.
        text: String,
    },
    /// The guest's kernel reported an oops, a BUG or a failed assertion. Invalidates.
    GuestOops {
        /// What the kernel wrote.
        text: String,
    },
    /// The guest's kernel reported a lockup, a hung task or a stall. Invalidates.
    GuestLockup {
        /// What the kernel wrote.
        text: String,
    },
    /// The guest's kernel killed a process to free memory. Invalidates.
    GuestOutOfMemory {
        /// What the kernel wrote.
        text: String,
    },
    /// The guest's kernel warned of itself (WARN()) and went on.
    GuestWarned {
        /// What the kernel wrote.
        text: String,
    },
    /// The guest did not end by itself after the measurement. Invalidates.
    GuestDidNotEnd {
        /// What onset saw instead.
        text: String,
    },
    /// The virtual machine ended before the measurement did. Invalidates.
    MachineDied {
        /// How it ended: the exit status and the last lines of output.
        text: String,
    },
    /// The machine ran in a version of QEMU with which onset was not tried.
    QemuUntried {
        /// Its name or version.
        version: String,
    },
    /// Triggers were never answered.
    Unanswered {
        /// The responder.
        responder: SeriesName,
        /// The number of them.
        triggers: u64,
    },
    /// Triggers were answered together with an older one.
    Superseded {
        /// The responder.
        responder: SeriesName,
        /// The number of them.
        triggers: u64,
    },
    /// Pin edges without a trigger to answer.
    Spurious {
        /// The responder of the pin.
        responder: SeriesName,
        /// The number of them.
        edges: u64,
    },
    /// Answers with an impossible time.
    Tainted {
        /// The series.
        responder: SeriesName,
        /// The number of them.
        edges: u64,
    },
    /// A probe could not measure some of its periods.
    Overrun {
        /// The method.
        responder: SeriesName,
        /// The number of them.
        periods: u64,
    },
    /// The load's own counter did not move while measuring. Invalidates.
    LoadDidNoWork {
        /// The counter.
        counter: String,
    },
    /// The run was interrupted. Invalidates.
    Interrupted,
    /// onset was killed while it measured, and a later command made the bundle from the samples until then.
    /// Invalidates.
    Killed,
    /// The measurement failed, and the bundle holds the samples until then. Invalidates.
    Failed {
        /// Why.
        text: String,
    },
    /// Another program measured, and onset imported its results.
    Imported {
        /// The program, and what onset knows of the measurement.
        text: String,
    },
    /// A generator of triggers on a line measured; it says what it calls itself, and not what answers.
    FromOutside {
        /// The name of the generator.
        name: String,
    },
    /// The clock of a generator and that of this machine go differently.
    GeneratorClock {
        /// By how much the generator's clock gains, in parts of 10⁹.
        gain_ppb: i64,
        /// How far the true rate is from that at most.
        uncertainty_ppb: u64,
    },
    /// There are too few samples for a quantile that has a limit.
    TooFewSamples {
        /// The series.
        responder: SeriesName,
        /// The quantile, as in `p99.9`.
        quantile: String,
        /// The number of samples.
        count: u64,
    },
    /// A maximum kept its limit, or a deadline was missed no more often than it may be, but on few samples.
    MaximumOfFew {
        /// The series.
        responder: SeriesName,
        /// The number of samples.
        count: u64,
    },
    /// The kernel does not have this mechanism.
    ResponderMissing {
        /// Its name or version.
        responder: SeriesName,
        /// The kernel's release.
        release: String,
    },
    /// A probe did not get something that it wanted, and went on without it.
    #[serde(untagged)]
    Probe(probes::Doubt),
    /// The machine does not do what the experiment asks for, or makes the numbers doubtful.
    #[serde(untagged)]
    Validity(probes::validity::Doubt),
}

mod numbers;
#[cfg(feature = "schema")]
mod schema;

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            #[serde(flatten, serialize_with = "Warning::serialize")]
            warning: &'a Warning,
            symptom: String,
            cause: &'static str,
            action: &'static str,
        }
        let (cause, action) = (self.cause(), self.action());
        let shown = Shown { warning: self, symptom: self.symptom(), cause, action };
        Serialize::serialize(&shown, serializer)
    }
}

/// The texts follow from the other fields, so the texts in the file are ignored.
impl<'de> Deserialize<'de> for Warning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Warning::deserialize(deserializer)
    }
}

impl Warning {
    /// The word that names the kind in files and JSON.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ChannelDropped { .. } => "channel_dropped",
            Self::GuestPanicked { .. } => "guest_panicked",
            Self::GuestOops { .. } => "guest_oops",
            Self::GuestLockup { .. } => "guest_lockup",
            Self::GuestOutOfMemory { .. } => "guest_out_of_memory",
            Self::GuestWarned { .. } => "guest_warned",
            Self::GuestDidNotEnd { .. } => "guest_did_not_end",
            Self::MachineDied { .. } => "machine_died",
            Self::QemuUntried { .. } => "qemu_untried",
            Self::Unanswered { .. } => "unanswered",
            Self::Superseded { .. } => "superseded",
            Self::Spurious { .. } => "spurious",
            Self::Tainted { .. } => "tainted",
            Self::Overrun { .. } => "overrun",
            Self::LoadDidNoWork { .. } => "load_did_no_work",
            Self::Interrupted => "interrupted",
            Self::Killed => "killed",
            Self::Failed { .. } => "failed",
            Self::Imported { .. } => "imported",
            Self::FromOutside { .. } => "from_outside",
            Self::GeneratorClock { .. } => "generator_clock",
            Self::TooFewSamples { .. } => "too_few_samples",
            Self::MaximumOfFew { .. } => "maximum_of_few",
            Self::ResponderMissing { .. } => "responder_missing",
            Self::Probe(doubt) => doubt.code(),
            Self::Validity(doubt) => doubt.code(),
        }
    }

    /// Whether this warning makes the run invalid, so that its numbers mean nothing.
    pub const fn invalidates(&self) -> bool {
        match self {
            Self::GuestPanicked { .. }
            | Self::GuestOops { .. }
            | Self::GuestLockup { .. }
            | Self::GuestOutOfMemory { .. }
            | Self::GuestDidNotEnd { .. }
            | Self::MachineDied { .. }
            | Self::LoadDidNoWork { .. }
            | Self::ChannelDropped { .. }
            | Self::Interrupted
            | Self::Killed
            | Self::Failed { .. } => true,
            // The verdict itself weighs losses. The other warnings do not touch the numbers.
            Self::GuestWarned { .. }
            | Self::QemuUntried { .. }
            | Self::Imported { .. }
            | Self::FromOutside { .. }
            | Self::GeneratorClock { .. }
            | Self::Unanswered { .. }
            | Self::Superseded { .. }
            | Self::Spurious { .. }
            | Self::Tainted { .. }
            | Self::Overrun { .. }
            | Self::TooFewSamples { .. }
            | Self::MaximumOfFew { .. }
            | Self::ResponderMissing { .. } => false,
            Self::Probe(doubt) => doubt.invalidates(),
            Self::Validity(doubt) => doubt.invalidates(),
        }
    }

    /// Whether the run ended early, so that its bundle holds only the samples until then.
    pub const fn cuts_short(&self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::Killed | Self::MachineDied { .. } | Self::Failed { .. }
        )
    }

    /// The symptom: what onset saw, with numbers.
    pub fn symptom(&self) -> String {
        match self {
            Self::ChannelDropped { records } => {
                format!("at least {records} records were lost on their way to the collector")
            }
            Self::GuestPanicked { text } => format!("the guest's kernel panicked: {text}"),
            Self::GuestOops { text } => format!("the guest's kernel reported a fault: {text}"),
            Self::GuestLockup { text } => format!("the guest's kernel reported a stall: {text}"),
            Self::GuestOutOfMemory { text } => format!("the guest ran out of memory: {text}"),
            Self::GuestWarned { text } => format!("the guest's kernel warned: {text}"),
            Self::GuestDidNotEnd { text } => {
                format!("the guest did not end properly after the measurement: {text}")
            }
            Self::MachineDied { text } => format!("the virtual machine ended early: {text}"),
            Self::QemuUntried { version } => {
                format!("the virtual machine ran in QEMU {version}, with which onset was not tried")
            }
            Self::Unanswered { responder, triggers } => {
                format!("{responder} never answered {triggers} triggers")
            }
            Self::Superseded { responder, triggers } => {
                format!("{responder} answered {triggers} triggers together with an older one")
            }
            Self::Spurious { responder, edges } => {
                format!("{responder} made {edges} edges without a trigger to answer")
            }
            Self::Tainted { responder, edges } => {
                format!("{edges} answers of {responder} have an impossible time")
            }
            Self::Overrun { responder, periods } => {
                format!("{responder} let {periods} periods pass without measuring them")
            }
            Self::LoadDidNoWork { counter } => format!(
                "the load did no work while measuring: its counter {counter} did not change"
            ),
            Self::Interrupted => "the run was interrupted".to_owned(),
            Self::Killed => "onset was killed during the run".to_owned(),
            Self::Failed { text } => format!("the measurement failed: {text}"),
            Self::Imported { text } => format!("these are imported results {text}"),
            Self::FromOutside { name } => {
                format!("a generator on a line measured this, which calls itself {name:?}")
            }
            Self::GeneratorClock { gain_ppb, uncertainty_ppb: off } => format!(
                "the generator's clock gains {} ± {} ppm on that of this machine",
                gain_ppb / 1_000,
                off.div_ceil(1_000)
            ),
            Self::MaximumOfFew { responder, count } => {
                format!("{responder} keeps its limit, but has only {count} samples")
            }
            Self::TooFewSamples { responder, quantile, count } => {
                format!("{responder} has only {count} samples, too few for its limit on {quantile}")
            }
            Self::ResponderMissing { responder, release } => {
                format!("Linux {release} does not have the responder {responder}")
            }
            Self::Probe(doubt) => doubt.symptom(),
            Self::Validity(doubt) => doubt.symptom(),
        }
    }

    /// The probable cause.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::ChannelDropped { .. } => {
                "onset or the program that measures was stopped (Ctrl-Z), or got no disk or no processor for too long"
            }
            Self::GuestPanicked { .. } | Self::GuestOops { .. } => {
                "the kernel or a module has a defect, or the guest has too little memory"
            }
            Self::GuestLockup { .. } => "triggers or the load left no time for other work",
            Self::GuestOutOfMemory { .. } => "the load needs more memory than the guest has",
            Self::GuestWarned { .. } => "the kernel or a module has a defect",
            Self::GuestDidNotEnd { .. } => "the guest hangs, or the load does not stop",
            Self::MachineDied { .. } => "QEMU was killed, or failed",
            Self::QemuUntried { .. } => {
                "this QEMU passed the plugin's own checks, but these checks do not cover everything on which the plugin relies"
            }
            Self::Unanswered { .. } => {
                "the responder did not get the processor, or the run ended before its answer"
            }
            Self::Superseded { .. } => "the responder was late by more than one period",
            Self::Spurious { .. } => {
                "triggers are so close together that one came during the answer to another"
            }
            Self::Tainted { .. } => {
                "records are in the wrong order: a trigger or an edge is misplaced; of a cost, an interrupt made what is taken away longer than what counts"
            }
            Self::Overrun { .. } => "the probe did not get the processor between two measurements",
            Self::LoadDidNoWork { .. } => {
                "the run was too short for the load to count anything, or the load failed to start"
            }
            Self::Interrupted => "the user pressed Ctrl-C, or a signal ended onset",
            Self::Killed => {
                "somebody sent SIGKILL, the machine had too little memory, or the machine went down"
            }
            Self::Failed { .. } => "something outside of onset failed, as the message says",
            Self::Imported { .. } => {
                "the file says how many loops had which latency; it does not say when each loop was, nor what the machine did meanwhile"
            }
            Self::FromOutside { .. } => {
                "a generator sees the edges of the machine that answers, and nothing else of it: kernel, load and settings are unknown here"
            }
            Self::GeneratorClock { .. } => {
                "one of them is further off than the crystals of boards (30 ppm) and computers (50 ppm) are; or the way to the generator became slower all the time"
            }
            Self::TooFewSamples { .. } => {
                "the count in the experiment is too small for this quantile"
            }
            Self::MaximumOfFew { .. } => {
                "the run is short: it cannot show what makes an answer late more rarely than once in so many answers"
            }
            Self::ResponderMissing { .. } => "a later kernel introduced this mechanism",
            Self::Probe(doubt) => doubt.cause(),
            Self::Validity(doubt) => doubt.cause(),
        }
    }

    /// What to do next.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::ChannelDropped { .. } => "repeat the run with less other work on the machine",
            Self::GuestPanicked { .. } | Self::GuestOops { .. } => {
                "read console.txt in the bundle; repeat the run with another kernel or without extra modules"
            }
            Self::GuestLockup { .. } => "lengthen the period or choose a lighter load",
            Self::GuestOutOfMemory { .. } => "raise guest.memory",
            Self::GuestWarned { .. } => {
                "do not trust the longest latencies: the kernel took time to print its warning"
            }
            Self::GuestDidNotEnd { .. } => {
                "read console.txt in the bundle; repeat the run under load idle"
            }
            Self::MachineDied { .. } => {
                "look for the reason in the last lines that the machine printed, and repeat the run"
            }
            Self::QemuUntried { .. } => {
                "run the experiment twice: both runs must have the same samples; or use a version of QEMU that the table in \
                 docs/rig.md names (ONSET_QEMU)"
            }
            Self::Unanswered { .. } => "lengthen the period, or trigger.grace",
            Self::Superseded { .. } => {
                "if no answer is spurious, the maximum is valid; lengthen the period if quantiles have to count every trigger"
            }
            Self::Spurious { .. } => {
                "add hardirq to the responders, since its edges show which trigger is which; or lengthen the period"
            }
            Self::Tainted { .. } => {
                "measure a cost with more batches (count); please report anything else with the bundle: it is a defect of onset"
            }
            Self::Overrun { .. } => "lengthen the period, or give the probe a higher priority",
            Self::LoadDidNoWork { .. } => {
                "raise count; read the output of the load in console.txt in the bundle"
            }
            Self::Interrupted | Self::Killed => "repeat the run to get a verdict",
            Self::Failed { .. } => {
                "repair what the message names, and repeat the run to get a verdict"
            }
            Self::Imported { .. } => "measure with onset measure cyclictest to learn more",
            Self::FromOutside { .. } => {
                "keep beside this run what the machine runs, and compare only with runs of the same machine"
            }
            Self::GeneratorClock { .. } => {
                "have NTP set this machine's clock and look again; each latency is wrong by this share of itself: at 1000 ppm by 0.1 %"
            }
            Self::TooFewSamples { .. } => "raise count, or set a limit on a lower quantile",
            Self::MaximumOfFew { .. } => {
                "raise count before you rely on this pass; or search for the longest latency with onset hunt, instead of waiting for it"
            }
            Self::ResponderMissing { .. } => {
                "before you compare with a kernel that has this responder, remove it from responders for both kernels: each \
                 responder that answers makes the responders after it later"
            }
            Self::Probe(doubt) => doubt.action(),
            Self::Validity(doubt) => doubt.action(),
        }
    }
}
