// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads whole contexts: from trees of files that stand for machines, and from the machine that runs the tests.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of files. It is removed when the value is dropped.
struct Machine(PathBuf);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Machine {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("onset-context-{}-{number}", std::process::id());
        let machine = Machine(std::env::temp_dir().join(name));
        fs::create_dir_all(&machine.0).unwrap();
        files.iter().for_each(|(path, text)| machine.file(path, text.as_bytes()));
        machine
    }

    fn file(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn read(&self, cpus: &[u32]) -> Context {
        read_below(&Tree::new(&self.0), cpus)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stat(id: u32, name: &str, flags: u32, threads: u32, priority: u8, policy: u8) -> String {
    format!(
        "{id} ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 -2 0 {threads} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 {priority} {policy} 0"
    )
}

/// A machine of two cores with two threads each. CPU 1 is the measured one.
fn server() -> Machine {
    let cpu = "sys/devices/system/cpu";
    let machine = Machine::new(&[
        ("proc/sys/kernel/osrelease", "6.12.57+deb13-amd64\n"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.57-1\n"),
        ("proc/sys/kernel/arch", "x86_64\n"),
        ("proc/sys/kernel/hostname", "lathe\n"),
        ("proc/cmdline", "root=/dev/sda1 isolcpus=1,3 irqaffinity=0,2 preempt=full\n"),
        ("proc/sys/kernel/tainted", "0\n"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ("proc/loadavg", "0.10 0.20 0.30 1/100 4711\n"),
        ("proc/irq/default_smp_affinity", "5\n"),
        ("proc/irq/24/effective_affinity_list", "1\n"),
        ("proc/irq/24/eth0-rx/spurious", ""),
        ("proc/irq/25/effective_affinity_list", "0\n"),
        ("proc/irq/25/eth0-tx/spurious", ""),
        ("proc/irq/26/effective_affinity_list", "1\n"),
        ("proc/irq/27/effective_affinity_list", "\n"),
        ("proc/irq/27/arch_timer/spurious", ""),
        ("proc/cpuinfo", "model name\t: A CPU\nmicrocode\t: 0x2b\nflags\t\t: fpu hypervisor sse\n"),
        (
            "proc/stat",
            "cpu  0\ncpu1 100 0 50 800 0 0 0 7\ncpu3 1 2 3 4 5 6 7 8\ncpu0 1 1 1 1 1 1 1 1\n",
        ),
        ("proc/self/status", "Name:\tonset\nCpus_allowed_list:\t0,2\n"),
        ("proc/self/cgroup", "0::/user.slice/session.scope\n"),
        ("sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0-3\n"),
        ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
        (
            "proc/self/limits",
            "Limit Soft Hard Units\nMax locked memory  unlimited unlimited bytes\n",
        ),
        ("proc/1/cgroup", "0::/init.scope\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("sys/class/dmi/id/product_name", "Standard PC\n"),
        ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
        ("sys/class/thermal/thermal_zone0/temp", "45000\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("dev/kmsg", "6,1,2,-;Linux\n4,2,3,-;sched: RT throttling activated\n"),
        ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000\n"),
        ("sys/kernel/debug/sched/fair_server/cpu1/period", "1000000000\n"),
        ("sys/kernel/debug/sched/ext_server/cpu1/runtime", "40000000\n"),
        ("sys/kernel/debug/sched/ext_server/cpu1/period", "1000000000\n"),
    ]);
    machine.file("dev/cpu_dma_latency", &2_000_000_000i32.to_ne_bytes());
    for (path, text) in [
        ("online", "0-3\n"),
        ("isolated", "1,3\n"),
        ("nohz_full", "(null)\n"),
        ("smt/control", "on\n"),
        ("cpu1/topology/thread_siblings_list", "1,3\n"),
        ("cpu1/cpufreq/scaling_governor", "powersave\n"),
        ("cpu1/cpufreq/scaling_driver", "intel_pstate\n"),
        ("cpu1/cpufreq/scaling_min_freq", "800000\n"),
        ("cpu1/cpufreq/scaling_max_freq", "3600000\n"),
        ("cpu1/cpufreq/scaling_cur_freq", "1200000\n"),
        ("cpuidle/current_driver", "intel_idle\n"),
        ("cpuidle/current_governor_ro", "menu\n"),
        ("cpu1/cpuidle/state0/name", "POLL\n"),
        ("cpu1/cpuidle/state0/latency", "0\n"),
        ("cpu1/cpuidle/state0/disable", "0\n"),
        ("cpu1/cpuidle/state1/name", "C6\n"),
        ("cpu1/cpuidle/state1/latency", "133\n"),
        ("cpu1/cpuidle/state1/disable", "0\n"),
        ("cpu1/cpuidle/state2/name", "C10\n"),
        ("cpu1/cpuidle/state2/latency", "890\n"),
        ("cpu1/cpuidle/state2/disable", "1\n"),
        ("cpu1/thermal_throttle/core_throttle_count", "3\n"),
        ("cpu1/thermal_throttle/package_throttle_count", "4\n"),
    ] {
        machine.file(&format!("{cpu}/{path}"), text.as_bytes());
    }
    machine
}

#[test]
fn a_server_is_described_whole() {
    let context = server().read(&[1]);
    for (key, value) in [
        (keys::RELEASE, "6.12.57+deb13-amd64"),
        (keys::ARCHITECTURE, "x86_64"),
        (keys::HOST, "lathe"),
        (keys::PREEMPTION, "full"),
        (keys::IRQAFFINITY, "0,2"),
        (keys::DEFAULT_SMP_AFFINITY, "0,2"),
        (keys::IRQS_ON_MEASURED, "24:eth0-rx@1"),
        (keys::RT_RUNTIME_US, "950000"),
        (keys::RT_THROTTLED, "true"),
        ("fair_server_ns.cpu1", "50000000/1000000000"),
        ("ext_server_ns.cpu1", "40000000/1000000000"),
        (keys::CPUS_ONLINE, "0-3"),
        (keys::CPUS_ALLOWED, "0-3"),
        (keys::AFFINITY, "0,2"),
        (keys::CPUS_ISOLATED, "1,3"),
        (keys::THP, "madvise"),
        (keys::LOAD_AVERAGE, "0.10 0.20 0.30"),
        (keys::SMT, "on"),
        ("smt_siblings.cpu1", "1,3"),
        ("governor.cpu1", "powersave"),
        (keys::FREQUENCY_DRIVER, "intel_pstate"),
        ("frequency_khz.cpu1", "1200000"),
        (keys::IDLE_GOVERNOR, "menu"),
        ("idle_states.cpu1", "POLL:0 C6:133"),
        (keys::CPU_DMA_LATENCY_US, "2000000000"),
        ("busy_ticks.cpu1", "150"),
        ("steal_ticks.cpu1", "7"),
        ("busy_ticks.cpu3", "19"),
        ("core_throttles.cpu1", "3"),
        (keys::TEMPERATURES, "x86_pkg_temp:45000"),
        (keys::MICROCODE, "0x2b"),
        (keys::VIRTUALISATION, "qemu"),
        (keys::MEMORY_LOCK_LIMIT, "unlimited"),
    ] {
        assert_eq!(context.get(key), Some(value), "{key}");
    }
    assert_eq!(context.siblings(1), [3]);
    for absent in [keys::NOHZ_FULL, keys::CONTAINER, "busy_ticks.cpu0", "steal_ticks.cpu3"] {
        assert_eq!(context.get(absent), None, "{absent}");
    }
}

#[test]
fn a_machine_that_says_nothing_has_a_context_without_empty_texts() {
    let context = Machine::new(&[("proc/cmdline", "\n"), ("sys/kernel/realtime", "\n")]).read(&[0]);
    let keys: Vec<&String> = context.0.keys().collect();
    assert_eq!(keys, [keys::ARCHITECTURE]);
}

#[test]
fn a_cpuset_of_the_first_version_is_that_of_its_own_hierarchy() {
    let machine = Machine::new(&[
        ("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuset:/job\n0::/\n"),
        ("sys/fs/cgroup/cpuset/job/cpuset.effective_cpus", "2\n"),
        ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
    ]);
    assert_eq!(machine.read(&[0]).get(keys::CPUS_ALLOWED), Some("2"));
}

#[test]
fn debug_options_are_found_in_the_packed_configuration_and_by_their_traces() {
    let machine = Machine::new(&[("proc/lockdep", "all lock classes:\n")]);
    assert_eq!(machine.read(&[0]).get(keys::DEBUG_OPTIONS), Some("LOCKDEP"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"CONFIG_KASAN=y\n# CONFIG_KCSAN is not set\nCONFIG_LOCKDEP=y\n").unwrap();
    machine.file("proc/config.gz", &packed.finish().unwrap());
    let context = machine.read(&[0]);
    assert_eq!(context.get(keys::DEBUG_OPTIONS), Some("KASAN LOCKDEP"));
    assert_eq!(context.get(keys::CONFIG), Some("/proc/config.gz"));
    machine.file("proc/config.gz", b"\x1f\x8bnonsense");
    assert_eq!(machine.read(&[0]).get(keys::CONFIG), None);
}

#[test]
fn the_tick_is_that_of_the_configuration_and_absent_without_one() {
    let release = ("proc/sys/kernel/osrelease", "6.1\n");
    let config = "CONFIG_HZ_PERIODIC=y\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n";
    let machine = Machine::new(&[release, ("boot/config-6.1", config)]);
    assert_eq!(machine.read(&[0]).get(keys::HZ), Some("250"));
    assert_eq!(Machine::new(&[release]).read(&[0]).get(keys::HZ), None);
    for broken in ["CONFIG_HZ=\n", "CONFIG_HZ=many\n", "# CONFIG_HZ=1\n"] {
        assert_eq!(hz(broken), None, "{broken}");
    }
}

#[test]
fn a_configuration_without_debug_options_says_none() {
    let machine = Machine::new(&[
        ("proc/sys/kernel/osrelease", "6.1\n"),
        ("boot/config-6.1", "CONFIG_SMP=y\n"),
    ]);
    assert_eq!(machine.read(&[0]).get(keys::DEBUG_OPTIONS), Some("none"));
}

#[test]
fn real_time_threads_are_counted_where_they_may_run_and_ourselves_not() {
    const KERNEL: u32 = 0x0020_8040;
    let status = |cpus: &str| format!("Cpus_allowed_list:\t{cpus}\n");
    let machine = Machine::new(&[
        ("proc/100/stat", &stat(100, "onset", 0, 1, 99, 1)),
        ("proc/200/stat", &stat(200, "pulse audio;", 0, 1, 5, 2)),
        ("proc/200/status", &status("0-3")),
        ("proc/300/stat", &stat(300, "two threads", 0, 2, 0, 0)),
        ("proc/300/task/300/stat", &stat(300, "two threads", 0, 2, 0, 0)),
        ("proc/300/task/301/stat", &stat(301, "fast", 0, 2, 0, 6)),
        ("proc/300/task/301/status", &status("1")),
        ("proc/400/stat", &stat(400, "elsewhere", 0, 1, 80, 1)),
        ("proc/400/status", &status("0,2-3")),
        ("proc/15/stat", &stat(15, "migration/1", KERNEL, 1, 99, 1)),
        ("proc/15/status", &status("1")),
        ("proc/16/stat", &stat(16, "migration/2", KERNEL, 1, 99, 1)),
        ("proc/16/status", &status("2")),
        ("proc/500/stat", "500 (torn"),
    ]);
    symlink("100", machine.0.join("proc/self")).unwrap();
    let context = machine.read(&[1]);
    assert_eq!(context.get(keys::RT_TASKS), Some("2"));
    assert_eq!(context.get(keys::RT_TASKS_TOP), Some("301 fast deadline; 200 pulse_audio_ rr:5"));
    assert_eq!(context.get(keys::RT_KERNEL_THREADS), Some("1"));
    assert_eq!(context.get(keys::RT_KERNEL_THREADS_TOP), Some("15 migration/1 fifo:99"));
}

#[test]
fn containers_and_hypervisors_are_told_by_what_they_leave() {
    for (path, text, key, value) in [
        ("run/systemd/container", "lxc\n", keys::CONTAINER, "lxc"),
        (".dockerenv", "", keys::CONTAINER, "docker"),
        ("proc/1/cgroup", "0::/kubepods/pod1\n", keys::CONTAINER, "kubepods"),
        ("proc/xen/capabilities", "", keys::VIRTUALISATION, "xen"),
        ("proc/cpuinfo", "flags\t: fpu hypervisor\n", keys::VIRTUALISATION, "unnamed"),
        ("proc/cpuinfo", "flags\t: fpu\n", keys::VIRTUALISATION, "none"),
        (
            "proc/device-tree/hypervisor/compatible",
            "linux,kvm\0",
            keys::VIRTUALISATION,
            "linux,kvm",
        ),
    ] {
        assert_eq!(Machine::new(&[(path, text)]).read(&[0]).get(key), Some(value), "{path}");
    }
}

#[test]
fn this_machine_says_what_it_runs_and_nothing_empty() {
    let context = read(&[0]);
    assert!(context.get(keys::RELEASE).is_some() && context.get(keys::AFFINITY).is_some());
    assert!(context.0.values().all(|v| !v.trim().is_empty()), "{context:?}");
}

#[test]
fn a_context_is_a_flat_object_in_files() {
    let context = Context::from(BTreeMap::from([("release".to_owned(), "6.1".to_owned())]));
    let text = serde_json::to_string(&context).unwrap();
    assert_eq!(text, r#"{"release":"6.1"}"#);
    assert_eq!(serde_json::from_str::<Context>(&text).unwrap(), context);
}

#[test]
fn the_mode_in_force_is_read_back_and_so_are_the_words_that_the_kernel_did_not_take() {
    let machine = server();
    machine.file("sys/kernel/debug/sched/preempt", b"full (lazy) \n");
    machine.file(
        "dev/kmsg",
        b"4,1,2,-;Dynamic Preempt: unsupported mode: none\n5,2,3,-;Unknown kernel command line parameters \"nosuch preempt=none\", will be passed to user space.\n",
    );
    let context = machine.read(&[1]);
    for (key, value) in [
        (keys::PREEMPTION, "lazy"),
        (keys::PREEMPTION_MODE, "lazy"),
        (keys::PREEMPTION_MODES, "full lazy"),
        (keys::BOOT_WORDS_UNKNOWN, "nosuch preempt=none"),
        (keys::BOOT_WORDS_REFUSED, "Dynamic Preempt: unsupported mode: none"),
    ] {
        assert_eq!(context.get(key), Some(value), "{key}");
    }
    machine.file("sys/kernel/realtime", b"1\n");
    let realtime = machine.read(&[1]);
    assert_eq!(realtime.get(keys::PREEMPTION), Some("rt"));
    assert_eq!(realtime.get(keys::PREEMPTION_MODE), Some("lazy"));
}
