// SPDX-License-Identifier: GPL-2.0-or-later
//! What the kernel changes by itself together with a knob: the governor `performance` of amd-pstate and intel_pstate
//! changes the energy preference, too, and then refuses another one (Documentation/admin-guide/pm/amd-pstate.rst).

use super::Tuning;
use crate::journal::{self, Record};
use crate::undo::open_changes;
use crate::{Cpus, Setting, State, knobs, look, plan};

impl Tuning {
    /// Announces what the kernel may change together with a knob, before the knob's own changes. So it is taken back
    /// after them, when the kernel takes its old value again. A place that follows mostly gets the value of the knob.
    pub(super) fn moved(
        &mut self,
        change: &plan::Change,
        cpus: &Cpus,
    ) -> Result<Vec<journal::Change>, String> {
        let first = self.next_number();
        for knob in knobs().iter().filter(|knob| change.knob.moves.contains(&knob.name)) {
            let State::Here(spots) = look(&self.system, knob, cpus).state else { continue };
            for Setting { place, text } in spots {
                let texts = (Some(text), Some(change.value.clone()));
                self.announce(&knob.name, place, knob.reads, texts)?;
            }
        }
        let open = open_changes(self.journal.records()).0;
        Ok(open.into_iter().filter(|change| change.number >= first).collect())
    }

    /// Says to the journal what became of what was announced so. Without the record, as on a full disk, the undo still
    /// knows the old value and the announced one, and names any other.
    pub(super) fn moved_to(&mut self, announced: Vec<journal::Change>) {
        for change in announced {
            let (number, reads) = (change.number, change.reads);
            let Ok(Some(text)) = self.system.read(&change.place) else { continue };
            let is = |other: &Option<String>| {
                other.as_ref().is_some_and(|other| reads.is_same(&text, other))
            };
            if is(&change.old) {
                drop(self.journal.add(Record::Settled { number }));
            } else if !is(&change.new) {
                drop(self.journal.add(Record::ReadBack { number, text }));
            }
        }
    }
}
