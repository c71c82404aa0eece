// SPDX-License-Identifier: GPL-2.0-or-later
// A program that answers triggers as the responder task (docs/own-program.md). Build: rustc -O examples/answer.rs
use std::{fs::File, io::Read, os::fd::AsRawFd};

unsafe extern "C" {
    fn ioctl(file: i32, request: u64, ...) -> i32;
}
/// `ONSET_ANSWER` of driver/onset_wire.h: `_IO('O', 0x70)`.
const ANSWER: u64 = 0x4f70;

fn main() -> std::io::Result<()> {
    let mut onset = File::options().read(true).write(true).open("/dev/onset")?;
    let mut triggers = [0; 8];
    loop {
        onset.read_exact(&mut triggers)?;
        // The work comes here.
        // SAFETY: the request takes no argument.
        unsafe { ioctl(onset.as_raw_fd(), ANSWER) };
    }
}
