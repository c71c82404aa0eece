// SPDX-License-Identifier: GPL-2.0-or-later
//! What the kernel's log says about the words of its command line: which words it did not know, and which it did not
//! take.
//!
//! A kernel prints most of this below the level of a console. So this module reads the log itself, which keeps a line
//! as long as no newer line needs the room. It cannot see a word for a module (`MODULE.PARAMETER=`), since the kernel
//! leaves these words to whoever loads the module.

use super::parse::record_text;

/// The texts around the list of unknown words (init/main.c, `print_unknown_bootoptions`; since Linux 5.14).
const UNKNOWN: (&str, &str) =
    ("Unknown kernel command line parameters \"", "\", will be passed to user space.");

/// Beginnings and parts of the kernel's messages about one word (init/main.c, kernel/params.c, kernel/sched/core.c).
const REFUSALS: [&str; 4] = [
    "Malformed early option '",
    "Dynamic Preempt: unsupported mode",
    "' invalid for parameter",
    "' too large for parameter",
];

/// The words that the kernel did not know, as the command line has them, separated by spaces. The result is absent if
/// the kernel knew all words, if the log is not readable, or if the log does not reach back to the boot.
pub fn unknown_words(log: &str) -> Option<String> {
    texts(log).find_map(|text| {
        let (_, rest) = text.split_once(UNKNOWN.0)?;
        rest.split_once(UNKNOWN.1).map(|(words, _)| words.to_owned())
    })
}

/// The kernel's messages about words that it knew and did not take, separated by `; `. Absent if the log has none.
pub fn refused_words(log: &str) -> Option<String> {
    let refusals = texts(log).filter(|text| REFUSALS.iter().any(|sign| text.contains(sign)));
    let refusals: Vec<&str> = refusals.collect();
    (!refusals.is_empty()).then(|| refusals.join("; "))
}

fn texts(log: &str) -> impl Iterator<Item = &str> {
    log.lines().map(record_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "5,10,0,-;Kernel command line: preempt=fulll nosuch foo.bar=1 isolcpus\n\
        3,11,0,-;Malformed early option 'loglevel'\n\
        4,12,0,-;Dynamic Preempt: unsupported mode: fulll\n\
        5,13,0,-;Unknown kernel command line parameters \"nosuch preempt=fulll\", will be passed to user space.\n\
        3,14,0,-;Booting kernel: `x' invalid for parameter `nmi_watchdog'\n\
        6,15,0,-;Dynamic Preempt: voluntary\n SUBSYSTEM=pci\n";

    #[test]
    fn unknown_words_are_taken_from_the_kernels_own_list() {
        assert_eq!(unknown_words(LOG).as_deref(), Some("nosuch preempt=fulll"));
        assert_eq!(unknown_words("5,1,0,-;Kernel command line: quiet\n"), None);
    }

    #[test]
    fn each_refusal_is_kept_in_the_kernels_words_and_a_mode_that_was_taken_is_none() {
        let refused = refused_words(LOG).unwrap();
        assert_eq!(
            refused.split("; ").collect::<Vec<_>>(),
            [
                "Malformed early option 'loglevel'",
                "Dynamic Preempt: unsupported mode: fulll",
                "Booting kernel: `x' invalid for parameter `nmi_watchdog'",
            ]
        );
        assert_eq!(refused_words("6,15,0,-;Dynamic Preempt: lazy\n"), None);
    }
}
