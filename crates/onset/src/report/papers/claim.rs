// SPDX-License-Identifier: GPL-2.0-or-later
//! One line about then and now. Its text only states numbers; its word says what they decide.

use super::{Unit, figure};
use serde::Serialize;

/// A line with its word.
#[derive(Debug, PartialEq, Serialize)]
pub struct Claim {
    /// `alike`, `not alike`, `changed`, `hardly changed`, or `not known`.
    pub word: &'static str,
    /// The numbers.
    pub text: String,
}

/// From here on a ratio is called a change. Papers print two or three digits, and the machines differ anyway.
const CHANGE: f64 = 1.5;

impl Claim {
    /// That a relation of the paper holds today.
    pub(super) fn alike(holds: bool, text: String) -> Claim {
        Claim { word: if holds { "alike" } else { "not alike" }, text }
    }

    /// Nothing can be said, because of this.
    pub(super) fn unknown(why: impl Into<String>) -> Claim {
        Claim { word: "not known", text: why.into() }
    }

    /// What became of one number; both in the same unit and above 0.
    pub(super) fn changed(what: &str, then: f64, whose: &str, now: &Now, unit: Unit) -> Claim {
        let today = unit.of_ns(now.ns);
        let ratio = today / then;
        let word =
            if (1.0 / CHANGE..=CHANGE).contains(&ratio) { "hardly changed" } else { "changed" };
        let factor = match ratio {
            r if r == 1.0 || !r.is_finite() || r <= 0.0 => String::new(),
            r if r < 1.0 => format!(", ÷ {}", figure(1.0 / r)),
            r => format!(", × {}", figure(r)),
        };
        let (then, today, unit) = (figure(then), figure(today), unit.name());
        let text = format!(
            "{what}: {then} {unit} then ({whose}), {today} {unit} now ({}){factor}.",
            now.whose
        );
        Claim { word, text }
    }
}

/// A number of ours and the flavour it was measured with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Now {
    pub(super) ns: f64,
    pub(super) whose: String,
}
