// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text that a kernel might have in /proc or /sys is read, or means nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probes::context::parse;
use probes::context::{cpu_list, show_cpu_list};

fuzz_target!(|text: &str| {
    if let Some(cpus) = cpu_list(text) {
        assert!(cpus.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(cpu_list(&show_cpu_list(&cpus)), Some(cpus));
    }
    if let Some(cpus) = parse::cpu_mask(text) {
        assert!(cpus.windows(2).all(|pair| pair[0] < pair[1]));
    }
    let (key, text) = text.split_once('\n').unwrap_or(("", text));
    let _ = parse::chosen(text, '[', ']');
    let _ = parse::command_line_value(text, key);
    let _ = parse::record_text(text);
    let _ = parse::ticks(text, 0);
    let _ = parse::thread(text).map(|thread| thread.real_time.map(parse::RealTime::priority));
    let _ = parse::labelled(text, key);
    let _ = parse::soft_limit(text, key);
});
