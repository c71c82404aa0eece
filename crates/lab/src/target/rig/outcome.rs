// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns a guest's outcome into facts about a cell: its context, how accurate a probe was, and every doubt.

use crate::edges::{self, Seen};
use crate::truth;
use ::rig::{Ending, Fault, Outcome};
use bundle::{Truth, Warning};
use experiment::{Cell, Flavour, Instrument, Load};
use probes::context::{hz, keys};
use probes::{Doubt, validity};
use sample::{Monotonic, Nanos, Observation, Sample, Stamp};
use std::collections::BTreeMap;

/// The guest's context. Where the guest could not say something because it has no `/boot`, the kernel's package says
/// it.
pub(super) fn context(kernel: &::rig::Kernel, outcome: &Outcome) -> BTreeMap<String, String> {
    let mut context = outcome.context.clone();
    if !context.contains_key(keys::HZ) {
        let hz = kernel.configuration().as_deref().and_then(hz);
        context.extend(hz.map(|hz| (keys::HZ.to_owned(), hz.to_string())));
    }
    context
}

/// How accurate a probe's samples are, by what the witness saw.
pub(super) fn truth(cell: Cell, samples: &[Sample], outcome: &Outcome) -> Vec<Truth> {
    let Instrument::Probe(plan) = cell.instrument else { return Vec::new() };
    truth::judge(plan, &cell.instrument.series(), samples, origin(outcome), &outcome.witness)
}

/// The length of the pulses that the port sees, if the instrument makes pulses.
pub(super) fn width(cell: Cell) -> Option<Nanos> {
    match cell.instrument {
        Instrument::Probe(plan) => edges::width(&plan.probe),
        Instrument::Generator(_) => None,
    }
}

/// The pulses as the port saw them.
pub(super) fn seen(cell: Cell, width: Nanos, reported: &[Observation], outcome: &Outcome) -> Seen {
    edges::judge(&cell.instrument.series(), width, reported, origin(outcome), &outcome.witness)
}

/// The instant from which a probe's times count, by the guest's clock. Absent if the probe did not say.
fn origin(outcome: &Outcome) -> Option<Stamp<Monotonic>> {
    let counters = &outcome.report.as_ref()?.counters;
    counters.get("origin_ns").map(|ns| Stamp::from_ns(*ns))
}

