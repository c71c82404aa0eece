// SPDX-License-Identifier: GPL-2.0-or-later
//! `[task] program`: the user's own program, which answers triggers as the `task` responder, or whose own cycles the
//! probe `cycles` judges.

use super::document::Value;
use super::paths::Paths;
use super::read::{Reader, Section};
use super::{Instrument, Target};
use agent::PROGRAMS;
use probes::Probe;
use sample::Responder;
use std::path::{Path, PathBuf};

const EXAMPLE: &str = "[\"./my-loop\", \"--gain\", \"2\"]";

/// A program of the user, which is the task that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file on the host. A relative path has been resolved against the experiment's directory.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Program {
    /// The command on this machine.
    pub fn command(&self) -> Vec<String> {
        self.command_at(&self.path)
    }

    /// The command in the rig's guest, which has the program under its own name.
    pub fn guest_command(&self) -> Vec<String> {
        let name = self.path.file_name().unwrap_or_default();
        self.command_at(&Path::new(PROGRAMS).join(name))
    }

    fn command_at(&self, path: &Path) -> Vec<String> {
        let path = path.to_string_lossy().into_owned();
        std::iter::once(path).chain(self.arguments.iter().cloned()).collect()
    }
}

/// Reads the program: one text, its path, or a list with its arguments behind. `None` also if a problem was noted.
pub(super) fn read(
    reader: &mut Reader,
    task: &Section,
    paths: &Paths,
    target: Option<Target>,
) -> Option<Program> {
    let entry = task.entry("program")?;
    let at = &entry.node.at;
    // An experiment may be somebody else's. The rig runs the program in its guest.
    if target == Some(Target::Local) && at.is_in_file() {
        let help = "a file of somebody else must not run programs here: leave program out of the file, and name it on the \
                    command line: --set 'task.program=[\"./my-loop\"]'";
        reader.note(at, "the file names a program to run on this machine", help);
        return None;
    }
    let words = match &entry.node.value {
        Value::Text(path) => vec![path.clone()],
        Value::List(list) => {
            let text = |value: &Value| match value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            };
            list.iter().map(|node| text(&node.value)).collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let [path, arguments @ ..] = &words[..] else {
        let help = format!("write for example program = {EXAMPLE}");
        reader.note(at, "program has to be a path, or a list of a path and arguments", help);
        return None;
    };
    if words.iter().any(|word| word.contains('\0')) || Path::new(path).file_name().is_none() {
        let help = "name the file of the program, without the NUL character";
        reader.note(at, format!("{path:?} is no program"), help);
        return None;
    }
    Some(Program { path: paths.whole(path), arguments: arguments.to_vec() })
}

/// Whether the probe starts the user's program.
pub(super) fn starts(probe: &Probe) -> bool {
    matches!(probe, Probe::Cycles(_))
}

/// Notes a program that nothing measures.
pub(super) fn check(reader: &mut Reader, task: &Section, instruments: &[Instrument]) {
    let measures = |instrument: &Instrument| match instrument {
        Instrument::Generator(generator) => generator.responders.contains(Responder::Task),
        Instrument::Probe(plan) => starts(&plan.probe),
    };
    if let Some(entry) = task.entry("program")
        && !instruments.iter().any(measures)
    {
        let help = "it answers triggers as the responder task (add [trigger], and task to responders), or has cycles of \
                    its own (add [cycles])";
        reader.note(&entry.key_at, "nothing measures the program", help);
    }
}
