// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes a run once more, with the guest's kernel followed.
//!
//! A followed run is the same as the plain run to the instruction. So everything that is seen in it explains the plain
//! run. An experiment's cell, a bundle or a [`Reproducer`] names what such a run needs. [`Subject`] is what these three
//! have in common, and [`Ready`] is the guest that can then be run as often as asked.
//!
//! The module cannot see what another QEMU, plugin, kernel or guest image would have done. It refuses a run that was
//! made with other ones.

mod bounded;
mod explained;
mod explainer;
mod in_rig;
mod inside;
mod ledgers;
mod named;
mod ready;
mod replay;
mod replayed;
mod reproducer;
mod spans;
mod spending;
mod stretches;
mod subject;

pub use bounded::{Held, bound_is_seen_in};
pub use explained::{CauseShare, Explained, Explanations, STACKS_FROM, explain, explain_each};
pub use explainer::{EVENTS_KEPT, Explainer, Wanted};
pub use inside::Inside;
pub use ledgers::{Account, Ledgers};
pub use named::{Choice, Named, open, samples_of};
pub(crate) use ready::check;
pub use ready::{Ready, Watcher};
pub use replay::{option, replay_of_answer, replay_of_find, shell_word, shell_words};
pub use replayed::{Latency, Recorded, Replayed, record, replay, reproducer};
pub use reproducer::{Answer, Reproducer, order};
pub use spending::{PROGRAMS, Share, Spending, UNNAMED, spend};
pub use stretches::{INSIDE_FROM, Stretches, Total, WINDOWS_FROM, Which};
pub use subject::{MadeWith, Subject, narrow};
