// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks the kernel whether another thread of this process sleeps.

use rustix::thread::Pid;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The scheduler state of one thread (proc_pid_stat(5)). Everyone may read this file. A program with file capabilities
/// cannot open `/proc/self/task/TID/syscall`.
pub(crate) struct Sleeper {
    stat: File,
}

impl Sleeper {
    /// The state of the thread `thread` of this process.
    pub(crate) fn of(thread: Pid) -> io::Result<Sleeper> {
        let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
        Ok(Sleeper { stat: File::open(path)? })
    }

    /// Whether the thread sleeps and a signal would wake it (`S`). This holds in every blocking call of a probe.
    pub(crate) fn sleeps(&self) -> bool {
        // The state is the third field, after at most 7 digits and a name of 16 bytes in parentheses.
        let mut text = [0u8; 64];
        self.stat.read_at(&mut text, 0).is_ok_and(|bytes| state_of(&text[..bytes]) == Some(b'S'))
    }
}

/// The third field. A name may itself hold `) `, so the search is for the last parenthesis.
fn state_of(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|b| *b == b')')?;
    stat.get(end + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Gate;
    use std::sync::mpsc;

    #[test]
    fn the_state_follows_a_name_whatever_it_holds() {
        assert_eq!(state_of(b"12 (a) S 1 2"), Some(b'S'));
        assert_eq!(state_of(b"12 (a) R b) D 1"), Some(b'D'));
        assert_eq!(state_of(b"12 (a)"), None);
        assert_eq!(state_of(b""), None);
    }

    #[test]
    fn a_thread_behind_a_closed_gate_comes_to_sleep_and_the_asking_one_does_not() {
        let gate = Gate::default();
        std::thread::scope(|s| {
            let (tell, told) = mpsc::channel();
            let gate = &gate;
            s.spawn(move || {
                tell.send(rustix::thread::gettid()).unwrap();
                gate.pass();
            });
            let other = Sleeper::of(told.recv().unwrap()).unwrap();
            while !other.sleeps() {
                std::thread::yield_now();
            }
            assert!(!Sleeper::of(rustix::thread::gettid()).unwrap().sleeps());
            gate.open();
        });
    }
}
