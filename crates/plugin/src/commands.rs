// SPDX-License-Identifier: GPL-2.0-or-later
//! The commands of a session, as they come out of its pipe. When virtual time has come to the end of a command, the
//! generator asks for the next one. The guest stands still until that command has come.

use sample::Nanos;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use wire::{COMMAND_BYTES, Command};

/// The commands of a session.
pub struct Commands {
    pipe: File,
    /// The command that came last. `None` before the first command.
    current: Option<Command>,
}

impl Commands {
    /// Takes the commands from this descriptor.
    ///
    /// # Safety
    /// The descriptor is open, and nobody else uses it.
    pub unsafe fn from_descriptor(fd: i32) -> Commands {
        // SAFETY: the caller promises this.
        let pipe = unsafe { File::from_raw_fd(fd) };
        Commands { pipe, current: None }
    }

    /// The command that is to be carried out now. Before the first command there is nothing to do.
    pub fn current(&self) -> Command {
        self.current.unwrap_or(Command::Run { until: Nanos(0) })
    }

    /// Waits for the next command and goes on to it. A closed pipe ends the session. So do a command that breaks off in
    /// the middle and a command that goes back in time.
    pub fn advance(&mut self) {
        let mut bytes = [0; COMMAND_BYTES];
        let next = match self.pipe.read_exact(&mut bytes) {
            Ok(()) => Command::decode(&bytes),
            Err(_) => Command::End,
        };
        let last = self.current.map(Command::at);
        self.current = Some(next.check_after(last).map_or(Command::End, |()| next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::IntoRawFd;

    fn commands(bytes: &[u8]) -> Commands {
        let (read, mut write) = std::io::pipe().expect("a pipe");
        write.write_all(bytes).expect("room for it");
        // SAFETY: the descriptor is handed over.
        unsafe { Commands::from_descriptor(read.into_raw_fd()) }
    }

    #[test]
    fn commands_come_in_their_order_and_a_closed_pipe_ends_the_session() {
        let all = [
            Command::Trigger { at: Nanos(3), high: Nanos(1) },
            Command::Run { until: Nanos(9) },
            Command::Trigger { at: Nanos(10), high: Nanos(2) },
        ];
        let mut commands = commands(&all.map(Command::encode).concat());
        for command in all {
            commands.advance();
            assert_eq!(commands.current(), command);
        }
        commands.advance();
        assert_eq!(commands.current(), Command::End);
    }

    #[test]
    fn half_a_command_and_one_that_goes_back_end_the_session() {
        let run = |until| Command::Run { until: Nanos(until) }.encode();
        let mut torn = commands(&run(7)[..9]);
        torn.advance();
        assert_eq!(torn.current(), Command::End);
        let mut back = commands(&[run(7), run(7)].concat());
        back.advance();
        back.advance();
        assert_eq!(back.current(), Command::End);
    }
}
