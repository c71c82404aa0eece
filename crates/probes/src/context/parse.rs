// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns the kernel's texts into values. Pure. A text of another form yields no value.

/// The most CPUs that Linux can be built for (`NR_CPUS`, arch/x86/Kconfig). A longer list is no list of CPUs.
pub const CPUS_MAX: u32 = 8192;

/// A list of CPUs as the kernel writes it (`0-3,5`; cpuset(7), "List format"). The result rises and has each CPU once.
/// An empty text and `none` are the empty list.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    let mut cpus = Vec::new();
    if text.is_empty() || text == "none" {
        return Some(cpus);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The inverse of [`cpu_list`] for rising CPUs. An empty list becomes `none`.
pub fn show_cpu_list(cpus: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        parts.push(match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        });
    }
    if parts.is_empty() { "none".into() } else { parts.join(",") }
}

/// The list of CPUs in a mask as the kernel writes it (`3,ffffffff`; cpuset(7), "Mask format").
pub fn cpu_mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (word, digits) in text.trim().rsplit(',').enumerate() {
        let mask = u32::from_str_radix(digits, 16).ok()?;
        let first = u32::try_from(word).ok()?.checked_mul(32)?;
        if first >= CPUS_MAX {
            return None;
        }
        cpus.extend((0..32).filter(|bit| mask >> bit & 1 == 1).map(|bit| first + bit));
    }
    Some(cpus)
}

/// The word between `open` and `close`. The kernel marks the chosen word of several in this way.
pub fn chosen(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(word, _)| word)
}

/// The value of a word of the command line. As in the kernel, the last such word holds, and words after `--` do not.
pub fn command_line_value<'a>(command_line: &'a str, key: &str) -> Option<&'a str> {
    let words = command_line.split_whitespace().take_while(|w| *w != "--");
    words.filter_map(|w| w.strip_prefix(key)?.strip_prefix('=')).last()
}

/// The text of a record of `/dev/kmsg`, without the numbers before it (Documentation/ABI/testing/dev-kmsg).
pub fn record_text(record: &str) -> &str {
    record.split_once(';').map_or(record, |(_, text)| text)
}

/// How a CPU spent its time since boot, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    pub busy: u64,
    pub idle: u64,
    pub steal: u64,
}

/// The ticks in a CPU's line of `/proc/stat` (proc_stat(5)). `user` contains a guest's time. Stolen time is separate.
pub fn ticks(stat: &str, cpu: u32) -> Option<Ticks> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find_map(|l| l.strip_prefix(&name)?.strip_prefix(' '))?;
    let values: Vec<u64> = line.split_whitespace().map_while(|w| w.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = values[..] else {
        return None;
    };
    let sum = |parts: &[u64]| parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part));
    Some(Ticks {
        busy: sum(&[user, nice, system, irq, softirq])?,
        idle: sum(&[idle, iowait])?,
        steal,
    })
}

/// A thread's real-time policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RealTime {
    /// Round-robin, with a priority of 1 … 99.
    RoundRobin(u8),
    /// First in, first out, with a priority of 1 … 99.
    Fifo(u8),
    /// A deadline, which goes before every other policy.
    Deadline,
}

impl RealTime {
    /// The priority for comparisons. A deadline is above every priority.
    pub fn priority(self) -> u8 {
        match self {
            RealTime::RoundRobin(priority) | RealTime::Fifo(priority) => priority,
            RealTime::Deadline => 100,
        }
    }
}

impl std::fmt::Display for RealTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RealTime::RoundRobin(priority) => write!(f, "rr:{priority}"),
            RealTime::Fifo(priority) => write!(f, "fifo:{priority}"),
            RealTime::Deadline => f.write_str("deadline"),
        }
    }
}

/// A thread as its line in `/proc/PID/stat` describes it (proc_pid_stat(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub id: u32,
    pub name: String,
    pub is_kernel: bool,
    pub threads_of_process: u32,
    pub real_time: Option<RealTime>,
}

/// The flag of a thread that belongs to the kernel (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

pub fn thread(stat: &str) -> Option<Thread> {
    // The name may hold anything, even parentheses. The fields after the name have none.
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The manual page counts fields from 1. The first field here is its third.
    let field = |n: usize| fields.get(n - 3);
    let flags: u32 = field(9)?.parse().ok()?;
    let priority: u8 = field(40)?.parse().ok()?;
    let real_time = match *field(41)? {
        "1" => Some(RealTime::Fifo(priority)),
        "2" => Some(RealTime::RoundRobin(priority)),
        "6" => Some(RealTime::Deadline),
        _ => None,
    };
    Some(Thread {
        id: id.parse().ok()?,
        name: name.into(),
        is_kernel: flags & PF_KTHREAD != 0,
        threads_of_process: field(20)?.parse().ok()?,
        real_time,
    })
}

