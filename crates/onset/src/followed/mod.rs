// SPDX-License-Identifier: GPL-2.0-or-later
//! A run once more, with the guest's kernel followed.
//!
//! A followed run is the plain one to the instruction, so what is seen in it explains the plain one. What it needs is
//! named by an experiment's cell, by a bundle, or by a [`Reproducer`]; [`Subject`] is what these have in common, and
//! [`Ready`] the guest that can then be run as often as asked.
//!
//! It cannot see what another QEMU, plugin, kernel or guest image would have done: a run that was made with others is
//! refused.

mod bounded;
mod explained;
mod explainer;
mod inside;
mod ledgers;
mod named;
mod ready;
mod replay;
mod reproducer;
mod stretches;
mod subject;

pub use bounded::{Held, bound_is_seen_in};
pub use explained::{CauseShare, Explained, Explanations, STACKS_FROM, explain};
pub use explainer::{EVENTS_KEPT, Explainer, Wanted};
pub use inside::Inside;
pub use ledgers::{Account, Ledgers};
pub use named::{Choice, Named, samples_of};
pub use ready::{Ready, Watcher};
pub(crate) use replay::shell_word;
pub use replay::{replay_of_answer, replay_of_find};
pub use reproducer::{Answer, Reproducer};
pub use stretches::{INSIDE_FROM, Stretches, Total, WINDOWS_FROM};
pub(crate) use subject::narrow;
pub use subject::{MadeWith, Subject};
