// SPDX-License-Identifier: GPL-2.0-or-later
//! What a session tells the plugin while the guest runs, over a pipe: [`COMMAND_BYTES`] bytes a command.
//!
//! Virtual time never passes the last instant that was commanded. The guest stands still there until the next command
//! comes, so its history depends on the commands alone and not on when they were written.

use core::fmt;
use sample::Nanos;

/// Bytes of an encoded command, little endian: `at_ns:u64 high_ns:u64`.
pub const COMMAND_BYTES: usize = 16;

/// What the plugin is to do next. Instants count from where measuring began, and rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Raise the interrupt line at this instant.
    Trigger {
        /// When.
        at: Nanos,
        /// How long the line stays high; above 0.
        high: Nanos,
    },
    /// Let the guest run to this instant, and raise nothing.
    Run {
        /// To when.
        until: Nanos,
    },
    /// Raise nothing any more: the run ends as one whose schedule is over, after the last answers.
    End,
}

/// A command that cannot follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongCommand {
    /// Its instant is not after the last one, which is this.
    NotAfter(Nanos),
    /// A trigger whose line would not rise.
    NoHigh,
    /// The session was told to end before.
    AfterTheEnd,
}

impl fmt::Display for WrongCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongCommand::NotAfter(last) => {
                write!(f, "the instant of a command has to be after {} ns, the last one", last.0)
            }
            WrongCommand::NoHigh => {
                f.write_str("the line of a trigger has to be high for 1 ns or more")
            }
            WrongCommand::AfterTheEnd => f.write_str("the session has been told to end"),
        }
    }
}

impl core::error::Error for WrongCommand {}

/// The instant of [`Command::End`].
const NEVER: Nanos = Nanos(u64::MAX);

impl Command {
    /// Its instant; the last possible one for [`Command::End`].
    pub fn at(self) -> Nanos {
        match self {
            Command::Trigger { at, .. } => at,
            Command::Run { until } => until,
            Command::End => NEVER,
        }
    }

    /// Its bytes.
    pub fn encode(self) -> [u8; COMMAND_BYTES] {
        let high = match self {
            Command::Trigger { high, .. } => high,
            Command::Run { .. } | Command::End => Nanos(0),
        };
        let mut bytes = [0; COMMAND_BYTES];
        bytes[..8].copy_from_slice(&self.at().0.to_le_bytes());
        bytes[8..].copy_from_slice(&high.0.to_le_bytes());
        bytes
    }

    /// What these bytes say. All bytes are a command; a trigger at the last possible instant is none, and ends.
    pub fn decode(bytes: &[u8; COMMAND_BYTES]) -> Command {
        let word = |from: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[from..from + 8]);
            Nanos(u64::from_le_bytes(word))
        };
        match (word(0), word(8)) {
            (NEVER, _) => Command::End,
            (until, Nanos(0)) => Command::Run { until },
            (at, high) => Command::Trigger { at, high },
        }
    }

    /// Whether this may follow a command of the instant `last`; `None` where there was none.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check_after(self, last: Option<Nanos>) -> Result<(), WrongCommand> {
        match (self, last) {
            (_, Some(NEVER)) => Err(WrongCommand::AfterTheEnd),
            (Command::Trigger { high: Nanos(0), .. }, _) => Err(WrongCommand::NoHigh),
            (Command::End, _) => Ok(()),
            (other, Some(last)) if other.at() <= last => Err(WrongCommand::NotAfter(last)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_rise_and_nothing_follows_the_end() {
        let run = |until| Command::Run { until: Nanos(until) };
        let trigger = |at, high| Command::Trigger { at: Nanos(at), high: Nanos(high) };
        assert_eq!(run(0).check_after(None), Ok(()));
        assert_eq!(trigger(5, 1).check_after(Some(Nanos(4))), Ok(()));
        assert_eq!(
            trigger(5, 1).check_after(Some(Nanos(5))),
            Err(WrongCommand::NotAfter(Nanos(5)))
        );
        assert_eq!(trigger(5, 0).check_after(None), Err(WrongCommand::NoHigh));
        assert_eq!(Command::End.check_after(Some(Nanos(5))), Ok(()));
        assert_eq!(Command::End.check_after(Some(NEVER)), Err(WrongCommand::AfterTheEnd));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_that_reads_back(bytes: [u8; COMMAND_BYTES]) {
            let command = Command::decode(&bytes);
            prop_assert_eq!(Command::decode(&command.encode()), command);
            if command != Command::End {
                prop_assert_eq!(command.encode(), bytes);
            }
        }
    }
}
