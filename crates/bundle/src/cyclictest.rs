// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads results that cyclictest (rt-tests) wrote: the file of `--json=FILE`, and the output of `--histogram` or
//! `--histofall`. Both say how many loops had which latency, and do not have single loops.

use sample::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The most loops of a file. Each becomes a sample, and takes 40 bytes of a journal while the bundle is made.
pub const LOOPS_MAX: u64 = 1 << 26;
/// The most threads of a file.
const THREADS_MAX: usize = 4096;

/// The content of a file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The command line, if the file has it.
    pub command: Option<String>,
    /// The version of rt-tests, if the file has it.
    pub version: Option<String>,
    /// The time of the measurement in the file's words, if the file has it.
    pub begun: Option<String>,
    /// The kernel's release and build (`uname -r`, `uname -v`), if the file has them.
    pub kernel: Option<(String, String)>,
    /// The resolution: a true latency is that of its row, or longer by less than this.
    pub resolution: Nanos,
    /// The loops of each thread.
    pub threads: Vec<Thread>,
}

/// The loops of a measuring thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// The thread's name. If its CPU is known, a name such as `thread0-cpu3`.
    pub name: String,
    /// How many loops had which latency. The latencies rise. Loops beyond the histogram's range count with the longest
    /// latency, which the file has.
    pub latencies: Vec<(Nanos, u64)>,
    /// The number of loops beyond the range.
    pub beyond: u64,
}

impl Thread {
    /// The number of the thread's loops.
    pub fn loops(&self) -> u64 {
        self.latencies.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }
}

/// Why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// The file is neither JSON nor a histogram of cyclictest.
    Unknown(String),
    /// The file is cyclictest's, and has no histogram.
    NoHistogram,
    /// The file has more loops, or threads, than onset imports.
    TooMany(u64),
    /// The file has numbers that contradict each other.
    Contradiction(String),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(why) => write!(
                f,
                "this is neither the JSON nor the histogram of cyclictest ({why}); give the file of cyclictest --histogram=400 --json=FILE, \
                 or the output of cyclictest --histogram=400 --quiet"
            ),
            Self::NoHistogram => f.write_str(
                "cyclictest ran without a histogram, so the file has only minimum, average and maximum; run cyclictest with --histogram=400",
            ),
            Self::TooMany(n) => write!(f, "the file has {n} loops, and onset imports at most {LOOPS_MAX}; measure with onset instead"),
            Self::Contradiction(what) => write!(f, "the numbers contradict each other: {what}"),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reads a file in either format.
///
/// # Errors
/// [`ImportError`] says what is wrong with the file, and which file is wanted.
pub fn read(text: &str) -> Result<Imported, ImportError> {
    let imported = match text.trim_start().starts_with('{') {
        true => json(text)?,
        false => histogram(text)?,
    };
    if imported.threads.iter().all(|thread| thread.loops() == 0) {
        return Err(ImportError::NoHistogram);
    }
    let loops = imported.threads.iter().fold(0u64, |sum, t| sum.saturating_add(t.loops()));
    if loops > LOOPS_MAX || imported.threads.len() > THREADS_MAX {
        return Err(ImportError::TooMany(loops));
    }
    Ok(imported)
}

/// The file of `--json` (rt-tests 1.10 and later, `rt_write_json`). Two keys of this format contain colons.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command: Option<String>,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: Option<String>,
    start_time: Option<String>,
    sysinfo: Option<System>,
    resolution_in_ns: Option<u8>,
    thread: BTreeMap<u32, FileThread>,
}

#[derive(Deserialize)]
struct System {
    release: String,
    version: String,
}

#[derive(Deserialize)]
struct FileThread {
    #[serde(default)]
    histogram: BTreeMap<u64, u64>,
    cycles: u64,
    max: u64,
    cpu: Option<u32>,
}

