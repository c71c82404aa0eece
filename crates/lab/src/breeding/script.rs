// SPDX-License-Identifier: GPL-2.0-or-later
//! The script of a genome: a shell starts each stressor at its time, and interrupts it after its time.

use hunt::{Gene, Genome};
use std::fmt::Write;

/// The stressors that give themselves a real-time priority or a deadline, or run in an interrupt of their own: under
/// them answers are late because the load is allowed to come first.
const URGENT: [&str; 8] = [
    "cpu-sched",
    "cyclic",
    "hrtimers",
    "race-sched",
    "sched-ext",
    "schedmix",
    "schedpolicy",
    "softlockup",
];

/// Whether a stressor leaves real-time priorities alone.
pub fn is_calm(stressor: &str) -> bool {
    !URGENT.contains(&stressor)
}

/// The script. All stressors have their files in memory, and the loopback interface.
pub fn of(genome: &Genome) -> String {
    let mut text = "ip link set lo up\n".to_owned();
    for Gene { stressor, from_ms, for_ms, seed } in &genome.genes {
        let [from, during] =
            [from_ms, for_ms].map(|ms| format!("{}.{:03}", ms / 1_000, ms % 1_000));
        let work =
            format!("stress-ng --{stressor} 1 --seed {seed} --timeout 1h --temp-path /tmp --quiet");
        let _ = writeln!(text, "(sleep {from}; {work} & sleep {during}; kill -INT $!; wait) &");
    }
    text + "wait"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stressor_begins_and_ends_at_its_time() {
        let gene = Gene { stressor: "fork".into(), from_ms: 7, for_ms: 1_250, seed: 9 };
        let text = of(&Genome { genes: vec![gene] });
        assert!(text.contains("(sleep 0.007; stress-ng --fork 1 --seed 9 "), "{text}");
        assert!(text.contains(" & sleep 1.250; kill -INT $!; wait) &\nwait"), "{text}");
    }
}
