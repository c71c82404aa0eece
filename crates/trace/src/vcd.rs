// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes an excerpt as a value change dump (IEEE 1364-2005, clause 18), which GTKWave and PulseView read. It shows the
//! pins and, beside them, what the CPU had turned off.
//!
//! The records do not have the width of the generator's pulses. So each change of the wires `trigger` and `disturbance`
//! stands for one pulse.

use crate::What;
use crate::excerpt::{Excerpt, Now};
use sample::ALL_RESPONDERS;
use std::fmt::Write;

/// How many wires come before those of the pins.
const FIRST_PIN: usize = 4;

/// The identifier and the name of each wire.
const WIRES: [(char, &str); FIRST_PIN + ALL_RESPONDERS.len()] = [
    ('t', "trigger"),
    ('d', "disturbance"),
    ('i', "irqs_off"),
    ('p', "preempt_off"),
    ('0', "D0"),
    ('1', "D1"),
    ('2', "D2"),
    ('3', "D3"),
    ('4', "D4"),
    ('5', "D5"),
    ('6', "D6"),
    ('7', "D7"),
    ('8', "D8"),
    ('9', "D9"),
    ('a', "D10"),
];

fn levels(now: &Now, [trigger, disturbance]: [bool; 2]) -> [bool; WIRES.len()] {
    let others: [bool; FIRST_PIN] =
        [trigger, disturbance, now.irqs_off.is_some(), now.preempt_off.is_some()];
    std::array::from_fn(|wire| match others.get(wire) {
        Some(level) => *level,
        None => now.level >> (wire - FIRST_PIN) & 1 == 1,
    })
}

/// The excerpt as the text of a `.vcd` file. Times are ns of virtual time.
pub fn vcd(excerpt: &Excerpt) -> String {
    let mut text = String::from("$timescale 1 ns $end\n$scope module onset $end\n");
    for (id, name) in WIRES {
        line(&mut text, format_args!("$var wire 1 {id} {name} $end"));
    }
    text.push_str("$upscope $end\n$enddefinitions $end\n");
    let Some(from) = excerpt.from() else { return text };
    let mut lines = [false; 2];
    let mut before = levels(&excerpt.initial(), lines);
    line(&mut text, format_args!("#{}\n$dumpvars", from.time.ns()));
    for (level, (id, _)) in before.iter().zip(WIRES) {
        line(&mut text, format_args!("{}{id}", u8::from(*level)));
    }
    text.push_str("$end\n");
    let mut told = from.time;
    for (event, now) in excerpt.states() {
        lines[0] ^= matches!(event.what, What::Trigger { .. } | What::Due { .. });
        lines[1] ^= matches!(event.what, What::Disturbance { .. });
        let after = levels(&now, lines);
        if after != before && event.at.time != told {
            line(&mut text, format_args!("#{}", event.at.time.ns()));
            told = event.at.time;
        }
        for ((old, new), (id, _)) in before.iter().zip(after).zip(WIRES) {
            if *old != new {
                line(&mut text, format_args!("{}{id}", u8::from(new)));
            }
        }
        before = after;
    }
    // Viewers end at the last time, and do not show a change at this time. So the last change lasts for a nanosecond.
    let last = excerpt.states().last().map_or(from.time, |(event, _)| event.at.time);
    line(&mut text, format_args!("#{}", last.ns() + 1));
    text
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("text takes all");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::excerpt::tests::excerpt;

    #[test]
    fn the_dump_has_every_change_at_its_time() {
        let text = vcd(&excerpt());
        let (_, changes) = text.split_once("$enddefinitions $end\n").expect("a header");
        let (values, changes) = changes.split_once("$end\n").expect("first values");
        assert_eq!(
            values,
            "#10\n$dumpvars\n0t\n0d\n0i\n0p\n00\n01\n02\n03\n04\n05\n06\n07\n08\n09\n0a\n"
        );
        assert_eq!(changes, "1i\n#20\n1t\n#30\n1d\n#40\n0i\n#50\n1i\n#60\n12\n#91\n");
    }
}
