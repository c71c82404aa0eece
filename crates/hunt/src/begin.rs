// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a trial begins: in which guest, and how long after its warm-up.
//!
//! A guest that runs on is saved at *stages* on its way. Each stage is twice as far from the warm-up as the stage
//! before it. The next scout (a trial without triggers) looks on from there.

use sample::Nanos;
use serde::{Deserialize, Serialize};

/// Where a trial begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Begin {
    /// The number of the hunt's guest.
    pub guest: usize,
    /// The time after the guest's warm-up.
    #[serde(rename = "begin_after_ns")]
    pub after: Nanos,
}

impl Begin {
    /// The beginning at the end of a guest's warm-up.
    pub fn first(guest: usize) -> Begin {
        Begin { guest, after: Nanos(0) }
    }

    /// Whether this is later than the end of the warm-up.
    pub fn is_later(self) -> bool {
        self.after.0 > 0
    }
}

/// The first stage after the warm-up. The rig has the same stage, and saves guests there. The code that runs trials in
/// the rig checks that both are the same.
pub const FIRST_STAGE: Nanos = Nanos::from_millis(200);

/// The time at which a scout begins after this many other scouts: the end of the warm-up, and then one stage after
/// another.
pub(crate) fn stage(scouts: u32) -> Nanos {
    scouts.checked_sub(1).map_or(Nanos(0), |n| FIRST_STAGE << n)
}

/// Whether a guest that is let run on is saved at this time anyway, and a scout looks on from there.
pub fn is_stage(after: Nanos) -> bool {
    let stages = after / FIRST_STAGE;
    after == Nanos::ZERO || after % FIRST_STAGE == Nanos::ZERO && stages.is_power_of_two()
}
