// SPDX-License-Identifier: GPL-2.0-or-later
//! Long work: it is asked to stop ([`Cancel`]), goes on by steps ([`Step`]), says how far it is ([`Progress`]), and
//! runs processes that end with it ([`Reaped`]). Targets, the rig and the lab have these in common and nothing else.

mod cancel;
mod process;
mod progress;
mod steps;

pub use cancel::{Cancel, is_cancelled};
pub use process::{Reaped, inherit};
pub use progress::Progress;
pub use steps::{Step, to_the_end};

use std::time::Duration;

/// How often waiting looks at its child and at [`is_cancelled`].
pub const POLL: Duration = Duration::from_millis(2);
