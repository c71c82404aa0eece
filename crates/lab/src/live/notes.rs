// SPDX-License-Identifier: GPL-2.0-or-later
//! What a conversation keeps beside its numbers: notes of the user, and self-tests of the generator.

use super::run::Base;
use super::{Answer, Live};
use crate::Error;
use sample::Nanos;
use wire::generator::{Command, SelfTest, Why};

/// A note of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The triggers that had come.
    pub triggers: u64,
    /// The time of the conversation.
    pub elapsed: Nanos,
    /// What the user noted: a line.
    pub note: String,
}

/// A self-test of the generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The triggers that had come.
    pub triggers: u64,
    /// What it measured of itself, or why it could not.
    pub outcome: Result<SelfTest, String>,
}

/// How many marks a conversation has at most, and how long a note is at most, in bytes.
const MARKS_MAX: usize = 1_000;
const NOTE_MAX: usize = 200;

impl Live {
    /// Keeps a note of the user with the present time.
    ///
    /// # Errors
    /// [`Error::Unfit`] for what is no short line, and where there are too many.
    pub fn mark(&mut self, note: &str) -> Result<(), Error> {
        let note = note.trim();
        if note.len() > NOTE_MAX || note.chars().any(char::is_control) {
            return Err(Error::Unfit(format!("a note is one line of at most {NOTE_MAX} bytes")));
        }
        if self.marks.len() >= MARKS_MAX {
            return Err(Error::Unfit(format!(
                "there are {MARKS_MAX} marks, which are all that are kept"
            )));
        }
        let Base { triggers, elapsed } = self.so_far();
        self.marks.push(Mark { triggers, elapsed, note: note.into() });
        Ok(())
    }

    /// The notes of the user.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Has the generator test itself, between runs, and keeps what came out. A generator without pins cannot, and is
    /// not asked for more.
    ///
    /// # Errors
    /// Those of the line.
    pub fn test(&mut self) -> Result<(), Error> {
        let outcome = match self.answer_to(Command::Test)? {
            Answer::Tested(test) => Ok(test),
            Answer::Refused(refused) if refused.why == Why::Unsupported => return Ok(()),
            Answer::Refused(refused) => Err(refused.to_string()),
            _ => return Err(self.broken("it answers a self-test with something else")),
        };
        self.tests.push(Tested { triggers: self.so_far().triggers, outcome });
        Ok(())
    }

    /// The self-tests of the generator.
    pub fn tests(&self) -> &[Tested] {
        &self.tests
    }
}