/// The value of the first line `KEY: value` or `KEY\t: value`.
pub fn labelled<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let value = |l: &'a str| l.strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim);
    text.lines().find_map(value).filter(|v| !v.is_empty())
}

/// The soft limit in a line of `/proc/PID/limits`.
pub fn soft_limit<'a>(limits: &'a str, name: &str) -> Option<&'a str> {
    limits.lines().find_map(|l| l.strip_prefix(name)?.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_and_written_as_the_kernel_does() {
        for (text, cpus) in [
            ("0", vec![0]),
            ("0-3,5", vec![0, 1, 2, 3, 5]),
            ("1,3,62-64", vec![1, 3, 62, 63, 64]),
            ("none", vec![]),
        ] {
            assert_eq!(cpu_list(text), Some(cpus.clone()));
            assert_eq!(show_cpu_list(&cpus), text);
        }
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("2,0-2"), Some(vec![0, 1, 2]));
    }

    #[test]
    fn what_is_no_list_of_cpus_is_none_and_fills_no_memory() {
        for text in ["(null)", "3-1", "0-4294967295", "-1", "0,,1", "0-8192"] {
            assert_eq!(cpu_list(text), None, "{text}");
        }
        assert_eq!(cpu_mask("xyz"), None);
        assert_eq!(cpu_mask(&"0,".repeat(300)), None);
    }

    #[test]
    fn masks_count_from_the_right() {
        assert_eq!(cpu_mask("5\n"), Some(vec![0, 2]));
        assert_eq!(cpu_mask("1,00000003"), Some(vec![0, 1, 32]));
        assert_eq!(cpu_mask("0"), Some(vec![]));
    }

    #[test]
    fn the_last_word_of_the_command_line_holds_and_none_after_the_dashes() {
        let line = "quiet preempt=none irqaffinity=0 preempt=full -- preempt=lazy";
        assert_eq!(command_line_value(line, "preempt"), Some("full"));
        assert_eq!(command_line_value(line, "irqaffinity"), Some("0"));
        assert_eq!(command_line_value(line, "irq"), None);
    }

    #[test]
    fn stolen_time_is_neither_busy_nor_idle() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 40 5 6 7 8 0 0\ncpu11 9 9 9 9 9 9 9 9 9 9\n";
        assert_eq!(ticks(stat, 1), Some(Ticks { busy: 19, idle: 45, steal: 8 }));
        assert_eq!(ticks(stat, 2), None);
        assert_eq!(ticks("cpu1 1 2 3", 1), None);
        let endless = format!("cpu1 {} 1 0 0 0 0 0 0", u64::MAX);
        assert_eq!(ticks(&endless, 1), None);
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let tail = "S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 -91 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 90 1 0";
        let thread = thread(&format!("42 (a) (b) {tail}")).unwrap();
        assert_eq!((thread.id, thread.name.as_str()), (42, "a) (b"));
        assert_eq!(thread.real_time, Some(RealTime::Fifo(90)));
        assert_eq!(thread.threads_of_process, 4);
        assert!(!thread.is_kernel);
    }

    #[test]
    fn a_cut_stat_line_is_no_thread() {
        for text in ["", "42", "42 (a", "42 (a) S 1 1"] {
            assert_eq!(thread(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_chosen_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never", '[', ']'), Some("madvise"));
        assert_eq!(chosen("none voluntary (full)", '(', ')'), Some("full"));
        assert_eq!(chosen("none", '(', ')'), None);
    }

    #[test]
    fn limits_and_labels_are_found_by_name() {
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  8388608  unlimited  bytes\n";
        assert_eq!(soft_limit(limits, "Max locked memory"), Some("8388608"));
        let cpuinfo =
            "processor\t: 0\nmodel name\t: A CPU\nmicrocode\t: 0x1\nprocessor\t: 1\nempty:\n";
        assert_eq!(labelled(cpuinfo, "model name"), Some("A CPU"));
        assert_eq!(labelled(cpuinfo, "model"), None);
        assert_eq!(labelled(cpuinfo, "empty"), None);
    }
}
