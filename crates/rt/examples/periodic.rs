// SPDX-License-Identifier: GPL-2.0-or-later
//! A periodic real-time task: a thousand periods of a millisecond, first by plain sleep, then by precise sleep.
//!
//! `cargo run --release -p onset-rt --example periodic`, with `sudo` or without: what is refused is said, and done
//! without.

use rt::{Overrun, Policy, PreciseSleep, Release, RuntimeLimit, SystemClock, Usage};
use sample::Nanos;

const PERIOD: Nanos = Nanos::from_millis(1);
const PERIODS: usize = 1_000;

fn main() {
    or_say(rt::lock_memory());
    rt::prefault_stack();
    or_say(rt::timer_slack(Nanos(1)));
    or_say(rt::apply(Policy::Fifo(80)));
    let _guard = or_say(RuntimeLimit::hold(Nanos::from_millis(500)));
    let mut latencies = [Nanos(0); PERIODS];

    let before = Usage::of_thread();
    let mut release = from_now();
    let mut skipped = 0;
    for latency in &mut latencies {
        let woken = release.wait(&SystemClock);
        *latency = woken.latency.expect("the clock goes forward");
        skipped += woken.skipped;
    }
    show("plain", &mut latencies, skipped, before);

    let before = Usage::of_thread();
    let mut sleep = PreciseSleep::calibrate(&SystemClock, PERIOD / 2);
    let mut release = from_now();
    let mut skipped = 0;
    for latency in &mut latencies {
        let now = sleep.sleep_until(&SystemClock, release.due());
        let woken = release.woke(now, release.passed(now));
        *latency = woken.latency.expect("the clock goes forward");
        skipped += woken.skipped;
    }
    show("precise", &mut latencies, skipped, before);
    println!("precise sleep wakes {} early", sleep.margin());
}

fn from_now() -> Release {
    Release::new(rt::now() + PERIOD, PERIOD, Overrun::Skip)
}

fn show(name: &str, latencies: &mut [Nanos], skipped: u64, before: Usage) {
    let used = Usage::of_thread().since(&before);
    latencies.sort_unstable();
    println!(
        "{name}: least {}, median {}, most {}; {skipped} skipped; {} page faults, {} of CPU time",
        latencies[0],
        latencies[latencies.len() / 2],
        latencies[latencies.len() - 1],
        used.page_faults(),
        used.cpu_time
    );
}

fn or_say<T>(answer: Result<T, rt::Error>) -> Option<T> {
    answer.inspect_err(|e| println!("going on without: {e}")).ok()
}
