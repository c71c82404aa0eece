// SPDX-License-Identifier: GPL-2.0-or-later
//! The checks that a QEMU has to pass before it is used. Each check has a name. The module also makes the message for a
//! QEMU that does not pass.
//!
//! A version that was tried passes all checks. For any other version the checks are the only evidence. Behaviour that
//! no check looks at is assumed to be as in the versions that were tried.

use std::fmt;
use wire::arguments::QEMUS_TRIED;

/// A check. A run comes to the checks in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// QEMU exports every function and variable that is used.
    Symbols,
    /// The plugin interface has a known version, and offers everything that this version has.
    Interface,
    /// The state `paused` has a number.
    RunStates,
    /// The clocks of QEMU have the numbers that the plugin uses for them.
    Clocks,
    /// QEMU reads the host's clock by the plugin's function.
    HostClock,
    /// The memory that the plugin gives QEMU for its own structures is large enough.
    Room,
    /// If the plugin claims a port, QEMU reads and writes the port by the plugin's functions.
    Ports,
    /// The vCPU's registers can be found in the vCPU's structure.
    Registers,
    /// The flag that says whether the clock may be read can be found in the vCPU's structure, and stays in its place.
    ClockFlag,
    /// The guest's memory reads the same page by page, where the host keeps it, and through the plugin interface.
    Memory,
}

/// All checks.
#[cfg(test)]
const ALL: [Check; 10] = [
    Check::Symbols,
    Check::Interface,
    Check::RunStates,
    Check::Clocks,
    Check::HostClock,
    Check::Room,
    Check::Ports,
    Check::Registers,
    Check::ClockFlag,
    Check::Memory,
];

impl Check {
    /// The check's name, in messages and in docs/rig.md.
    pub fn name(self) -> &'static str {
        match self {
            Check::Symbols => "symbols",
            Check::Interface => "interface",
            Check::RunStates => "run states",
            Check::Clocks => "clocks",
            Check::HostClock => "host clock",
            Check::Room => "room",
            Check::Ports => "ports",
            Check::Registers => "registers",
            Check::ClockFlag => "clock flag",
            Check::Memory => "memory",
        }
    }

    /// Makes the failure of this check. `why` is a clause.
    pub fn fails(self, why: impl Into<String>) -> Failed {
        Failed { check: self, why: why.into() }
    }

    /// Passes if `is` is true.
    pub fn passes(self, is: bool, else_why: impl FnOnce() -> String) -> Result<(), Failed> {
        if is { Ok(()) } else { Err(self.fails(else_why())) }
    }
}

/// A check that a QEMU does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The check.
    pub check: Check,
    /// The reason, as a clause.
    pub why: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the check `{}` failed: {}", self.check.name(), self.why)
    }
}

/// The message for a refused QEMU. `version` is `None` if nobody could ask QEMU for its version.
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
