// SPDX-License-Identifier: GPL-2.0-or-later
//! What work says of itself while it goes on.

/// What there is to tell while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Putting the image together, building the driver.
    Preparing,
    /// Booting and setting up the load.
    Booting,
    /// Under load, before measuring.
    WarmingUp,
    /// Writing the machine's state.
    Saving,
    /// Reading it.
    Restoring,
    /// Triggers raised so far, of how many.
    Measuring(u64, u64),
}
