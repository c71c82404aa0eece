// SPDX-License-Identifier: GPL-2.0-or-later
//! The triggers of a session as an experiment: `onset run` of it is a deterministic run with the samples of the
//! session. The file grows with them, and is whole after each addition.

use super::Fired;
use sample::Nanos;
use std::fmt::Write as _;
use std::io::{self, Seek, SeekFrom, Write};

/// An experiment that grows. Its memory does not.
pub struct Log<W> {
    out: W,
    /// Where the list of times goes on: behind that is only its end.
    end: u64,
    /// The last trigger.
    last: Option<Nanos>,
    /// The shortest time between two triggers, and the shortest time that the line was high.
    gap: Option<Nanos>,
    high: Option<Nanos>,
}

impl<W: Write + Seek> Log<W> {
    /// An experiment without triggers yet, in the guest that `root` says: the keys of an experiment without a
    /// `[trigger]`. `out` is empty.
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(root: &str, mut out: W) -> io::Result<Log<W>> {
        let text = format!(
            "# The triggers of a session of `onset generator`, by their virtual times. `onset run` of this file gives the\n\
             # samples of the session again.\n{}\n\n[trigger]\ntimes = [\n",
            root.trim_end()
        );
        out.write_all(text.as_bytes())?;
        Ok(Log { out, end: text.len() as u64, last: None, gap: None, high: None })
    }

    /// Adds triggers, which come after those before.
    ///
    /// How long the line was high differs between the runs of a session, and an experiment has one `duty`. That changes
    /// no sample: the guest's interrupt is raised by the rising edge alone. The log takes the shortest.
    ///
    /// # Errors
    /// Those of the file; the next addition then repeats nothing of this one.
    pub fn add(&mut self, fired: &[Fired]) -> io::Result<()> {
        let shorter =
            |least: Option<Nanos>, time| Some(least.map_or(time, |least| least.min(time)));
        let mut text = String::new();
        for Fired { at, high } in fired {
            self.gap = self.last.map_or(self.gap, |last| shorter(self.gap, *at - last));
            (self.high, self.last) = (shorter(self.high, *high), Some(*at));
            let _ = writeln!(text, "    \"{}ns\",", at.0);
        }
        let Some(high) = self.high.filter(|_| !fired.is_empty()) else { return Ok(()) };
        let times = text.len() as u64;
        // Of a single trigger `duty` is a share of a millisecond.
        let distance = self.gap.unwrap_or(Nanos::from_millis(1));
        let duty = (high.0 as f64 / distance.0 as f64).clamp(1e-6, 0.9);
        let _ = writeln!(text, "]\nduty = {duty:.6}");
        // The old end is shorter than what takes its place, and one call writes all of that.
        self.out.seek(SeekFrom::Start(self.end))?;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        self.end += times;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Experiment, Instrument};
    use std::io::Cursor;
    use std::path::Path;

    const ROOT: &str =
        "title = \"log\"\ntarget = \"rig\"\nflavours = [\"a\"]\nloads = [\"idle\"]\n";

    /// The times of the experiment that the log is now, and how long its line is high.
    fn read(log: &Log<Cursor<Vec<u8>>>) -> (Vec<Nanos>, Nanos) {
        let text = std::str::from_utf8(log.out.get_ref()).expect("text");
        let experiment = Experiment::parse(Path::new("t.toml"), text).expect("it is whole");
        let cell = experiment.cells().next().expect("a cell");
        let Instrument::Generator(generator) = cell.instrument else { panic!("it is triggered") };
        let trigger = &generator.trigger;
        let count = trigger.schedule.count();
        let times = (0..count).map(|n| trigger.schedule.due(n).expect("an instant"));
        (times.collect(), trigger.high)
    }

    #[test]
    fn a_log_that_grew_in_pieces_is_a_whole_experiment_after_each_and_has_all_of_them() {
        let mut log = Log::new(ROOT, Cursor::new(Vec::new())).expect("memory");
        let fired: Vec<Fired> = (1..=700_u64)
            .map(|n| Fired { at: Nanos(n * 100_000 + n % 7), high: Nanos(10_000 + n) })
            .collect();
        let mut done = 0;
        for piece in [1, 0, 2, 97, 600] {
            log.add(&fired[done..done + piece]).expect("memory");
            done += piece;
            let (times, high) = read(&log);
            assert!(times.iter().eq(fired[..done].iter().map(|fired| &fired.at)), "{done}");
            assert!(high > Nanos(9_000) && high <= Nanos(10_001), "{done}: {high}");
        }
    }
}
