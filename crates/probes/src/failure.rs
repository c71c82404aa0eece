// SPDX-License-Identifier: GPL-2.0-or-later
//! Short functions that make each kind of [`RunError`].

use crate::RunError;
use rustix::io::Errno;
use std::io;

/// For `map_err`: the error that the system call `call` failed although it should not.
pub(crate) fn system(call: &'static str) -> impl Fn(io::Error) -> RunError + Copy + Send + Sync {
    // An error that does not come from the system, such as a short read, has no number.
    move |e| RunError::System { call, errno: Errno::from_io_error(&e).unwrap_or(Errno::IO) }
}

/// The error that `part` of the plan is wrong. `wrong` says how, and what is right.
pub(crate) fn plan(part: &'static str, wrong: impl Into<String>) -> RunError {
    RunError::Plan { part, wrong: wrong.into() }
}

/// The error that `what` is missing. `reason` says why, and what to do.
pub(crate) fn unavailable(what: &str, reason: impl Into<String>) -> RunError {
    RunError::Unavailable { what: what.into(), reason: reason.into() }
}
