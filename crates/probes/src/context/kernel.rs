// SPDX-License-Identifier: GPL-2.0-or-later
//! The context of the kernel: its release and options, its preemption mode, its limit for real-time tasks, and its
//! clock.

use super::parse::{chosen, command_line_value};
use super::tree::Tree;
use super::{Context, boot, keys};
use flate2::read::GzDecoder;
use std::io::Read;

/// The most bytes of a configuration that are read. The kernel's own configuration has some 300 kB.
const CONFIG_BYTES_MAX: u64 = 4 << 20;

/// Options that find the kernel's defects and make its paths longer. Debian's kernels have none of them.
const DEBUG_OPTIONS: [&str; 22] = [
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "DEBUG_PREEMPT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_RWSEMS",
    "DEBUG_SPINLOCK",
    "DEBUG_VM",
    "GCOV_KERNEL",
    "KASAN",
    "KCOV",
    "KCSAN",
    "KMSAN",
    "LOCKDEP",
    "LOCK_STAT",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "SLUB_DEBUG_ON",
    "UBSAN_TRAP",
];

/// Files that show that an option is set, for kernels whose configuration cannot be read.
const TRACES: [(&str, &str); 3] = [
    ("proc/lockdep", "LOCKDEP"),
    ("proc/lock_stat", "LOCK_STAT"),
    ("proc/sys/kernel/prove_locking", "PROVE_LOCKING"),
];

pub fn read(tree: &Tree, context: &mut Context) {
    let release = tree.text("proc/sys/kernel/osrelease");
    let build = tree.text("proc/sys/kernel/version");
    let command_line = tree.text("proc/cmdline");
    for (key, path) in command_line.iter().flat_map(|line| sysctls(line)) {
        context.set(key, tree.text(&path));
    }
    let config = configuration(tree, release.as_deref());
    let options = config.as_ref().map_or("", |(_, text)| text);
    let log = tree.whole("dev/kmsg").filter(|log| !log.is_empty());
    let unknown = log.as_deref().and_then(boot::unknown_words);
    let modes = tree.text("sys/kernel/debug/sched/preempt");
    let preemption = preemption(&Said {
        realtime: tree.text("sys/kernel/realtime").as_deref() == Some("1"),
        active: modes.as_deref().unwrap_or_default(),
        build: build.as_deref().unwrap_or_default(),
        command_line: command_line.as_deref().unwrap_or_default(),
        unknown: unknown.as_deref().unwrap_or_default(),
        config: options,
    });
    context.set(keys::PREEMPTION, preemption);
    context.set(keys::PREEMPTION_MODE, modes.as_deref().and_then(|m| chosen(m, '(', ')')));
    context.set(keys::PREEMPTION_MODES, modes.as_deref().map(|m| m.replace(['(', ')'], "")));
    context.set(keys::BOOT_WORDS_UNKNOWN, unknown);
    context.set(keys::BOOT_WORDS_REFUSED, log.as_deref().and_then(boot::refused_words));
    context.set(keys::DEBUG_OPTIONS, debug_options(tree, config.as_ref().map(|c| c.1.as_str())));
    context.set(keys::HZ, hz(options));
    context.set(keys::CONFIG, config.map(|(path, _)| path));
    let line = command_line.as_deref().unwrap_or_default();
    context.set(keys::IRQAFFINITY, command_line_value(line, "irqaffinity"));
    context.set(keys::RELEASE, release);
    context.set(keys::BUILD, build);
    context.set(keys::COMMAND_LINE, command_line);
    // The file exists since Linux 6.1. An older kernel can only run programs of this program's own architecture.
    let architecture = tree.text("proc/sys/kernel/arch");
    context
        .set(keys::ARCHITECTURE, architecture.or_else(|| Some(std::env::consts::ARCH.to_owned())));
    for (key, path) in [
        (keys::TAINT, "proc/sys/kernel/tainted"),
        (keys::RT_RUNTIME_US, "proc/sys/kernel/sched_rt_runtime_us"),
        (keys::RT_PERIOD_US, "proc/sys/kernel/sched_rt_period_us"),
    ] {
        context.set(key, tree.number(path));
    }
    context.set(keys::RT_THROTTLED, log.as_deref().map(throttled));
    let clock = "sys/devices/system/clocksource/clocksource0";
    context.set(keys::CLOCKSOURCE, tree.text(&format!("{clock}/current_clocksource")));
    context.set(keys::CLOCKSOURCES_AVAILABLE, tree.text(&format!("{clock}/available_clocksource")));
    let thp = tree.text("sys/kernel/mm/transparent_hugepage/enabled");
    context.set(keys::THP, thp.as_deref().and_then(|t| chosen(t, '[', ']')));
    let averages = tree.text("proc/loadavg");
    let first_three = |t: &str| t.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    context.set(keys::LOAD_AVERAGE, averages.as_deref().map(first_three));
}

/// The words of a command line that set what is below /proc/sys, each with its file. The kernel takes `/` for `.` too
/// (fs/proc/proc_sysctl.c, `process_sysctl_arg`).
fn sysctls(line: &str) -> impl Iterator<Item = (&str, String)> {
    let words = line.split_whitespace().take_while(|word| *word != "--");
    words.filter_map(|word| {
        let (key, _) = word.split_once('=')?;
        let name = key.strip_prefix(keys::SYSCTL)?;
        Some((key, format!("proc/sys/{}", name.replace('.', "/"))))
    })
}

