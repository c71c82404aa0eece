// SPDX-License-Identifier: GPL-2.0-or-later
//! Every doubt about a run: what was seen, what probably caused it, and what to do next.

use sample::SeriesName;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stats::{Finding, Quantile, Reason, Statistic, Summary};

/// A doubt. In JSON an object with `code`, `symptom`, `cause`, `action` and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
pub enum Warning {
    /// The channel between generator and collector was full.
    ChannelDropped {
        /// Records that were lost.
        records: u64,
    },
    /// The guest's kernel panicked.
    GuestPanicked {
        /// What it wrote.
        text: String,
    },
    /// The guest's kernel reported an oops, a BUG or a failed assertion.
    GuestOops {
        /// What it wrote.
        text: String,
    },
    /// The guest's kernel reported a lockup, a hung task or a stall.
    GuestLockup {
        /// What it wrote.
        text: String,
    },
    /// The guest's kernel killed a process to free memory.
    GuestOutOfMemory {
        /// What it wrote.
        text: String,
    },
    /// The guest's kernel warned of itself (WARN()) and went on.
    GuestWarned {
        /// What it wrote.
        text: String,
    },
    /// The guest did not end by itself after the measurement.
    GuestDidNotEnd {
        /// What was seen instead.
        text: String,
    },
    /// The virtual machine ended before the measurement did.
    MachineDied {
        /// How: exit status and last words.
        text: String,
    },
    /// The machine ran in a QEMU of a version that onset was not tried with.
    QemuUntried {
        /// Which.
        version: String,
    },
    /// Triggers were never answered.
    Unanswered {
        /// By whom.
        responder: SeriesName,
        /// How many.
        triggers: u64,
    },
    /// Triggers were answered together with an older one.
    Superseded {
        /// By whom.
        responder: SeriesName,
        /// How many.
        triggers: u64,
    },
    /// Pin edges without a trigger to answer.
    Spurious {
        /// Whose pin.
        responder: SeriesName,
        /// How many.
        edges: u64,
    },
    /// Answers with an impossible time.
    Tainted {
        /// Whose.
        responder: SeriesName,
        /// How many.
        edges: u64,
    },
    /// A probe could not measure some of its periods.
    Overrun {
        /// By which method.
        responder: SeriesName,
        /// How many.
        periods: u64,
    },
    /// The load's own counter did not move while measuring.
    LoadDidNoWork {
        /// Which counter.
        counter: String,
    },
    /// The run was interrupted.
    Interrupted,
    /// onset was killed while it measured; a later command made the bundle of what there was.
    Killed,
    /// The measurement failed; the bundle holds what there was before.
    Failed {
        /// Why.
        text: String,
    },
    /// Too few samples for a quantile that is limited.
    TooFewSamples {
        /// Whose.
        responder: SeriesName,
        /// Which, as in `p99.9`.
        quantile: String,
        /// How many there were.
        count: u64,
    },
    /// A maximum was found to keep its limit on few samples.
    MaximumOfFew {
        /// Whose.
        responder: SeriesName,
        /// How many there were.
        count: u64,
    },
    /// The kernel does not have this mechanism.
    ResponderMissing {
        /// Which.
        responder: SeriesName,
        /// The kernel's release.
        release: String,
    },
    /// A probe wanted something that it did not get, and went on without.
    #[serde(untagged)]
    Probe(probes::Doubt),
    /// The machine contradicts what was asked, or makes the numbers doubtful.
    #[serde(untagged)]
    Validity(probes::validity::Doubt),
}

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

