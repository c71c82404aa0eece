// SPDX-License-Identifier: GPL-2.0-or-later
//! Signs of trouble in what the guest's kernel prints.

use std::fs;
use std::path::Path;

/// The text in a file of a machine. A file that is not there yet has none.
pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A fault inside the guest, with the kernel's lines about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The kernel panicked.
    Panic(String),
    /// The kernel reported an oops or a BUG().
    Oops(String),
    /// The kernel reported a soft or hard lockup, an RCU stall or a hung task.
    Lockup(String),
    /// The out-of-memory killer killed a process.
    OutOfMemory(String),
    /// A WARN(): the kernel went on, but its message took time.
    Warning(String),
}

impl Fault {
    /// The kernel's own words.
    pub fn text(&self) -> &str {
        match self {
            Fault::Panic(text)
            | Fault::Oops(text)
            | Fault::Lockup(text)
            | Fault::OutOfMemory(text)
            | Fault::Warning(text) => text,
        }
    }

    /// Whether the guest may not be whole any more. A guest goes on after a warning.
    pub fn breaks(&self) -> bool {
        !matches!(self, Fault::Warning(_))
    }
}

/// The number of lines that are shown from the first sign on.
const LINES_SHOWN: usize = 12;
/// How many lines before a sign its report may begin.
const LINES_BEFORE: usize = 4;

/// Makes the fault of a phrase from the kernel's text.
type MakeFault = fn(String) -> Fault;

/// Phrases of the kernel's own messages (kernel/panic.c, arch/x86/kernel/dumpstack.c, kernel/watchdog.c,
/// kernel/rcu/tree_stall.h, kernel/hung_task.c, mm/oom_kill.c), worst first.
const SIGNS: [(&str, MakeFault); 13] = [
    ("Out of memory: Killed", Fault::OutOfMemory),
    ("oom-kill:", Fault::OutOfMemory),
    ("invoked oom-killer", Fault::OutOfMemory),
    ("soft lockup", Fault::Lockup),
    ("hard LOCKUP", Fault::Lockup),
    ("detected stalls", Fault::Lockup),
    ("self-detected stall", Fault::Lockup),
    ("blocked for more than", Fault::Lockup),
    ("Oops:", Fault::Oops),
    ("BUG:", Fault::Oops),
    ("kernel BUG at", Fault::Oops),
    ("RT throttling activated", Fault::Warning),
    ("WARNING: CPU:", Fault::Warning),
];

/// The faults that a console's text shows, one entry for each kind. A panic that follows from another fault is not
/// reported beside it.
pub fn faults(console: &str) -> Vec<Fault> {
    let mut found: Vec<Fault> = Vec::new();
    for (sign, fault) in SIGNS {
        if let Some(text) = excerpt(console, sign) {
            let fault = fault(text);
            let kind = std::mem::discriminant(&fault);
            if !found.iter().any(|f| std::mem::discriminant(f) == kind) {
                found.push(fault);
            }
        }
    }
    let explained = found.iter().any(Fault::breaks);
    if let Some(text) = excerpt(console, "Kernel panic")
        && !explained
    {
        found.insert(0, Fault::Panic(text));
    }
    found
}

/// The line with the sign and the lines after it. If the kernel began its report with "cut here", the excerpt begins
/// there, since the text of a WARN() stands between the two.
fn excerpt(console: &str, sign: &str) -> Option<String> {
    let lines: Vec<&str> = console.lines().collect();
    let at = lines.iter().position(|l| l.contains(sign))?;
    let nearest = at.saturating_sub(LINES_BEFORE);
    let cut = lines[nearest..at].iter().rposition(|l| l.contains("[ cut here ]"));
    let begin = cut.map_or(at, |offset| nearest + offset + 1);
    Some(lines[begin..].iter().take(LINES_SHOWN).copied().collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_fault_is_recognised_with_its_text() {
        type IsFault = fn(&Fault) -> bool;
        let cases: [(&str, IsFault); 5] = [
            ("Kernel panic - not syncing: sysrq triggered crash", |f| matches!(f, Fault::Panic(_))),
            ("Oops: 0002 [#1] PREEMPT SMP NOPTI", |f| matches!(f, Fault::Oops(_))),
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 22s!", |f| {
                matches!(f, Fault::Lockup(_))
            }),
            ("Out of memory: Killed process 77 (cc1)", |f| matches!(f, Fault::OutOfMemory(_))),
            ("WARNING: CPU: 0 PID: 1 at kernel/x.c:1", |f| matches!(f, Fault::Warning(_))),
        ];
        for (line, is) in cases {
            let found = faults(&format!("[    1.0] boot\n[    2.0] {line}\n"));
            assert!(found.iter().any(is), "{line}: {found:?}");
        }
        assert!(faults("[ 0.1] Booting paravirtualized kernel\n").is_empty());
    }

    #[test]
    fn the_text_of_a_warning_stands_before_its_sign_and_is_shown() {
        let text = "boot\n------------[ cut here ]------------\nthe reason\nWARNING: CPU: 0 PID: 1 at x.c:1\n";
        let found = faults(text);
        assert!(matches!(&found[..], [Fault::Warning(text)] if text.starts_with("the reason\n")));
    }

    #[test]
    fn a_panic_after_an_oops_is_one_fault() {
        let found = faults("Oops: 0002\nRIP: x\nKernel panic - not syncing: Fatal exception\n");
        assert_eq!(found.len(), 1);
        assert!(matches!(&found[0], Fault::Oops(text) if text.contains("RIP")));
    }

    proptest! {
        #[test]
        fn any_console_is_read(text in "\\PC*") {
            let _ = faults(&text);
        }
    }
}
