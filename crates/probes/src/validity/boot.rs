// SPDX-License-Identifier: GPL-2.0-or-later
//! Judges whether a kernel runs as its command line asks: with the preemption mode that it names, and with all its
//! words.
//!
//! It judges by what the kernel says about itself. It cannot see a word that the kernel takes and then ignores, nor a
//! word for a module.

use super::Doubt;
use crate::context::{Context, keys};

/// The doubts about a kernel that got `words` at boot. A value that could not be read raises no doubt.
///
/// Only `words` are judged: a boot loader and an initramfs have words of their own, which the kernel does not know
/// either.
pub fn boot(words: &[String], context: &Context) -> Vec<Doubt> {
    let differs = preemption(words, context);
    let judged = |word: &&String| differs.is_none() || !word.starts_with(PREEMPT);
    let refused: Vec<String> =
        words.iter().filter(judged).filter_map(|word| refusal(word, context)).collect();
    let refused = (!refused.is_empty()).then_some(Doubt::BootWordsRefused { words: refused });
    differs.into_iter().chain(refused).collect()
}

/// The words of a whole command line that this module compares with the running kernel, whoever wrote them.
pub(super) fn judged_words(context: &Context) -> Vec<String> {
    let line = context.get(keys::COMMAND_LINE).unwrap_or_default();
    let words = line.split_whitespace().take_while(|word| *word != "--");
    words.filter(|word| word.starts_with(PREEMPT)).map(str::to_owned).collect()
}

const PREEMPT: &str = "preempt=";
/// The kernel's text before the name of a mode that it does not have (kernel/sched/core.c, `setup_preempt_mode`).
const UNSUPPORTED: &str = "Dynamic Preempt: unsupported mode: ";

/// The doubt that the last mode in `words` is not the mode in force.
fn preemption(words: &[String], context: &Context) -> Option<Doubt> {
    let asked = words.iter().rev().find_map(|word| word.strip_prefix(PREEMPT))?;
    let found = context.get(keys::PREEMPTION_MODE).or_else(|| context.get(keys::PREEMPTION))?;
    let modes = context.get(keys::PREEMPTION_MODES).unwrap_or_default();
    (asked != found).then(|| Doubt::PreemptionDiffers {
        asked: asked.to_owned(),
        found: found.to_owned(),
        modes: modes.split_whitespace().map(str::to_owned).collect(),
    })
}

/// Why the kernel did not take a word. Absent if it took the word, as far as the kernel says.
fn refusal(word: &str, context: &Context) -> Option<String> {
    let said = |key| context.get(key).unwrap_or_default();
    if said(keys::BOOT_WORDS_UNKNOWN).split(' ').any(|unknown| unknown == word) {
        return Some(format!("{word} (unknown)"));
    }
    let name = word.split('=').next().unwrap_or(word);
    // The name stands between quotation marks. Older kernels use another character as the opening mark.
    let value = word.strip_prefix(PREEMPT);
    let names = |text: &&str| {
        text.split(['\'', '`']).any(|quoted| quoted == name)
            || (value.is_some() && text.strip_prefix(UNSUPPORTED) == value)
    };
    if let Some(text) = said(keys::BOOT_WORDS_REFUSED).split("; ").find(names) {
        return Some(format!("{word} ({text})"));
    }
    let line = context.get(keys::COMMAND_LINE)?;
    let is_there = line.split_whitespace().any(|given| given == word);
    if !is_there {
        return Some(format!("{word} (not on the command line that the kernel has)"));
    }
    if name.starts_with(keys::KNOB) {
        return match context.get(name) {
            Some(found) if word.split_once('=').is_some_and(|(_, asked)| asked == found) => None,
            Some(why) => Some(format!("{word} ({why})")),
            None => Some(format!("{word} (only a guest of the rig takes it)")),
        };
    }
    let (_, asked) = word.strip_prefix(keys::SYSCTL)?.split_once('=')?;
    match context.get(name) {
        Some(found) if is_taken(asked, found) => None,
        Some(found) => Some(format!("{word} (it is {found})")),
        None => Some(format!("{word} (this kernel has no such file below /proc/sys)")),
    }
}

