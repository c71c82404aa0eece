// SPDX-License-Identifier: GPL-2.0-or-later
//! The bound with names, in the form in which it is shown and written as JSON.

use super::{Bound, Term};
use crate::entries::{interrupted, until_interrupt};
use crate::{Stacks, Symbols};
use sample::Nanos;
use serde::{Deserialize, Serialize};

/// The longest of one term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TermReport {
    /// How long, without interrupts.
    pub ns: Nanos,
    /// When it began, on the virtual clock.
    pub at_ns: Nanos,
    /// With which stack, innermost first: up to an interrupt's entry, and for D_PAIE what that had interrupted; empty
    /// where it was too short to have one.
    pub stack: Vec<String>,
    /// Where the CPU was in it when the follower looked last, innermost first; empty where it was too short for a look.
    pub inside: Vec<String>,
}

/// The terms, and the bound. Fields are those of [`Bound`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundReport {
    /// D_ST: interrupts off in the scheduler, over the switch, to preemption on.
    pub st: TermReport,
    /// D_POID: preemption or interrupts off, other than to schedule.
    pub poid: TermReport,
    /// D_PAIE: both on, the scheduler being asked for, until it is entered.
    pub paie: TermReport,
    /// D_PSD: preemption off to schedule.
    pub psd: TermReport,
    /// max(st, poid) + paie + psd.
    pub interference_free_ns: Nanos,
    /// What interrupts may take of an interval as long as the bound, I(L); none where there is none.
    pub interrupts_ns: Option<Nanos>,
    /// The bound, L; none where no interval fulfils the equation.
    pub bound_ns: Option<Nanos>,
}

impl Bound {
    /// The report on the bound, with names.
    pub fn report(&self, stacks: &Stacks, symbols: &dyn Symbols) -> BoundReport {
        let term = |term: Term, cut: fn(Vec<String>) -> Vec<String>| TermReport {
            ns: term.ns,
            at_ns: term.at_ns,
            stack: cut(stacks.names(term.opened, symbols)),
            inside: stacks.names(term.inside, symbols),
        };
        BoundReport {
            st: term(self.st, until_interrupt),
            poid: term(self.poid, until_interrupt),
            // As a rule both are on again at the end of an interrupt. Then the interrupted code goes on.
            paie: term(self.paie, interrupted),
            psd: term(self.psd, until_interrupt),
            interference_free_ns: self.interference_free_ns,
            interrupts_ns: self.interrupts_ns,
            bound_ns: self.bound_ns,
        }
    }
}