/// The texts are derived, so those in the file are passed over.
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
            Self::TooFewSamples { .. } => "too_few_samples",
            Self::MaximumOfFew { .. } => "maximum_of_few",
            Self::ResponderMissing { .. } => "responder_missing",
            Self::Probe(doubt) => doubt.code(),
            Self::Validity(doubt) => doubt.code(),
        }
    }

    /// Whether the run was unsound, so that its numbers mean nothing.
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
            // Losses are weighed by the verdict itself; the rest does not touch the numbers.
            Self::GuestWarned { .. }
            | Self::QemuUntried { .. }
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

    /// Whether the run ended before its time, so that its bundle holds only what there was.
    pub const fn cuts_short(&self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::Killed | Self::MachineDied { .. } | Self::Failed { .. }
        )
    }

    /// What was seen, with its numbers.
    pub fn symptom(&self) -> String {
        match self {
            Self::ChannelDropped { records } => format!("{records} records were dropped"),
            Self::GuestPanicked { text } => format!("the guest's kernel panicked: {text}"),
            Self::GuestOops { text } => format!("the guest's kernel reported a fault: {text}"),
            Self::GuestLockup { text } => format!("the guest's kernel reported a stall: {text}"),
            Self::GuestOutOfMemory { text } => format!("the guest ran out of memory: {text}"),
            Self::GuestWarned { text } => format!("the guest's kernel warned: {text}"),
            Self::GuestDidNotEnd { text } => {
                format!("the guest did not end properly after the measurement: {text}")
            }
            Self::MachineDied { text } => format!("the machine ended early: {text}"),
            Self::QemuUntried { version } => {
                format!("the machine ran in QEMU {version}, with which onset was not tried")
            }
            Self::Unanswered { responder, triggers } => {
                format!("{responder} never answered {triggers} triggers")
            }
            Self::Superseded { responder, triggers } => {
                format!("{responder} answered {triggers} triggers together with an older one")
            }
            Self::Spurious { responder, edges } => {
                format!("{edges} edges of {responder} without a trigger")
            }
            Self::Tainted { responder, edges } => {
                format!("{edges} answers of {responder} with an impossible time")
            }
            Self::Overrun { responder, periods } => {
                format!("{responder} let {periods} periods pass without measuring them")
            }
            Self::LoadDidNoWork { counter } => format!("the load's counter {counter} stood still"),
            Self::Interrupted => "the run was interrupted".to_owned(),
            Self::Killed => "onset was killed during the run".to_owned(),
            Self::Failed { text } => format!("the measurement failed: {text}"),
            Self::MaximumOfFew { responder, count } => {
                format!("the maximum of {responder} was judged on {count} samples")
            }
            Self::TooFewSamples { responder, quantile, count } => {
                format!("{count} samples of {responder} do not support its limit on {quantile}")
            }
            Self::ResponderMissing { responder, release } => {
                format!("Linux {release} has no {responder}")
            }
            Self::Probe(doubt) => doubt.symptom(),
            Self::Validity(doubt) => doubt.symptom(),
        }
    }

    /// What probably caused it.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::ChannelDropped { .. } => {
                "onset was stopped (Ctrl-Z), or its disk or processor was kept from it for seconds"
            }
            Self::GuestPanicked { .. } | Self::GuestOops { .. } => {
                "a defect in the kernel or in a module, or too little memory"
            }
            Self::GuestLockup { .. } => "triggers or load left no time for anything else",
            Self::GuestOutOfMemory { .. } => "the load needs more memory than the guest has",
            Self::GuestWarned { .. } => "a defect in the kernel or in a module",
            Self::GuestDidNotEnd { .. } => "the guest hangs, or the load cannot be stopped",
            Self::MachineDied { .. } => "QEMU was killed, or gave up",
            Self::QemuUntried { .. } => {
                "it passed the plugin's own checks, which do not see everything that the plugin relies on"
            }
            Self::Unanswered { .. } => "the responder starved, or the run ended before its answer",
            Self::Superseded { .. } => "the responder was delayed by more than one period",
            Self::Spurious { .. } => {
                "triggers so close that one was raised during the answer to another"
            }
            Self::Tainted { .. } => "records out of order: the trigger or the edge is misplaced",
            Self::Overrun { .. } => {
                "the probe was kept from the processor between two measurements"
            }
            Self::LoadDidNoWork { .. } => {
                "the run was too short for it, or the load failed to start"
            }
            Self::Interrupted => "Ctrl-C or a signal",
            Self::Killed => "SIGKILL, too little memory on the machine, or the machine went down",
            Self::Failed { .. } => "something outside onset, as its message says",
            Self::TooFewSamples { .. } => "the experiment's count of triggers is too small for it",
            Self::MaximumOfFew { .. } => {
                "the run is short: of what makes fewer than one answer in so many late it knows nothing"
            }
            Self::ResponderMissing { .. } => "the mechanism came with a later kernel",
            Self::Probe(doubt) => doubt.cause(),
            Self::Validity(doubt) => doubt.cause(),
        }
    }

    /// What to do next.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::ChannelDropped { .. } => "repeat with less other work on the machine",
            Self::GuestPanicked { .. } | Self::GuestOops { .. } => {
                "read console.txt in the bundle; repeat with another kernel or without extra modules"
            }
            Self::GuestLockup { .. } => "lengthen the period or choose a lighter load",
            Self::GuestOutOfMemory { .. } => "raise guest.memory",
            Self::GuestWarned { .. } => {
                "distrust the worst samples: printing the warning took time"
            }
            Self::GuestDidNotEnd { .. } => "read console.txt in the bundle; repeat under load idle",
            Self::MachineDied { .. } => "look for the reason in its last words and repeat",
            Self::QemuUntried { .. } => {
                "run it twice: the samples have to be the same; or take a version of the table in docs/rig.md \
                 (ONSET_QEMU)"
            }
            Self::Unanswered { .. } => "lengthen the period, or trigger.grace",
            Self::Superseded { .. } => {
                "where no answer is spurious the maximum holds; for quantiles that count every trigger \
                 lengthen the period"
            }
            Self::Spurious { .. } => {
                "add hardirq to the responders, whose edges tell triggers apart; lengthen the period"
            }
            Self::Tainted { .. } => "report it with this bundle: it is a defect of onset",
            Self::Overrun { .. } => "lengthen the period, or give the probe a higher priority",
            Self::LoadDidNoWork { .. } => {
                "raise count; read console.txt in the bundle for what the load wrote"
            }
            Self::Interrupted | Self::Killed => "repeat it for a verdict",
            Self::Failed { .. } => "mend what the message says, and repeat it for a verdict",
            Self::TooFewSamples { .. } => "raise count, or limit a lower quantile",
            Self::MaximumOfFew { .. } => {
                "raise count before the pass is relied on; onset hunt looks for the worst instead of waiting for it"
            }
            Self::ResponderMissing { .. } => {
                "to compare with a kernel that has it, take it out of responders for both: whoever answers makes those \
                 after it later"
            }
            Self::Probe(doubt) => doubt.action(),
            Self::Validity(doubt) => doubt.action(),
        }
    }

    /// The doubts that follow from what a summary lost, in the order of its losses. Dropped records
    /// belong to the run ([`Warning::ChannelDropped`]) and are not repeated for each responder.
    pub fn of_losses(summary: &Summary) -> Vec<Warning> {
        let losses = &summary.losses;
        let responder = || summary.responder.clone();
        let mut warnings = Vec::new();
        if losses.unanswered > 0 {
            warnings
                .push(Warning::Unanswered { responder: responder(), triggers: losses.unanswered });
        }
        if losses.superseded > 0 {
            warnings
                .push(Warning::Superseded { responder: responder(), triggers: losses.superseded });
        }
        if losses.spurious > 0 {
            warnings.push(Warning::Spurious { responder: responder(), edges: losses.spurious });
        }
        if losses.tainted > 0 {
            warnings.push(Warning::Tainted { responder: responder(), edges: losses.tainted });
        }
        if losses.overrun > 0 {
            warnings.push(Warning::Overrun { responder: responder(), periods: losses.overrun });
        }
        warnings
    }

    /// The doubt that a finding raises: too few samples for a limited quantile, or few for a maximum that kept its limit,
    /// which are those that do not support p99.9.
    pub fn of_finding(finding: &Finding, summaries: &[Summary]) -> Option<Warning> {
        let responder = finding.responder.clone();
        let count = summaries.iter().find(|s| s.responder == responder)?.count;
        match (finding.statistic, finding.reason) {
            (Statistic::Quantile(quantile), Reason::TooFewSamples) => {
                let quantile = quantile.name().to_owned();
                Some(Warning::TooFewSamples { responder, quantile, count })
            }
            (Statistic::Max, Reason::Within) if !Quantile::P999.supported_by(count) => {
                Some(Warning::MaximumOfFew { responder, count })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Conclusion;
    use crate::bundle::tests::manifest_of;
    use sample::Nanos;
    use stats::Limit;

    #[test]
    fn a_maximum_that_kept_its_limit_is_doubted_where_few_samples_were_made_and_a_failed_one_is_not()
     {
        let mut series = manifest_of("6.12", &["task"]).series;
        let mut codes = |count: u64, bound: Nanos| -> Vec<&'static str> {
            series[0].count = count;
            let limit =
                Limit { responder: series[0].responder.clone(), statistic: Statistic::Max, bound };
            let conclusion = Conclusion::of(&series, vec![limit], Vec::new());
            conclusion.warnings.iter().map(Warning::code).collect()
        };
        let high = Nanos::from_millis(1);
        assert_eq!(codes(999, high), ["maximum_of_few"]);
        assert!(codes(1_000, high).is_empty());
        assert!(codes(10, Nanos(1)).is_empty());
    }
}