/// Every doubt that the rig's outcome raises.
pub(super) fn doubts(qemu: &str, outcome: &Outcome, flavour: &Flavour, load: Load) -> Vec<Warning> {
    let refused = validity::boot(&flavour.parameters, &outcome.context.clone().into());
    let mut warnings: Vec<Warning> = refused.into_iter().map(Warning::Validity).collect();
    if !::rig::is_tried(qemu) {
        warnings.push(Warning::QemuUntried { version: qemu.to_owned() });
    }
    match &outcome.ending {
        Ending::Whole => {}
        Ending::Died(why) | Ending::Failed(why) => {
            warnings.push(Warning::MachineDied { text: why.clone() })
        }
        Ending::Interrupted => warnings.push(Warning::Interrupted),
    }
    warnings.extend(outcome.faults.iter().map(|fault| match fault.clone() {
        Fault::Panic(text) => Warning::GuestPanicked { text },
        Fault::Oops(text) => Warning::GuestOops { text },
        Fault::Lockup(text) => Warning::GuestLockup { text },
        Fault::OutOfMemory(text) => Warning::GuestOutOfMemory { text },
        Fault::Warning(text) => Warning::GuestWarned { text },
    }));
    // The guest's counter is made of virtual time, whatever the processor model says of it.
    let said = outcome.report.iter().flat_map(|report| &report.doubts);
    let said = said.filter(|doubt| **doubt != Doubt::TscNotInvariant);
    warnings.extend(said.cloned().map(Warning::Probe));
    if outcome.dropped > 0 {
        warnings.push(Warning::ChannelDropped { records: outcome.dropped });
    }
    if outcome.ending == Ending::Whole {
        if let Err(text) = outcome.guest_ended.clone() {
            warnings.push(Warning::GuestDidNotEnd { text });
        }
        let still = |c: &&str| outcome.counters.get(*c).is_none_or(|n| *n == 0);
        let idle = load.counters().into_iter().filter(still);
        warnings.extend(idle.map(|counter| Warning::LoadDidNoWork { counter: counter.into() }));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            ending: Ending::Whole,
            dropped: 0,
            report: None,
            worked: None,
            witness: ::rig::Witness::default(),
            context: BTreeMap::new(),
            counters: BTreeMap::new(),
            faults: Vec::new(),
            console: String::new(),
            restored_at: 0,
            guest_ended: Ok(()),
            snapshot: "key".into(),
            first_answer: None,
        }
    }

    fn codes(outcome: &Outcome, load: Load) -> Vec<&'static str> {
        let flavour = flavour("6.12");
        doubts("10.0.2 (Debian)", outcome, &flavour, load).iter().map(Warning::code).collect()
    }

    fn flavour(text: &str) -> Flavour {
        text.parse().expect("a flavour")
    }

    #[test]
    fn a_sound_idle_run_raises_no_doubt() {
        assert!(codes(&outcome(), Load::Idle).is_empty());
    }

    #[test]
    fn a_qemu_that_onset_was_not_tried_with_is_doubted_by_name_and_the_run_stands() {
        let warnings = doubts("11.0.2 (Ubuntu)", &outcome(), &flavour("6.12"), Load::Idle);
        let version = "11.0.2 (Ubuntu)".to_owned();
        assert_eq!(warnings, [Warning::QemuUntried { version }]);
        assert!(!warnings[0].invalidates());
        assert!(doubts("11.1.3 (Debian)", &outcome(), &flavour("6.12"), Load::Idle).is_empty());
    }

    #[test]
    fn a_load_whose_counters_stand_still_is_doubted() {
        let mut o = outcome();
        o.counters = BTreeMap::from([("disk.dd".into(), 3), ("disk.sync".into(), 0)]);
        assert_eq!(codes(&o, Load::Disk), ["load_did_no_work"]);
    }

    #[test]
    fn what_a_probe_doubts_is_doubted_but_for_the_counter_that_virtual_time_drives() {
        let mut o = outcome();
        let doubts = vec![Doubt::TscNotInvariant, Doubt::PageFaults { faults: 1 }];
        o.report = Some(probes::Report { counters: BTreeMap::new(), doubts });
        assert_eq!(codes(&o, Load::Idle), ["page_faults"]);
    }

    #[test]
    fn a_guest_that_does_not_run_what_its_flavour_says_makes_the_run_unsound_with_a_remedy() {
        let mut o = outcome();
        let said = [(keys::PREEMPTION_MODE, "voluntary"), (keys::BOOT_WORDS_UNKNOWN, "nosuch")];
        o.context = said.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let warnings =
            doubts("10.0.2 (Debian)", &o, &flavour("6.12 preempt=fulll nosuch"), Load::Idle);
        let codes: Vec<&str> = warnings.iter().map(Warning::code).collect();
        assert_eq!(codes, ["preemption_differs", "boot_words_refused"]);
        assert!(warnings.iter().all(Warning::invalidates));
        assert!(warnings[0].symptom().contains("the flavour asks for preempt=fulll"));
        assert!(warnings[0].action().contains("ask for a mode that the kernel accepts"));
    }

    #[test]
    fn a_guest_that_panics_makes_the_run_unsound_with_its_text() {
        let mut o = outcome();
        o.faults = vec![Fault::Panic("Kernel panic - not syncing".into())];
        let warnings = doubts("10.0.2 (Debian)", &o, &flavour("6.12"), Load::Idle);
        assert!(warnings[0].invalidates());
        assert!(warnings[0].symptom().contains("not syncing"));
    }

    #[test]
    fn an_early_end_is_not_also_a_guest_that_did_not_end() {
        let mut o = outcome();
        (o.ending, o.guest_ended) = (Ending::Died("killed".into()), Err("killed".into()));
        assert_eq!(codes(&o, Load::Mixed), ["machine_died"]);
    }
}