fn json(text: &str) -> Result<Imported, ImportError> {
    let file: File = serde_json::from_str(text).map_err(|e| ImportError::Unknown(e.to_string()))?;
    let resolution = Nanos(if file.resolution_in_ns == Some(1) { 1 } else { 1_000 });
    let thread = |(index, thread): (u32, FileThread)| {
        let cpu = thread.cpu.map_or_else(String::new, |cpu| format!("-cpu{cpu}"));
        let name = format!("thread{index}{cpu}");
        if thread.histogram.is_empty() && thread.cycles > 0 {
            return Err(ImportError::NoHistogram);
        }
        let counted = thread.histogram.values().fold(0u64, |sum, n| sum.saturating_add(*n));
        let beyond = thread.cycles.checked_sub(counted).ok_or_else(|| {
            let cycles = thread.cycles;
            ImportError::Contradiction(format!(
                "{name} has {counted} loops in its histogram and {cycles} cycles"
            ))
        })?;
        of_thread(name, thread.histogram.into_iter().collect(), (thread.max, beyond), resolution)
    };
    let threads = file.thread.into_iter().map(thread).collect::<Result<_, _>>()?;
    Ok(Imported {
        command: file.command,
        version: file.version,
        begun: file.start_time,
        kernel: file.sysinfo.map(|system| (system.release, system.version)),
        resolution,
        threads,
    })
}

/// A thread with these rows (latency, loops). `beyond` more loops had a latency of at most `max`.
fn of_thread(
    name: String,
    rows: Vec<(u64, u64)>,
    (max, beyond): (u64, u64),
    resolution: Nanos,
) -> Result<Thread, ImportError> {
    let length = |n: u64| Nanos(n.saturating_mul(resolution.0));
    let mut latencies: Vec<(Nanos, u64)> =
        rows.into_iter().filter(|(_, n)| *n > 0).map(|(at, n)| (length(at), n)).collect();
    latencies.sort_unstable();
    let longest = latencies.last().map_or(Nanos(0), |(at, _)| *at);
    if beyond > 0 && length(max) < longest {
        let what = format!("{name} has a maximum of {} and a loop of {longest}", length(max));
        return Err(ImportError::Contradiction(what));
    }
    if beyond > 0 {
        latencies.push((length(max), beyond));
    }
    Ok(Thread { name, latencies, beyond })
}

