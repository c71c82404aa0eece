// SPDX-License-Identifier: GPL-2.0-or-later
//! The checks that a QEMU has to pass before it is used, each with a name, and what is said of a QEMU that does not
//! pass.
//!
//! A version that was tried passes all checks. Of any other version the checks are all that there is to go by. Whatever
//! no check looks at is taken to be as in the versions that were tried.

use std::fmt;
use wire::arguments::QEMUS_TRIED;

/// A check. They are in the order in which a run comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every function and variable that is used is exported.
    Symbols,
    /// The plugin interface has a version that is known, and gives what that version has.
    Interface,
    /// The state `paused` has a number.
    RunStates,
    /// The clocks of QEMU have the numbers that they are asked by.
    Clocks,
    /// What is given to QEMU as memory for its own structures is large enough.
    Room,
    /// A port that is claimed is read and written by the functions that were given for it.
    Ports,
    /// The vCPU's registers are found in its structure.
    Registers,
    /// The flag that says whether the clock may be read is found in the vCPU's structure, and stays where it is.
    ClockFlag,
    /// The guest's memory, read page by page where the host keeps it, is what the plugin interface reads.
    Memory,
}

/// All of them.
#[cfg(test)]
const ALL: [Check; 9] = [
    Check::Symbols,
    Check::Interface,
    Check::RunStates,
    Check::Clocks,
    Check::Room,
    Check::Ports,
    Check::Registers,
    Check::ClockFlag,
    Check::Memory,
];

impl Check {
    /// In messages and in docs/rig.md.
    pub fn name(self) -> &'static str {
        match self {
            Check::Symbols => "symbols",
            Check::Interface => "interface",
            Check::RunStates => "run states",
            Check::Clocks => "clocks",
            Check::Room => "room",
            Check::Ports => "ports",
            Check::Registers => "registers",
            Check::ClockFlag => "clock flag",
            Check::Memory => "memory",
        }
    }

    /// Does not pass, for this reason: a clause.
    pub fn fails(self, why: impl Into<String>) -> Failed {
        Failed { check: self, why: why.into() }
    }

    /// Passes, if that `is` so.
    pub fn passes(self, is: bool, else_why: impl FnOnce() -> String) -> Result<(), Failed> {
        if is { Ok(()) } else { Err(self.fails(else_why())) }
    }
}

/// A check that a QEMU does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which.
    pub check: Check,
    /// Why: a clause.
    pub why: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the check `{}` failed: {}", self.check.name(), self.why)
    }
}

/// What is said of a QEMU that is refused. `version` is none where it could not be asked.
pub(crate) fn refusal(version: Option<[i64; 3]>, failed: &Failed) -> String {
    let version = version.map(|[major, minor, micro]| format!(" {major}.{minor}.{micro}"));
    format!(
        "this QEMU{} is refused, {failed}. onset was tried with QEMU {}: install Debian's build of one of them, or add this one (CONTRIBUTING.md, Adding a QEMU version) and report it with what `onset doctor --json` prints",
        version.unwrap_or_default(),
        QEMUS_TRIED.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_version_the_check_the_reason_and_what_was_tried() {
        let failed = Check::Registers.fails("they are nowhere");
        let said = refusal(Some([10, 0, 99]), &failed);
        for word in [
            "QEMU 10.0.99 is",
            "`registers`",
            "they are nowhere",
            "10.0 and 11.1:",
            "CONTRIBUTING.md",
        ] {
            assert!(said.contains(word), "{said}");
        }
        assert!(refusal(None, &failed).starts_with("this QEMU is refused"));
    }

    #[test]
    fn every_check_has_a_name_of_its_own() {
        let mut names = ALL.map(Check::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_check_passes_where_it_is_so_and_else_says_why() {
        assert_eq!(Check::Clocks.passes(true, || unreachable!()), Ok(()));
        let failed = Check::Clocks.passes(false, || "1 is not virtual".into()).unwrap_err();
        assert_eq!(failed.to_string(), "the check `clocks` failed: 1 is not virtual");
    }
}
