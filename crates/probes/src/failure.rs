// SPDX-License-Identifier: GPL-2.0-or-later
//! Short functions that make each kind of [`RunError`].

use crate::RunError;
use rustix::io::Errno;
use std::io;

/// For `map_err`: `call` failed that should not.
pub(crate) fn system(call: &'static str) -> impl Fn(io::Error) -> RunError + Copy + Send + Sync {
    // Errors that do not come from the system (a short read) have no number.
    move |e| RunError::System { call, errno: Errno::from_io_error(&e).unwrap_or(Errno::IO) }
}

/// `part` of the plan is wrong, and how it is right.
pub(crate) fn plan(part: &'static str, wrong: impl Into<String>) -> RunError {
    RunError::Plan { part, wrong: wrong.into() }
}

/// There is no `what`, why, and what to do.
pub(crate) fn unavailable(what: &str, reason: impl Into<String>) -> RunError {
    RunError::Unavailable { what: what.into(), reason: reason.into() }
}
