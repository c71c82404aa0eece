// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the windows of a run: the stretches in which the guest runs with interrupts or preemption off.

use crate::Error;
use crate::cells::FollowedCell;
pub use crate::followed::Which;
use crate::followed::{INSIDE_FROM, Ready, Stretches, Total, WINDOWS_FROM};
use rig::{Bench, Calls};
use sample::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{ReaderLosses, WindowKind};
use work::Progress;

/// What was seen of a cell.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenWindows {
    /// Its flavour.
    pub flavour: String,
    /// Its load.
    pub load: String,
    /// How long it was watched.
    pub virtual_ns: Nanos,
    /// Triggers in that time.
    pub triggers: u64,
    /// The kinds that were asked for.
    pub kinds: Vec<WindowKind>,
    /// By kind, all windows.
    pub totals: BTreeMap<WindowKind, Total>,
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// What the follower's records lost.
    pub losses: ReaderLosses,
    /// The longest, or those with the greatest sum, and by kind what has no length.
    #[serde(skip)]
    pub report: trace::WindowsReport,
}

/// Runs a cell, and looks at its windows.
///
/// # Errors
/// The errors of [`Ready`].
pub fn windows(
    bench: &Bench,
    mut cell: FollowedCell,
    which: Which,
    progress: &dyn Fn(Progress),
) -> Result<SeenWindows, Error> {
    // Calls of functions tell of the other two kinds.
    let counted = [WindowKind::IrqsOff, WindowKind::PreemptOff];
    let is_counted = which.kinds.iter().all(|k| counted.contains(k));
    let calls = if is_counted { Calls::None } else { Calls::Stretches };
    let without = cell.subject.spare_driver();
    let ready = Ready::new(bench, cell.subject, progress)?;
    let (map, follow) = ready.follow(WINDOWS_FROM, calls)?;
    let follow = follow.looking_inside(INSIDE_FROM);
    let mut stretches = Stretches::default();
    let reader = ready.run(Some(&follow), &mut stretches, progress)?;
    stretches.finish();
    let (report, totals) = stretches.report(&which, reader.stacks(), &map);
    Ok(SeenWindows {
        flavour: cell.flavour,
        load: cell.load,
        virtual_ns: stretches.span(),
        triggers: stretches.triggers(),
        kinds: which.kinds,
        totals,
        missing: without.into_iter().chain(follow.missing).collect(),
        losses: reader.losses(),
        report,
    })
}
