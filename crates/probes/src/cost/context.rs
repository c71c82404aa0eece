// SPDX-License-Identifier: GPL-2.0-or-later
//! Switches between processes (lmbench3: lat_ctx.c): a ring of pipes, by which a token goes from process to process.
//!
//! Each process adds up an array of its own before it passes the token on. What the token and the array cost without
//! a switch is measured by one process that writes to each of the pipes and reads from it, and is taken away.

use super::Suite::Context;
use super::bench::{Work, moved};
use super::partner::{Partner, pipe, read, write};
use super::place::Place;
use super::row::Row;
use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;

/// Switches in a batch: a multiple of each number of processes.
const SWITCHES: u32 = 320;
const TOKEN: [u8; 4] = [0; 4];

pub(super) static ROWS: [Row; 9] = [
    row("context_2p_0k", |_| Ring::start(2, 0)),
    row("context_2p_16k", |_| Ring::start(2, 16)),
    row("context_2p_64k", |_| Ring::start(2, 64)),
    row("context_8p_0k", |_| Ring::start(8, 0)),
    row("context_8p_16k", |_| Ring::start(8, 16)),
    row("context_8p_64k", |_| Ring::start(8, 64)),
    row("context_16p_0k", |_| Ring::start(16, 0)),
    row("context_16p_16k", |_| Ring::start(16, 16)),
    row("context_16p_64k", |_| Ring::start(16, 64)),
];

const fn row(name: &'static str, make: fn(&Place) -> io::Result<Box<dyn Work>>) -> Row {
    Row::time((Context, name), "a switch to the next process of a ring", SWITCHES, make)
}

/// A pipe of the ring: reading and writing end.
type Pipe = (OwnedFd, OwnedFd);

/// The ring. Process `n` reads from pipe `n − 1` and writes to pipe `n`; this process is process 0.
struct Ring {
    pipes: Vec<Pipe>,
    /// Pipes that only this process uses, for what is taken away.
    own: Vec<Pipe>,
    array: Vec<u32>,
    _others: Vec<Partner>,
}

impl Ring {
    fn start(processes: usize, kib: usize) -> io::Result<Box<dyn Work>> {
        let pipes = || (0..processes).map(|_| pipe()).collect::<io::Result<Vec<Pipe>>>();
        let (pipes, own) = (pipes()?, pipes()?);
        let array = vec![1; kib * 1024 / size_of::<u32>()];
        let others = (1..processes)
            .map(|n| {
                let (from, to) = (&pipes[n - 1].0, &pipes[n].1);
                let mut array = array.clone();
                Partner::start(|| {
                    // A page of its own for each process, as an array that was written to has.
                    array.iter_mut().for_each(|word| *word = black_box(1));
                    let mut token = TOKEN;
                    while read(from, &mut token) == TOKEN.len() as isize {
                        add_up(&array);
                        if write(to, &token) != TOKEN.len() as isize {
                            break;
                        }
                    }
                })
            })
            .collect::<io::Result<Vec<Partner>>>()?;
        Ok(Box::new(Ring { pipes, own, array, _others: others }))
    }
}

/// Adds up the array, so that all of it goes through the caches.
#[inline(never)]
fn add_up(array: &[u32]) {
    black_box(array.iter().fold(0u32, |sum, word| sum.wrapping_add(*word)));
}

impl Work for Ring {
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        let processes = self.pipes.len();
        let mut token = TOKEN;
        if part == 0 {
            for _ in 0..ops as usize / processes {
                moved(write(&self.pipes[0].1, &token), TOKEN.len())?;
                moved(read(&self.pipes[processes - 1].0, &mut token), TOKEN.len())?;
                add_up(&self.array);
            }
            return Ok(());
        }
        for (from, to) in self.own.iter().cycle().take(ops as usize) {
            moved(write(to, &token), TOKEN.len())?;
            moved(read(from, &mut token), TOKEN.len())?;
            add_up(&self.array);
        }
        Ok(())
    }
}
