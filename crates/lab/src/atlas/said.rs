// SPDX-License-Identifier: GPL-2.0-or-later
//! What stress-ng prints: how much a stressor worked, or why it did not. The form is that of stress-ng 0.15 to 0.18.

/// The units of work of a stressor (bogo ops), by the metrics at the end. `None` if there are no metrics of it.
pub fn ops(name: &str, said: &str) -> Option<u64> {
    // stress-ng: metrc: [16822] mmap                 56      0.88 …
    said.lines().find_map(|line| {
        let (_, rest) = line.split_once("metrc: [")?;
        let (_, rest) = rest.split_once(']')?;
        let mut words = rest.split_whitespace();
        let is_ours = words.next()?.replace('_', "-") == name;
        is_ours.then(|| words.next()?.parse().ok())?
    })
}

/// Why a stressor did not work: the first line by which stress-ng says that it cannot, without what stands before it.
/// A line of the kind `info` counts only if no line of another kind says more.
pub fn why(said: &str, status: Option<i32>) -> String {
    const TOLD: [&str; 3] = ["error:", "fail:", "warn:"];
    const SKIPPED: [&str; 5] = ["skip", "disabled", "not implemented", "not supported", "cannot"];
    /// What stress-ng adds for every stressor without work.
    const GENERAL: [&str; 2] = ["No stress workers invoked", "WARNING: finished prematurely"];
    let is_general = |text: &str| GENERAL.iter().any(|words| text.contains(words));
    let lines = || said.lines().filter_map(message).filter(|(_, text)| !is_general(text));
    let is_skipped = |text: &str| SKIPPED.iter().any(|word| text.contains(word));
    let skipped = lines().find(|(_, text)| is_skipped(text));
    let told = || lines().find(|(kind, _)| TOLD.contains(kind));
    match (skipped.or_else(told), said.lines().last()) {
        (Some((_, text)), _) => text.trim().to_owned(),
        (None, Some(last)) if message(last).is_none() => last.trim().to_owned(),
        (None, Some(_)) if status == Some(0) => "it ended at once, and did no unit of work".into(),

        (None, _) => match status {
            Some(status) => format!("it ended with status {status}, and did not say why"),
            None => "a signal ended it".into(),
        },
    }
}

/// The kind and the text of a line of stress-ng: `stress-ng: info:  [16826] text`. The number of the process says
/// nothing, and is left out.
fn message(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("stress-ng: ")?;
    let (kind, rest) = rest.split_once(char::is_whitespace)?;
    let (_, text) = rest.split_once("] ")?;
    Some((kind, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKED: &str = "\
stress-ng: info:  [16822] dispatching hogs: 1 mmap
stress-ng: metrc: [16822] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [16822]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [16822] io_uring           56      0.88      0.05      0.28        63.64         170.67
stress-ng: info:  [16822] successful run completed in 0.96s
";
    const REFUSED: &str = "\
stress-ng: info:  [16826] disabled 'watchdog' as it may hang or reboot the machine
stress-ng: info:  [16826] setting to a 1 second run per stressor
stress-ng: error: [16826] No stress workers invoked
";

    #[test]
    fn the_metrics_say_how_much_a_stressor_worked() {
        assert_eq!(ops("io-uring", WORKED), Some(56));
        assert_eq!(ops("mmap", WORKED), None);
        assert_eq!(ops("watchdog", REFUSED), None);
    }

    #[test]
    fn a_reason_has_no_number_of_a_process_and_is_not_the_general_one() {
        let why_not = why(REFUSED, Some(1));
        assert!(why_not.starts_with("disabled 'watchdog' as it may hang"), "{why_not}");
        let failed = "stress-ng: info:  [1] dispatching hogs: 1 x\nstress-ng: fail:  [2] x: no such device\n";
        assert_eq!(why(failed, Some(2)), "x: no such device");
        assert_eq!(
            why("/bin/sh: stress-ng: not found\n", Some(127)),
            "/bin/sh: stress-ng: not found"
        );
        let silent = why("", Some(3));
        assert!(silent.contains("status 3"), "{silent}");
        let early = "stress-ng: warn:  [3] rtc: WARNING: finished prematurely after just 0.50s\n";
        let none = why(&format!("{early}{WORKED}"), Some(0));
        assert_eq!(none, "it ended at once, and did no unit of work");
    }
}
