// SPDX-License-Identifier: GPL-2.0-or-later
//! What onset has to stand: kills at any moment, system calls that fail, flipped bits, and stores, experiments, finds
//! and packages that somebody prepared. A few of each in `make test`; `make torture` tries as many as
//! docs/reliability.md says, and prints its table.
//!
//! Everything random comes from a seed that is printed: `ONSET_TORTURE_SEED=N` tries the same again.

mod failures;
mod flips;
mod hostile;
mod hunts;
mod kills;
mod packages;
mod tunes;

use std::sync::atomic::{AtomicU64, Ordering};

/// How many are tried: the first in `make test`, the second in `make torture`.
fn times(few: u64, all: u64) -> u64 {
    match std::env::var("ONSET_TORTURE").as_deref() {
        Ok("all") => all,
        _ => few,
    }
}

/// Random numbers (xorshift, as in Marsaglia 2003) by the seed of all tortures, or by the time.
struct Chance(u64);

impl Chance {
    fn new(what: &str) -> Chance {
        static SEED: AtomicU64 = AtomicU64::new(0);
        let given = std::env::var("ONSET_TORTURE_SEED").ok().and_then(|text| text.parse().ok());
        let now = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |d| d.as_micros() as u64)
        };
        let _ = SEED.compare_exchange(
            0,
            given.unwrap_or_else(now),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        let seed = SEED.load(Ordering::Relaxed);
        println!("{what}: ONSET_TORTURE_SEED={seed}");
        let hash = blake3::hash(format!("{seed} {what}").as_bytes());
        let bytes = hash.as_bytes().first_chunk().expect("32 bytes");
        Chance(u64::from_le_bytes(*bytes) | 1)
    }

    /// From 0 to `below`, without it.
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// So many kills at random moments meet what they are for: if only a third does, one series of 3·10¹⁰ meets nothing.
const CERTAIN: u64 = 60;

/// A line below one of the table: how many of the kills met what they are for. Some have to, unless so few were tried
/// as in `make test`.
fn some_met(what: &str, tried: u64, met: u64) {
    testbench::figure(what, tried, met);
    assert!(met > 0 || tried < CERTAIN, "{what}: none of {tried}");
}

/// A line of the table of docs/reliability.md. What is not clean fails the test, after the line.
fn table(what: &str, tried: u64, unclean: &[String]) {
    testbench::figure(what, tried, tried - unclean.len() as u64);
    assert!(unclean.is_empty(), "{what}:\n{}", unclean.join("\n"));
}