/// Where the configuration was found, and the text of the configuration.
fn configuration(tree: &Tree, release: Option<&str>) -> Option<(String, String)> {
    for path in release.into_iter().flat_map(|release| {
        [format!("boot/config-{release}"), format!("lib/modules/{release}/config")]
    }) {
        if let Some(text) = tree.text(&path) {
            return Some((format!("/{path}"), text));
        }
    }
    let packed = tree.bytes("proc/config.gz")?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(("/proc/config.gz".into(), text))
}

fn is_set(config: &str, option: &str) -> bool {
    let value =
        |l: &str| l.strip_prefix("CONFIG_").and_then(|l| l.strip_prefix(option)) == Some("=y");
    config.lines().any(value)
}

/// `CONFIG_HZ` of a kernel's configuration (kernel/Kconfig.hz). `None` where the text has no such line.
pub fn hz(config: &str) -> Option<u32> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.trim().parse().ok())
}

/// The debug options that are set. Absent where neither the configuration nor a file of an option was found.
fn debug_options(tree: &Tree, config: Option<&str>) -> Option<String> {
    let text = config.unwrap_or_default();
    let traced = |option: &str| TRACES.iter().any(|(path, o)| *o == option && tree.exists(path));
    let set = |option: &&str| is_set(text, option) || traced(option);
    let found: Vec<&str> = DEBUG_OPTIONS.into_iter().filter(set).collect();
    match (found.is_empty(), config) {
        (true, None) => None,
        (true, Some(_)) => Some("none".into()),
        (false, _) => Some(found.join(" ")),
    }
}

/// The places in which the kernel says something about its preemption.
struct Said<'a> {
    realtime: bool,
    /// The models that can be chosen while the kernel runs, with the active one in parentheses.
    active: &'a str,
    build: &'a str,
    command_line: &'a str,
    /// Words of the command line that the kernel did not know.
    unknown: &'a str,
    config: &'a str,
}

/// The preemption model by the most immediate statement. Absent where the kernel makes no statement.
fn preemption(said: &Said) -> Option<&'static str> {
    const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];
    let built = |flag: &str| said.build.split_whitespace().any(|w| w == flag);
    if said.realtime || built("PREEMPT_RT") {
        return Some("rt");
    }
    let dynamic = built("PREEMPT_DYNAMIC");
    let asked = command_line_value(said.command_line, "preempt").filter(|asked| {
        let is_refused = |word: &str| word.strip_prefix("preempt=") == Some(*asked);
        dynamic && !said.unknown.split_whitespace().any(is_refused)
    });
    let named = |word: &str| MODELS.into_iter().find(|m| *m == word);
    let by_default = [
        ("PREEMPT_NONE", "none"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
    ];
    let configured = || by_default.into_iter().find(|(o, _)| is_set(said.config, o)).map(|d| d.1);
    chosen(said.active, '(', ')')
        .and_then(named)
        .or_else(|| asked.and_then(named))
        .or_else(configured)
        // Without all of these, a kernel that names PREEMPT is fully preemptible unless it is dynamic.
        .or_else(|| built("PREEMPT").then_some("full"))
}

/// Whether the kernel's log has the line of sched_rt_runtime_exceeded() (kernel/sched/rt.c), which it prints once.
fn throttled(log: &str) -> bool {
    log.contains("sched: RT throttling activated")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<'a>(build: &'a str, command_line: &'a str, config: &'a str) -> Said<'a> {
        Said { realtime: false, active: "", build, command_line, unknown: "", config }
    }

    #[test]
    fn the_active_model_outweighs_the_asked_and_that_the_configured_one() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Debian";
        let config = "CONFIG_PREEMPT_VOLUNTARY=y\n";
        let mut all = said(dynamic, "preempt=full", config);
        all.active = "none (voluntary) full";
        assert_eq!(preemption(&all), Some("voluntary"));
        assert_eq!(preemption(&said(dynamic, "preempt=full", config)), Some("full"));
        assert_eq!(preemption(&said(dynamic, "quiet", config)), Some("voluntary"));
        assert_eq!(preemption(&said(dynamic, "quiet", "")), None);
    }

    #[test]
    fn a_model_that_the_kernel_did_not_know_is_not_taken_for_active() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Debian";
        let mut all = said(dynamic, "preempt=none", "CONFIG_PREEMPT_LAZY=y\n");
        all.unknown = "nosuch preempt=none";
        assert_eq!(preemption(&all), Some("lazy"));
        all.config = "";
        assert_eq!(preemption(&all), None);
    }

    #[test]
    fn a_real_time_kernel_is_one_whatever_else_it_says() {
        let mut rt = said("#1 SMP PREEMPT_RT Debian", "preempt=none", "CONFIG_PREEMPT_RT=y\n");
        assert_eq!(preemption(&rt), Some("rt"));
        (rt.realtime, rt.build) = (true, "#1 SMP PREEMPT RT");
        assert_eq!(preemption(&rt), Some("rt"));
    }

    #[test]
    fn a_kernel_that_is_not_dynamic_ignores_its_command_line() {
        assert_eq!(preemption(&said("#1 SMP PREEMPT Tue", "preempt=none", "")), Some("full"));
        assert_eq!(
            preemption(&said("#1 SMP Tue", "preempt=full", "CONFIG_PREEMPT_NONE=y\n")),
            Some("none")
        );
        assert_eq!(preemption(&said("#1 SMP Tue", "", "")), None);
    }

    #[test]
    fn an_option_is_set_by_its_whole_name() {
        let config = "CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT is not set\nCONFIG_KASAN_X=y\n";
        assert!(is_set(config, "PREEMPT_NONE"));
        assert!(!is_set(config, "PREEMPT") && !is_set(config, "KASAN"));
    }
}
