// SPDX-License-Identifier: GPL-2.0-or-later
//! Knobs that a guest of the rig is given by words of its kernel's command line, as in `knob.ksm.run=0`. The kernel
//! ignores them: it takes them for parameters of a module `knob`, which is nowhere. Process 1 of the guest carries
//! them out, as `onset tune apply` does on a machine; a guest needs no journal.

use crate::boot::Parameters;
use crate::{Cpus, Knob, KnobKind, Setting, State, System, find, look};
use probes::context::keys;

/// A knob on a command line.
#[derive(Clone, Debug)]
pub struct KnobWord {
    key: String,
    value: String,
    /// The knob, or why it is not given.
    knob: Result<&'static Knob, String>,
}

impl KnobWord {
    /// The knobs on a command line, in its order.
    pub fn all(line: &str) -> Vec<KnobWord> {
        let given = |(key, value): (&str, &str)| {
            let knob = find(key.strip_prefix(keys::KNOB)?);
            Some(KnobWord { key: key.to_owned(), value: value.to_owned(), knob })
        };
        Parameters::of(line).words().filter_map(given).collect()
    }

    /// Changes the knob wherever it has another value.
    pub fn give(&mut self, system: &System, cpus: &Cpus) {
        self.knob = self.try_to_give(system, cpus);
    }

    fn try_to_give(&self, system: &System, cpus: &Cpus) -> Result<&'static Knob, String> {
        let knob = self.knob.clone()?;
        match knob.kind {
            KnobKind::Boot => return Err(format!("write it without {}", keys::KNOB)),
            KnobKind::Told => return Err("onset does not change it".into()),
            _ if self.value.is_empty() => return Err("it needs a value".into()),
            _ => {}
        }
        let spots = match look(system, knob, cpus).state {
            State::Here(spots) => spots,
            State::NotHere(why) => return Err(format!("not here: {why}")),
            State::Booted(_) => return Err("it is a boot parameter".into()),
        };
        let count = spots.len();
        let other = spots.into_iter().filter(|spot| !knob.reads.is_same(&spot.text, &self.value));
        let write = |place| {
            let written = system.write(&place, Some(&self.value));
            written.err().map(|e| format!("{place}: {e}"))
        };
        let refused: Vec<String> = other.filter_map(|spot| write(spot.place)).collect();
        match refused.is_empty() || (knob.each && refused.len() < count) {
            true => Ok(knob),
            false => Err(refused.join(", ")),
        }
    }

    /// The key of its word, and the value that it has now: the text of the word if the knob has that value; else what
    /// is there, or why it was not given.
    pub fn read_back(&self, system: &System, cpus: &Cpus) -> (String, String) {
        let knob = match &self.knob {
            Ok(knob) => knob,
            Err(why) => return (self.key.clone(), why.clone()),
        };
        let now = look(system, knob, cpus);
        let has_it = |spots: &[Setting]| {
            let is_same = |spot: &Setting| knob.reads.is_same(&spot.text, &self.value);
            if knob.each { spots.iter().any(is_same) } else { spots.iter().all(is_same) }
        };
        let is_given = matches!(&now.state, State::Here(spots) if has_it(spots));
        let text = match is_given {
            true => self.value.clone(),
            false => now.now().map_or("it is gone".into(), |now| format!("it is {now}")),
        };
        (self.key.clone(), text)
    }
}
