// SPDX-License-Identifier: GPL-2.0-or-later
//! Which settings of this machine make latencies longer, and the command that changes each. Each measurement keeps the
//! same settings in its context; the doctor names them before a measurement. Sources:
//! Documentation/admin-guide/kernel-parameters.txt, Documentation/admin-guide/pm/{cpufreq,cpuidle}.rst and
//! Documentation/scheduler/sched-rt-group.rst of the kernel.
//!
//! The doctor changes nothing. Only a measurement tells whether a change helps: run `onset measure periodic` before the
//! change and after it.

use super::{Check, State, bad, good};
use crate::x86_64::REAL_TIME_KERNEL;
use probes::context::{Context, keys, show_cpu_list};

/// Leaving C1E takes up to 10 µs, the next deeper states 33 µs and more (drivers/idle/intel_idle.c).
const EXIT_MAX_US: i64 = 10;

/// One line for each setting. A setting of which this machine says nothing has no line.
pub fn checks(context: &Context) -> Vec<Check> {
    let cpus = context.cpus(keys::CPUS_ONLINE).unwrap_or_default();
    let all = [
        preemption(context),
        debugging(context),
        throttling(context),
        governor(context, &cpus),
        idle_states(context, &cpus),
        heat(context, &cpus),
        isolation(context, &cpus),
        interrupts(context),
        smt(context, &cpus),
        clocksource(context),
        huge_pages(context),
        host(context),
    ];
    all.into_iter().flatten().collect()
}

fn limited(
    what: &'static str,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Option<Check> {
    Some(bad(what, State::Limited, found, remedy))
}

fn preemption(context: &Context) -> Option<Check> {
    const WHAT: &str = "preemption";
    let mode = context.get(keys::PREEMPTION)?;
    let modes = context.get(keys::PREEMPTION_MODES).unwrap_or_default();
    match mode {
        "rt" => Some(good(WHAT, "rt: a real-time kernel")),
        "full" => {
            let more = "a real-time kernel bounds more latencies";
            Some(good(WHAT, format!("full; {more} (Debian: {REAL_TIME_KERNEL})")))
        }
        _ if modes.split(' ').any(|m| m == "full") => {
            let now = "echo full > /sys/kernel/debug/sched/preempt";
            limited(
                WHAT,
                mode,
                format!(
                    "until the next boot: {now}; permanently: preempt=full on the kernel's command line, or a real-time kernel (Debian: {REAL_TIME_KERNEL})"
                ),
            )
        }
        _ => {
            let kernel = "boot a kernel with CONFIG_PREEMPT_RT";
            limited(WHAT, mode, format!("{kernel} (Debian: {REAL_TIME_KERNEL})"))
        }
    }
}

fn debugging(context: &Context) -> Option<Check> {
    const WHAT: &str = "debugging";
    match context.get(keys::DEBUG_OPTIONS)? {
        "none" => Some(good(WHAT, "the kernel has no option that makes it check itself")),
        options => limited(
            WHAT,
            options,
            "boot a kernel built without these options: they find defects of the kernel, and slow it down",
        ),
    }
}

fn throttling(context: &Context) -> Option<Check> {
    const WHAT: &str = "real-time throttling";
    let (runtime, period) =
        (context.number(keys::RT_RUNTIME_US)?, context.number(keys::RT_PERIOD_US)?);
    if runtime < 0 || runtime >= period {
        return Some(good(WHAT, "off: real-time tasks may run without end"));
    }
    limited(
        WHAT,
        format!("the kernel lets real-time tasks run {runtime} µs of each {period} µs at most"),
        "sysctl kernel.sched_rt_runtime_us=-1, but only if no real-time task ever spins",
    )
}

/// The CPUs for which `is_bad` says true; `None` if it says nothing for any CPU.
fn those(cpus: &[u32], is_bad: impl Fn(u32) -> Option<bool>) -> Option<Vec<u32>> {
    let told: Vec<(u32, bool)> =
        cpus.iter().filter_map(|cpu| Some((*cpu, is_bad(*cpu)?))).collect();
    (!told.is_empty())
        .then(|| told.into_iter().filter(|(_, bad)| *bad).map(|(cpu, _)| cpu).collect())
}

