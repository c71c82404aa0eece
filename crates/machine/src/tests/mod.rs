// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines of prepared files: what the kernel's files hold is copied from machines of Linux 6.1 to 7.3.

mod boot;
mod changes;
mod data;
mod journals;
mod places;
mod plans;
mod words;

use crate::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a machine of four CPUs, with their contents.
pub const FILES: [(&str, &str); 87] = [
    ("/etc/machine-id", "4d1c2b7e0f6a4a6f9b0e1c2d3e4f5a6b\n"),
    ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet\n"),
    ("/proc/sys/kernel/osrelease", "7.3.0-amd64\n"),
    ("/proc/sys/kernel/random/boot_id", "8f14e45f-ceea-467f-a0e6-2ac1d8e5b3c1\n"),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("/proc/sys/kernel/timer_migration", "1\n"),
    ("/proc/sys/kernel/nmi_watchdog", "1\n"),
    ("/proc/sys/kernel/watchdog_cpumask", "0-3\n"),
    ("/proc/sys/kernel/hung_task_timeout_secs", "120\n"),
    ("/proc/sys/kernel/printk", "4\t4\t1\t7\n"),
    ("/proc/sys/kernel/numa_balancing", "1\n"),
    ("/proc/sys/vm/stat_interval", "1\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
    ("/proc/sys/vm/dirty_ratio", "20\n"),
    ("/proc/sys/vm/dirty_background_ratio", "10\n"),
    ("/proc/sys/vm/dirty_bytes", "0\n"),
    ("/proc/sys/vm/dirty_background_bytes", "0\n"),
    ("/proc/sys/vm/dirty_writeback_centisecs", "500\n"),
    ("/proc/sys/vm/dirty_expire_centisecs", "3000\n"),
    ("/proc/sys/vm/compaction_proactiveness", "20\n"),
    ("/proc/sys/vm/compact_unevictable_allowed", "1\n"),
    ("/proc/sys/vm/zone_reclaim_mode", "0\n"),
    ("/proc/sys/net/core/busy_poll", "0\n"),
    ("/proc/sys/net/core/busy_read", "0\n"),
    ("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n"),
    ("/sys/kernel/debug/sched/features", "PLACE_LAG NO_HRTICK NO_RT_PUSH_IPI \n"),
    ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "50000000\n"),
    ("/sys/kernel/debug/sched/fair_server/cpu3/period", "1000000000\n"),
    ("/sys/kernel/debug/sched/ext_server/cpu3/runtime", "50000000\n"),
    ("/sys/kernel/debug/sched/ext_server/cpu3/period", "1000000000\n"),
    ("/sys/devices/virtual/workqueue/cpumask", "f\n"),
    ("/sys/devices/virtual/workqueue/writeback/cpumask", "f\n"),
    ("/sys/devices/virtual/workqueue/blkcg_punt_bio/cpumask", "f\n"),
    ("/sys/bus/workqueue/devices/writeback/cpumask", "f\n"),
    ("/sys/kernel/rcu_normal", "0\n"),
    ("/sys/kernel/rcu_expedited", "0\n"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"),
    ("/sys/kernel/mm/ksm/run", "0\n"),
    ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
    ("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
    ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance\n"),
    ("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "balance_performance\n"),
    ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "800000\n"),
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    ("/sys/devices/system/cpu/cpu2/cpuidle/state1/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state0/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state2/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us", "0\n"),
    ("/sys/devices/system/cpu/smt/control", "on\n"),
    ("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "0\n"),
    ("/sys/devices/system/machinecheck/machinecheck1/ignore_ce", "0\n"),
    ("/sys/devices/system/machinecheck/machinecheck0/check_interval", "300\n"),
    ("/sys/devices/system/machinecheck/machinecheck1/check_interval", "300\n"),
    ("/sys/class/net/eth0/threaded", "0\n"),
    ("/sys/class/net/eth0/napi_defer_hard_irqs", "0\n"),
    ("/sys/class/net/eth0/gro_flush_timeout", "0\n"),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
    ("/sys/class/net/eth0/queues/rx-1/rps_cpus", "0\n"),
    ("/sys/class/net/eth0/queues/tx-0/xps_cpus", "3\n"),
    ("/sys/class/net/eth0/queues/tx-1/xps_cpus", "c\n"),
    ("/sys/class/net/lo/threaded", "0\n"),
    ("/proc/irq/default_smp_affinity", "f\n"),
    ("/proc/irq/1/smp_affinity_list", "0-3\n"),
    ("/proc/irq/9/smp_affinity_list", "0-3\n"),
    ("/proc/irq/24/smp_affinity_list", "2\n"),
    ("/sys/fs/cgroup/cpuset.cpus.isolated", "\n"),
    ("/sys/fs/resctrl/schemata", "    MB:0=100\n    L3:0=fff\n"),
    (
        "/proc/1/stat",
        "1 (systemd) S 0 1 1 0 -1 4194560 17 0 0 0 1 1 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    (
        "/proc/33/stat",
        "33 (ksoftirqd/3) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n",
    ),
    (
        "/proc/34/stat",
        "34 (ktimers/3) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -2 0 1 0 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 1 1 0 0 0\n",
    ),
    (
        "/proc/35/stat",
        "35 (rcuc/3) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -2 0 1 0 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 4 1 0 0 0\n",
    ),
    (
        "/proc/36/stat",
        "36 (ksoftirqd/2) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n",
    ),
    (
        "/proc/88/stat",
        "88 (irq/9-acpi) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 40 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 50 1 0 0 0\n",
    ),
    ("/etc/default/grub.d/init-select.cfg", "# somebody else's\n"),
    ("/etc/default/grub", "GRUB_DEFAULT=0\n"),
    ("/usr/sbin/update-grub", UPDATE_GRUB),
    ("/usr/sbin/ethtool", ETHTOOL),
    ("/sys/class/net/eth0/device/vendor", "0x8086\n"),
    ("/card/rx-usecs", "3\n"),
    ("/card/adaptive-rx", "on\n"),
    (
        "/usr/sbin/grub-reboot",
        "#!/bin/sh\necho \"next_entry=$1\" > \"$(dirname \"$0\")/../../boot/env\"\n",
    ),
    (
        "/usr/bin/grub-editenv",
        "#!/bin/sh\nenv=$(dirname \"$0\")/../../boot/env\n[ \"$2\" = list ] && { cat \"$env\" 2>/dev/null; exit 0; }\n: > \"$env\"\n",
    ),
];

/// Does as grub-mkconfig: reads the drop-ins, and makes a menu of what the scripts say. The script of onset is called
/// as it stands; the distribution's, which it calls, tells its environment.
const UPDATE_GRUB: &str = "#!/bin/sh
set -e
root=$(dirname \"$0\")/../..
[ -e \"$root/fail\" ] && { echo 'no device for /' >&2; exit 1; }
for file in \"$root\"/etc/default/grub.d/*.cfg; do . \"$file\"; done
mkdir -p \"$root/boot/grub\"
{
	echo \"menuentry 'Debian GNU/Linux' { linux /vmlinuz }\"
	[ -x \"$root/etc/grub.d/42_onset\" ] && \"$root/etc/grub.d/42_onset\" || true
} > \"$root/boot/grub/grub.cfg\"
";

/// Does as ethtool with a card whose settings are files.
const ETHTOOL: &str = "#!/bin/sh
card=$(dirname \"$0\")/../../card
case $1 in
--show-coalesce) echo \"Adaptive RX: $(cat \"$card/adaptive-rx\")  TX: n/a\" && echo \"rx-usecs:\t$(cat \"$card/rx-usecs\")\" && echo 'rx-frames: n/a' ;;
--coalesce)
	[ \"$3\" = adaptive-rx ] || [ \"$4\" -le 1000 ] || { echo 'netlink error: Invalid argument' >&2; exit 1; }
	echo \"$4\" >\"$card/$3\" ;;
esac
";

/// A machine below a directory, with its journal beside it.
pub struct Prepared {
    directory: tempfile::TempDir,
}

impl Prepared {
    pub fn new() -> Prepared {
        let directory = tempfile::tempdir().unwrap();
        let prepared = Prepared { directory };
        for (path, text) in FILES {
            prepared.put(path, text);
        }
        // The kernel's configuration has every option that a knob names, but for one.
        let options = knobs().iter().filter_map(|knob| knob.option.as_deref());
        let all: String = options
            .filter(|option| *option != "CONFIG_SCHED_PROXY_EXEC")
            .map(|option| format!("{option}=y\n"))
            .collect();
        prepared.put("/boot/config-7.3.0-amd64", &all);
        let linux = "#!/bin/sh\necho \"menuentry '$GRUB_DISTRIBUTOR GNU/Linux' { linux /vmlinuz $GRUB_CMDLINE_LINUX_DEFAULT }\"\n";
        prepared.put("/etc/grub.d/10_linux", linux);
        prepared
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("root").join(path.trim_start_matches('/'))
    }

    pub fn put(&self, path: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Puts a file of the running kernel in the place of one of this machine.
    pub fn link(&self, path: &str, target: &str) {
        fs::remove_file(self.path(path)).unwrap();
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn system(&self) -> System {
        System::below(self.directory.path().join("root"))
    }

    pub fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    pub fn cpus(&self) -> Cpus {
        Cpus::of(&self.system().online(), None).unwrap()
    }

    pub fn looks(&self) -> Vec<Sighting> {
        let (system, cpus) = (self.system(), self.cpus());
        knobs().iter().map(|knob| look(&system, knob, &cpus)).collect()
    }

    pub fn begin(&self) -> Tuning {
        Tuning::begin(self.system(), &self.journal()).unwrap()
    }

    /// Applies these knobs.
    pub fn apply(&self, said: &[&str]) -> Vec<Applied> {
        let said: Vec<String> = said.iter().map(|word| word.to_string()).collect();
        let plan = Plan::default().with(&said, &self.cpus()).unwrap();
        self.begin().apply(&plan, &self.cpus()).unwrap()
    }

    pub fn fate(&self, said: &str) -> Fate {
        self.apply(&[said]).remove(0).fate
    }

    pub fn undo(&self) -> Undone {
        self.begin().undo().unwrap()
    }

    /// Every file with its bytes; of a link its target.
    pub fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        gather(&self.directory.path().join("root"), &mut files);
        files
    }
}

fn gather(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            gather(&path, files);
        } else if kind.is_symlink() {
            files.insert(
                path.clone(),
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            );
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}