/// Whether a file below /proc/sys took a text. A file of several numbers takes the first ones alone, too, as
/// `kernel.printk` does.
fn is_taken(asked: &str, found: &str) -> bool {
    let mut found = found.split_whitespace();
    let is_next = |word| found.next() == Some(word);
    !asked.is_empty() && asked.split_whitespace().all(is_next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn context(entries: &[(&str, &str)]) -> Context {
        let entries = entries.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Context::from(entries.collect::<BTreeMap<_, _>>())
    }

    fn words(flavour: &str) -> Vec<String> {
        flavour.split_whitespace().map(str::to_owned).collect()
    }

    fn modes<'a>(found: &'a str, all: &'a str) -> [(&'a str, &'a str); 2] {
        [(keys::PREEMPTION_MODE, found), (keys::PREEMPTION_MODES, all)]
    }

    #[test]
    fn a_mode_that_the_kernel_does_not_have_is_told_once_with_those_that_it_has() {
        let refused = [
            (keys::BOOT_WORDS_UNKNOWN, "preempt=none"),
            (keys::BOOT_WORDS_REFUSED, "Dynamic Preempt: unsupported mode: none"),
        ];
        let context = context(&[&modes("lazy", "full lazy")[..], &refused].concat());
        let expected = Doubt::PreemptionDiffers {
            asked: "none".into(),
            found: "lazy".into(),
            modes: words("full lazy"),
        };
        assert_eq!(boot(&words("quiet preempt=none"), &context)[0], expected);
        assert_eq!(boot(&words("preempt=none"), &context), [expected]);
        assert!(boot(&words("preempt=lazy"), &context).is_empty());
    }

    #[test]
    fn of_several_modes_the_last_is_the_one_that_was_asked_for() {
        let context = context(&modes("full", "none voluntary full"));
        assert!(boot(&words("preempt=none preempt=full"), &context).is_empty());
        assert_eq!(boot(&words("preempt=full preempt=none"), &context).len(), 1);
    }

    #[test]
    fn a_real_time_kernel_without_modes_has_no_mode_to_be_asked_for() {
        let fixed = context(&[(keys::PREEMPTION, "rt")]);
        assert!(
            matches!(&boot(&words("preempt=full"), &fixed)[..], [Doubt::PreemptionDiffers { found, .. }] if found == "rt")
        );
        assert!(boot(&words("quiet"), &fixed).is_empty());
        let chosen =
            context(&[&modes("lazy", "full lazy")[..], &[(keys::PREEMPTION, "rt")]].concat());
        assert!(boot(&words("preempt=lazy"), &chosen).is_empty());
    }

    #[test]
    fn words_that_were_not_taken_are_told_with_why_and_those_of_others_are_not() {
        let context = context(&[
            (keys::BOOT_WORDS_UNKNOWN, "nosuch BOOT_IMAGE=/vmlinuz"),
            (
                keys::BOOT_WORDS_REFUSED,
                "Malformed early option 'nmi_watchdog'; Booting kernel: `x' invalid for parameter `hz'",
            ),
            (keys::COMMAND_LINE, "console=ttyS0 nosuch nmi_watchdog=x hz=x usbcore.nosuch=1"),
        ]);
        let doubts = boot(&words("nosuch nmi_watchdog=x hz=x usbcore.nosuch=1 quiet"), &context);
        let [Doubt::BootWordsRefused { words }] = &doubts[..] else { panic!("{doubts:?}") };
        assert_eq!(
            words[..],
            [
                "nosuch (unknown)",
                "nmi_watchdog=x (Malformed early option 'nmi_watchdog')",
                "hz=x (Booting kernel: `x' invalid for parameter `hz')",
                "quiet (not on the command line that the kernel has)",
            ]
        );
    }

    #[test]
    fn a_word_for_proc_sys_is_taken_if_its_value_reads_back() {
        let context = context(&[
            (
                keys::COMMAND_LINE,
                "sysctl.vm.a=1 sysctl.vm.b=2 sysctl.vm.c=3 sysctl.d=3 sysctl.e=3 sysctl.f=3,4",
            ),
            ("sysctl.vm.a", "1"),
            ("sysctl.vm.b", "7"),
            ("sysctl.d", "3 4 1 7"),
            ("sysctl.e", "4 3 1 7"),
            ("sysctl.f", "3"),
        ]);
        let asked =
            words("sysctl.vm.a=1 sysctl.vm.b=2 sysctl.vm.c=3 sysctl.d=3 sysctl.e=3 sysctl.f=3,4");
        let [Doubt::BootWordsRefused { words }] = &boot(&asked, &context)[..] else {
            panic!("{asked:?}")
        };
        assert_eq!(
            words[..],
            [
                "sysctl.vm.b=2 (it is 7)",
                "sysctl.vm.c=3 (this kernel has no such file below /proc/sys)",
                "sysctl.e=3 (it is 4 3 1 7)",
                "sysctl.f=3,4 (it is 3)",
            ]
        );
    }

    #[test]
    fn a_word_for_a_knob_is_taken_if_process_1_says_so() {
        let line = "knob.a=1 knob.b=2 knob.c=3";
        let context = context(&[
            (keys::COMMAND_LINE, line),
            ("knob.a", "1"),
            ("knob.b", "not here: there is no /sys/b"),
        ]);
        let [Doubt::BootWordsRefused { words }] = &boot(&words(line), &context)[..] else {
            panic!("{line}")
        };
        assert_eq!(
            words[..],
            [
                "knob.b=2 (not here: there is no /sys/b)",
                "knob.c=3 (only a guest of the rig takes it)"
            ]
        );
    }

    #[test]
    fn where_the_kernel_says_nothing_there_is_no_doubt() {
        assert!(boot(&words("preempt=fulll nosuch"), &Context::default()).is_empty());
    }
}