fn governor(context: &Context, cpus: &[u32]) -> Option<Check> {
    const WHAT: &str = "frequency";
    let bad = those(cpus, |cpu| Some(context.of_cpu(keys::GOVERNOR, cpu)? != "performance"))?;
    let Some(first) = bad.first() else { return Some(good(WHAT, "governor performance")) };
    let governor = context.of_cpu(keys::GOVERNOR, *first).unwrap_or_default();
    limited(
        WHAT,
        format!("governor {governor} on CPU {}", show_cpu_list(&bad)),
        "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
}

fn idle_states(context: &Context, cpus: &[u32]) -> Option<Check> {
    const WHAT: &str = "idle states";
    let deepest = |cpu| {
        let states = context.of_cpu(keys::IDLE_STATES, cpu)?.split(' ');
        states.filter_map(|state| state.rsplit_once(':')?.1.parse::<i64>().ok()).max()
    };
    let bad = those(cpus, |cpu| Some(deepest(cpu)? > EXIT_MAX_US))?;
    let held = context.number(keys::CPU_DMA_LATENCY_US).is_some_and(|held| held <= EXIT_MAX_US);
    let Some(first) = bad.first().filter(|_| !held) else {
        return Some(good(
            WHAT,
            format!("the CPUs enter no state that takes more than {EXIT_MAX_US} µs to leave"),
        ));
    };
    let exit = deepest(*first).unwrap_or_default();
    limited(
        WHAT,
        format!("CPU {} may take up to {exit} µs to leave its deepest state", show_cpu_list(&bad)),
        "cpupower idle-set -D 10; or run a program that writes 0 to /dev/cpu_dma_latency and keeps it open, as onset measure does",
    )
}

fn heat(context: &Context, cpus: &[u32]) -> Option<Check> {
    const WHAT: &str = "heat";
    let throttled = |cpu| {
        let core = context.number_of_cpu(keys::CORE_THROTTLES, cpu)?;
        Some(core + context.number_of_cpu(keys::PACKAGE_THROTTLES, cpu).unwrap_or(0) > 0)
    };
    let bad = those(cpus, throttled)?;
    if bad.is_empty() {
        return Some(good(WHAT, "heat has slowed down no processor since boot"));
    }
    limited(
        WHAT,
        format!("heat has slowed down CPU {} since boot", show_cpu_list(&bad)),
        "cool the machine better, or lower its highest frequency: cpupower frequency-set -u FREQUENCY",
    )
}

fn isolation(context: &Context, cpus: &[u32]) -> Option<Check> {
    const WHAT: &str = "isolation";
    let mut isolated = context.cpus(keys::CPUS_ISOLATED)?;
    isolated.extend(context.cpus(keys::CPUS_ISOLATED_BY_CPUSET).unwrap_or_default());
    if !isolated.is_empty() {
        let nohz = context.get(keys::NOHZ_FULL).unwrap_or("none");
        return Some(good(
            WHAT,
            format!(
                "CPU {} is kept from ordinary tasks (without a periodic tick: {nohz}); measure on it: --cpus",
                show_cpu_list(&isolated)
            ),
        ));
    }
    match cpus.last().filter(|_| cpus.len() > 1) {
        None => limited(
            WHAT,
            "one processor does all work",
            "take a machine with more than one processor",
        ),
        Some(last) => limited(
            WHAT,
            "ordinary tasks may run on every CPU",
            format!(
                "isolcpus=managed_irq,domain,{last} nohz_full={last} rcu_nocbs={last} on the kernel's command line; then measure with --cpus {last}"
            ),
        ),
    }
}

fn interrupts(context: &Context) -> Option<Check> {
    const WHAT: &str = "interrupts";
    let isolated = context.cpus(keys::CPUS_ISOLATED)?;
    let irqs = context.get(keys::IRQS_ON_MEASURED)?;
    let count =
        irqs.split(';').filter(|irq| !irq.trim().is_empty() && irq.trim() != "none").count();
    let default = context.get(keys::DEFAULT_SMP_AFFINITY).unwrap_or("all");
    let found = format!("{count} in use; the kernel sends new interrupts to CPU {default}");
    match isolated.is_empty() {
        true => limited(
            WHAT,
            found,
            "systemctl stop irqbalance; then echo 0 > /proc/irq/NUMBER/smp_affinity_list for each interrupt that may go to CPU 0, or irqaffinity=0 on \
             the kernel's command line",
        ),
        false => Some(good(WHAT, found)),
    }
}

fn smt(context: &Context, cpus: &[u32]) -> Option<Check> {
    const WHAT: &str = "SMT";
    let state = context.get(keys::SMT)?;
    let has_siblings = cpus.iter().any(|cpu| !context.siblings(*cpu).is_empty());
    if state != "on" || !has_siblings {
        return Some(good(WHAT, "each CPU has a core of its own"));
    }
    limited(
        WHAT,
        "on: two CPUs share a core, and each slows the other down",
        "echo off > /sys/devices/system/cpu/smt/control",
    )
}

fn clocksource(context: &Context) -> Option<Check> {
    const WHAT: &str = "clock";
    let source = context.get(keys::CLOCKSOURCE)?;
    let fast = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
    if fast.contains(&source) {
        return Some(good(WHAT, source));
    }
    let available = context.get(keys::CLOCKSOURCES_AVAILABLE).unwrap_or_default();
    let remedy = match available.split(' ').find(|name| fast.contains(name)) {
        Some(name) => format!("echo {name} > /sys/devices/system/clocksource/clocksource0/current_clocksource"),
        None => "tsc=reliable on the kernel's command line, if you know that the counters of the processors agree; dmesg | grep -i tsc says why the kernel did not take tsc".into(),
    };
    limited(WHAT, format!("{source}: reading it takes a microsecond or more"), remedy)
}

fn huge_pages(context: &Context) -> Option<Check> {
    const WHAT: &str = "huge pages";
    match context.get(keys::THP)? {
        "always" => limited(
            WHAT,
            "always: the kernel makes them for every process, and stops a task to make one",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        mode => Some(good(WHAT, mode)),
    }
}

fn host(context: &Context) -> Option<Check> {
    const WHAT: &str = "host";
    if let Some(container) = context.get(keys::CONTAINER) {
        return limited(
            WHAT,
            format!("a container ({container})"),
            "measure outside of the container: inside it, somebody else decides about priorities, memory and interrupts",
        );
    }
    match context.get(keys::VIRTUALISATION)? {
        "none" => Some(good(WHAT, "no hypervisor: the kernel runs on the machine itself")),
        name => limited(
            WHAT,
            format!("a guest of {name}: every number contains the time that the host takes"),
            "measure on the machine itself; or in onset's rig (--flavour), whose virtual time no host disturbs",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[(&str, &str)]) -> Vec<Check> {
        let map = entries.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        checks(&Context::from(map.collect::<std::collections::BTreeMap<_, _>>()))
    }

    const LAPTOP: [(&str, &str); 20] = [
        ("cpus_online", "0-3"),
        ("preemption", "voluntary"),
        ("preemption_modes", "none voluntary full"),
        ("debug_options", "none"),
        ("rt_runtime_us", "950000"),
        ("rt_period_us", "1000000"),
        ("governor.cpu0", "powersave"),
        ("governor.cpu1", "performance"),
        ("idle_states.cpu0", "POLL:0 C1:2 C6:133"),
        ("core_throttles.cpu0", "0"),
        ("core_throttles.cpu2", "3"),
        ("cpus_isolated", "none"),
        ("irq_affinity_of_measured", "1:i8042@0; 9:acpi@0"),
        ("default_smp_affinity", "0-3"),
        ("smt", "on"),
        ("smt_siblings.cpu0", "0-1"),
        ("clocksource", "hpet"),
        ("clocksources_available", "hpet tsc acpi_pm"),
        ("thp", "always"),
        ("virtualisation", "none"),
    ];

    #[test]
    fn what_stands_in_the_way_is_said_with_the_command_that_changes_it() {
        let checks = of(&LAPTOP);
        let remedy = |what: &str| {
            let check = checks.iter().find(|c| c.what == what).unwrap_or_else(|| panic!("{what}"));
            check.remedy.clone().unwrap_or_default()
        };
        for (what, says) in [
            ("preemption", "preempt=full"),
            ("real-time throttling", "sched_rt_runtime_us=-1"),
            ("frequency", "scaling_governor"),
            ("idle states", "idle-set -D 10"),
            ("heat", "cool the machine"),
            ("isolation", "isolcpus=managed_irq,domain,3"),
            ("interrupts", "irqaffinity=0"),
            ("SMT", "smt/control"),
            ("clock", "echo tsc"),
            ("huge pages", "echo madvise"),
        ] {
            assert!(remedy(what).contains(says), "{what}: {}", remedy(what));
        }
        assert_eq!((remedy("host"), remedy("debugging")), (String::new(), String::new()));
    }

    #[test]
    fn a_tuned_machine_has_nothing_to_change_and_a_silent_one_no_line() {
        let tuned = [
            ("cpus_online", "0-3"),
            ("preemption", "rt"),
            ("rt_runtime_us", "-1"),
            ("rt_period_us", "1000000"),
            ("governor.cpu0", "performance"),
            ("idle_states.cpu0", "POLL:0 C6:133"),
            ("cpu_dma_latency_us", "0"),
            ("cpus_isolated", "2-3"),
            ("irq_affinity_of_measured", "none"),
            ("smt", "off"),
            ("clocksource", "tsc"),
            ("thp", "never"),
            ("virtualisation", "none"),
        ];
        let checks = of(&tuned);
        let bad: Vec<&str> = checks.iter().filter(|c| c.remedy.is_some()).map(|c| c.what).collect();
        assert_eq!((bad, checks.len()), (Vec::new(), 10));
        assert!(of(&[]).is_empty());
    }
}