/// Reads the output of `--histogram`: a row has a latency and the loops of each thread, and then come lines that begin
/// with `#`. `--histofall` has one more column: the sum of the others.
fn histogram(text: &str) -> Result<Imported, ImportError> {
    let mut rows: Vec<(u64, Vec<u64>)> = Vec::new();
    let (mut maxima, mut overflows) = (Vec::new(), Vec::new());
    let is_summary = text.lines().any(|line| line.starts_with("T:") && line.contains("Max:"));
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let number = |word: &str| {
            let wrong =
                || ImportError::Unknown(format!("line {}: {word:?} is no number", index + 1));
            word.parse::<u64>().map_err(|_| wrong())
        };
        let numbers =
            |text: &str| text.split_whitespace().map(number).collect::<Result<Vec<u64>, _>>();
        if let Some(text) = line.strip_prefix("# Max Latencies:") {
            maxima = numbers(text)?;
        } else if let Some(text) = line.strip_prefix("# Histogram Overflows:") {
            overflows = numbers(text)?;
        } else if line.is_empty() || line.starts_with(['#', '/', 'T', 'p', 'W']) {
            // Other remarks, progress and warnings are ignored.
        } else {
            let row = numbers(line)?;
            let (at, loops) = row.split_first().expect("a line that is not empty has a word");
            rows.push((*at, loops.to_vec()));
        }
    }
    if maxima.is_empty() {
        return Err(match is_summary {
            true => ImportError::NoHistogram,
            false => ImportError::Unknown("there is no line \"# Max Latencies:\"".into()),
        });
    }
    // With --histofall the sum has a column of its own. In some versions these lines have that column, too.
    let wide = rows.first().map_or(0, |(_, loops)| loops.len());
    let threads = overflows.len().min(maxima.len()).min(wide.max(1));
    if rows.iter().any(|(_, loops)| loops.len() != wide) || wide > threads + 1 {
        return Err(ImportError::Unknown("its rows do not have one number for each thread".into()));
    }
    let resolution = Nanos(1_000);
    let thread = |index: usize| {
        let rows = rows.iter().filter_map(|(at, loops)| Some((*at, *loops.get(index)?))).collect();
        of_thread(format!("thread{index}"), rows, (maxima[index], overflows[index]), resolution)
    };
    let threads = (0..threads).map(thread).collect::<Result<_, _>>()?;
    let none = None::<String>;
    Ok(Imported {
        command: none.clone(),
        version: none.clone(),
        begun: none,
        kernel: None,
        resolution,
        threads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that rt-tests 2.4 writes.
    const JSON: &str = r#"{
  "file_version": 1, "cmdline:": "cyclictest -q -t2 -h 60", "rt_test_version:": "2.40",
  "start_time": "Wed, 25 Nov 2026 12:44:34 +0000", "return_code": 0,
  "sysinfo": { "sysname": "Linux", "nodename": "vm", "release": "6.18.4", "version": "\u00231 SMP", "machine": "x86_64", "realtime": 0 },
  "num_threads": 2, "resolution_in_ns": 0,
  "thread": {
    "0": { "histogram": { "58": 6, "59": 18 }, "cycles": 27, "min": 58, "max": 3689, "avg": 86.59, "cpu": 0, "node": 0 },
    "1": { "histogram": { "24": 1, "9": 5 }, "cycles": 6, "min": 9, "max": 24, "avg": 12.5, "cpu": 1, "node": 0 }
  }
}"#;

    /// The text that rt-tests 2.4 prints.
    const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\t000000\n000009 000000\t000005\n\
        000024 000000\t000001\n000058 000006\t000000\n000059 000018\t000000\n# Total: 000000024 000000006\n\
        # Min Latencies: 00058 00009\n# Avg Latencies: 00086 00012\n# Max Latencies: 03689 00024\n\
        # Histogram Overflows: 00003 00000\n# Histogram Overflow at cycle number:\n# Thread 0: 00001 00002 00003\n# Thread 1:\n\n";

    fn latencies(thread: &Thread) -> Vec<(u64, u64)> {
        thread.latencies.iter().map(|(at, n)| (at.0, *n)).collect()
    }

    #[test]
    fn both_formats_tell_the_same_and_loops_beyond_the_range_count_as_the_longest() {
        for text in [JSON, HISTOGRAM] {
            let imported = read(text).unwrap();
            assert_eq!(
                latencies(&imported.threads[0]),
                [(58_000, 6), (59_000, 18), (3_689_000, 3)]
            );
            assert_eq!(latencies(&imported.threads[1]), [(9_000, 5), (24_000, 1)]);
            assert_eq!(imported.threads[0].beyond, 3);
        }
        let json = read(JSON).unwrap();
        assert_eq!(json.threads[1].name, "thread1-cpu1");
        assert_eq!(json.kernel.unwrap().0, "6.18.4");
        let fine = JSON.replace("\"resolution_in_ns\": 0", "\"resolution_in_ns\": 1");
        assert_eq!(latencies(&read(&fine).unwrap().threads[1]), [(9, 5), (24, 1)]);
    }

    #[test]
    fn the_sum_of_all_threads_is_none() {
        let sum = HISTOGRAM.replace("000058 000006\t000000", "000058 000006\t000000\t000006");
        // A text with one row of another number of columns is no histogram.
        assert!(matches!(read(&sum), Err(ImportError::Unknown(_))));
        let all: String = HISTOGRAM
            .lines()
            .map(|line| match line.starts_with("0000") {
                true => format!("{line}\t000000\n"),
                false => format!("{line}\n"),
            })
            .collect();
        assert_eq!(read(&all), read(HISTOGRAM));
    }

    #[test]
    fn what_has_no_histogram_or_is_none_of_both_is_refused_with_what_to_give() {
        let summary = "T: 0 (15185) P: 0 I:500 C:    100 Min:  59585 Act:   78764 Avg:   82462 Max:  388426\n";
        assert_eq!(read(summary), Err(ImportError::NoHistogram));
        let empty = JSON.replace("\"58\": 6, \"59\": 18", "");
        assert_eq!(read(&empty), Err(ImportError::NoHistogram));
        for text in ["", "{}", "hello", "{\"thread\": [1]}", "0001 x\n# Max Latencies: 1\n"] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains("--histogram"), "{text:?}: {error}");
        }
        let many = JSON
            .replace("\"58\": 6", "\"58\": 18446744073709551615")
            .replace("\"cycles\": 27", "\"cycles\": 18446744073709551615");
        assert!(matches!(
            read(&many),
            Err(ImportError::TooMany(_) | ImportError::Contradiction(_))
        ));
        let few = JSON.replace("\"cycles\": 27", "\"cycles\": 2");
        assert!(matches!(read(&few), Err(ImportError::Contradiction(_))));
    }
}
