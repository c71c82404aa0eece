// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator of a QEMU that forks: it stands still, goes on, and becomes that of a trial.

use super::{Generator, with};
use crate::disturbance::Disturbances;
use sample::Nanos;
use wire::{Arguments, Producer, Start, Stimulus};

/// Passes all events on to the host.
pub(crate) fn flush() {
    with(|_| ());
}

/// How long after measuring began the guest stands.
pub(crate) fn stands_at() -> Nanos {
    with(|g| g.origin.and_then(|origin| g.qemu.now().since(origin)).unwrap_or_default())
}

/// Lets the guest go on to this time after measuring began, and serve requests there.
pub(crate) fn walk(until: Nanos) {
    with(|g| {
        let origin = g.origin.expect("a guest that stands has begun");
        g.qemu.arm(&g.parts().rise, origin, until);
    });
}

/// Ends measuring, and stops the machine where it stands.
pub(crate) fn stop() {
    with(|g| {
        g.end();
        g.qemu.stop();
    });
}

/// Makes the generator one that was told this from the beginning on, and that has raised nothing so far. Its events go
/// to `events` from now on.
pub(crate) fn become_child(told: Arguments, events: Producer) {
    with(|g| g.become_child(told, events));
}

impl Generator {
    fn become_child(&mut self, told: Arguments, events: Producer) {
        (self.told, self.events) = (told, events);
        if let (Stimulus::Triggers(triggers), Start::Restore, Some(origin)) =
            (&self.told.stimulus, self.told.start, self.origin)
        {
            self.disturbances = Disturbances::new(triggers.disturbances.clone());
            self.begin_to_trigger(origin);
        }
    }
}
