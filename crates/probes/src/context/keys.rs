// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a context. They are part of the bundle's format: a meaning never changes under the same name.
//!
//! A list of CPUs has the kernel's form (`0-3,5`). An empty list is `none`.

/// `uname -r`.
pub const RELEASE: &str = "release";
/// `uname -v`.
pub const BUILD: &str = "build";
/// The machine's architecture as in `uname -m`.
pub const ARCHITECTURE: &str = "architecture";
/// The whole command line that the kernel was booted with.
pub const COMMAND_LINE: &str = "command_line";
/// How the kernel may be preempted now: `none`, `voluntary`, `full`, `lazy` or `rt`.
pub const PREEMPTION: &str = "preemption";
/// The preemption mode in force: `none`, `voluntary`, `full` or `lazy`. A real-time kernel has one too, if it can be
/// told a mode. The key is absent where the kernel offers no choice, or where the mode cannot be read.
pub const PREEMPTION_MODE: &str = "preemption_mode";
/// All preemption modes that this kernel can be told, separated by spaces.
pub const PREEMPTION_MODES: &str = "preemption_modes";
/// The words of the command line that the kernel did not know, separated by spaces, as far as its log reaches back.
pub const BOOT_WORDS_UNKNOWN: &str = "boot_words_unknown";
/// The messages of the kernel's log about words that it knew and did not take, separated by `; `.
pub const BOOT_WORDS_REFUSED: &str = "boot_words_refused";
/// The beginning of a key for each word of the command line that sets something below /proc/sys: what is there, as in
/// `sysctl.kernel.timer_migration`.
pub const SYSCTL: &str = "sysctl.";
/// The beginning of a key for each word of the command line that gives a guest of the rig a knob: the word's value if
/// the knob has it, else why not. The key is as in `knob.ksm.run`.
pub const KNOB: &str = "knob.";
/// The place where the kernel's configuration was found.
pub const CONFIG: &str = "config";
/// Options that make the kernel slower to find its defects, without `CONFIG_`. `none` if the kernel has none of them.
pub const DEBUG_OPTIONS: &str = "debug_options";
/// The kernel's ticks in each second (`CONFIG_HZ`). A kernel without high-resolution timers measures time in steps of
/// one tick.
pub const HZ: &str = "hz";
/// Why the kernel calls itself tainted, as the number in `/proc/sys/kernel/tainted`. 0 where it does not.
pub const TAINT: &str = "taint";
/// How long real-time tasks may run in each period, µs. −1 means without a limit (`sched_rt_runtime_us`).
pub const RT_RUNTIME_US: &str = "rt_runtime_us";
/// The period of `rt_runtime_us`, µs.
pub const RT_PERIOD_US: &str = "rt_period_us";
/// `true` where the kernel's log says that the kernel stopped real-time tasks since boot. `false` where the log can be
/// read and has no such line. The kernel prints the line once.
pub const RT_THROTTLED: &str = "rt_throttled";
/// For each measured CPU: the time that ordinary tasks get where real-time tasks starve them, `RUNTIME/PERIOD` in ns
/// (Linux 6.12 and later, through debugfs).
pub const FAIR_SERVER_NS: &str = "fair_server_ns";
/// For each measured CPU: the time that tasks of a loaded BPF scheduler (sched_ext) get beside real-time tasks, in the
/// same form. Present as far as the kernel keeps time for such tasks (Linux 7.0 and later, through debugfs).
pub const EXT_SERVER_NS: &str = "ext_server_ns";
/// The clock source in use.
pub const CLOCKSOURCE: &str = "clocksource";
/// The clock sources that the kernel could use.
pub const CLOCKSOURCES_AVAILABLE: &str = "clocksources_available";
/// Transparent huge pages: `always`, `madvise` or `never`.
pub const THP: &str = "thp";
/// Load averages over 1, 5 and 15 minutes.
pub const LOAD_AVERAGE: &str = "load_average";

/// CPUs that are running.
pub const CPUS_ONLINE: &str = "cpus_online";
/// The CPUs that the reading process runs on. The process may choose other CPUs of its cpuset. A CPU that is isolated
/// at boot is in nobody's affinity until a process asks for it.
pub const AFFINITY: &str = "affinity";
/// The CPUs that the reading process may choose (cpuset(7)).
pub const CPUS_ALLOWED: &str = "cpus_allowed";
/// The CPUs that `isolcpus=` keeps from the scheduler's load balancing.
pub const CPUS_ISOLATED: &str = "cpus_isolated";
/// The CPUs that cpuset partitions keep from the scheduler's load balancing.
pub const CPUS_ISOLATED_BY_CPUSET: &str = "cpus_isolated_by_cpuset";
/// The CPUs that have no tick while one task runs (`nohz_full=`).
pub const NOHZ_FULL: &str = "nohz_full";
/// The value of the word `irqaffinity=` of the command line.
pub const IRQAFFINITY: &str = "irqaffinity";
/// The CPUs to which the kernel delivers new interrupts.
pub const DEFAULT_SMP_AFFINITY: &str = "default_smp_affinity";
/// The interrupts in use that are delivered to a measured CPU, as `NUMBER:NAME@CPUS; …`. The list has no interrupts
/// that each CPU has for itself.
pub const IRQS_ON_MEASURED: &str = "irq_affinity_of_measured";
/// The processor's name.
pub const CPU_MODEL: &str = "cpu_model";
/// The revision of the processor's microcode.
pub const MICROCODE: &str = "microcode";
/// Simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
pub const SMT: &str = "smt";
/// For each measured CPU: the CPUs that share its core, with the CPU itself.
pub const SMT_SIBLINGS: &str = "smt_siblings";
/// For each measured CPU: the frequency governor.
pub const GOVERNOR: &str = "governor";
/// The driver that sets the frequency.
pub const FREQUENCY_DRIVER: &str = "frequency_driver";
/// For each measured CPU: the lowest frequency that the governor may take, kHz.
pub const FREQUENCY_MIN_KHZ: &str = "frequency_min_khz";
/// For each measured CPU: the highest frequency that the governor may take, kHz.
pub const FREQUENCY_MAX_KHZ: &str = "frequency_max_khz";
/// For each measured CPU: the frequency at the moment of reading, kHz.
pub const FREQUENCY_KHZ: &str = "frequency_khz";
/// The driver that knows the idle states.
pub const IDLE_DRIVER: &str = "idle_driver";
/// The governor that chooses among the idle states.
pub const IDLE_GOVERNOR: &str = "idle_governor";
/// For each measured CPU: the idle states that are not disabled, as `NAME:EXIT_LATENCY_US …`.
pub const IDLE_STATES: &str = "idle_states";
/// The longest exit latency that anybody allows, µs (PM QoS, `/dev/cpu_dma_latency`).
pub const CPU_DMA_LATENCY_US: &str = "cpu_dma_latency_us";
/// For each measured CPU and its siblings: the time spent working since boot, in ticks of 10 ms.
pub const BUSY_TICKS: &str = "busy_ticks";
/// For each measured CPU and its siblings: the time spent idle since boot, in ticks of 10 ms.
pub const IDLE_TICKS: &str = "idle_ticks";
/// For each measured CPU: the time that the hypervisor gave to others since boot, in ticks of 10 ms.
pub const STEAL_TICKS: &str = "steal_ticks";
/// For each measured CPU: how often heat slowed its core down since boot.
pub const CORE_THROTTLES: &str = "core_throttles";
/// For each measured CPU: how often heat slowed its package down since boot.
pub const PACKAGE_THROTTLES: &str = "package_throttles";
/// Thermal zones as `TYPE:MILLIDEGREES …` (Celsius).
pub const TEMPERATURES: &str = "temperatures_millicelsius";

/// The hypervisor under which the machine runs. `none` without a hypervisor, `unnamed` if the hypervisor has no name.
pub const VIRTUALISATION: &str = "virtualisation";
/// The machine's maker, as its firmware says.
pub const VENDOR: &str = "vendor";
/// The machine's name, as its firmware says.
pub const PRODUCT: &str = "product";
/// The machine's name in its network. Absent in a guest of the rig, which has no name.
pub const HOST: &str = "host";
/// The kind of container that the reading process is in.
pub const CONTAINER: &str = "container";
/// How much memory the reading process may lock, in bytes or `unlimited`.
pub const MEMORY_LOCK_LIMIT: &str = "memory_lock_limit_bytes";
/// The number of threads of other processes that have a real-time policy and may run on a measured CPU.
pub const RT_TASKS: &str = "rt_tasks";
/// The first threads of `rt_tasks` by priority, as `PID NAME POLICY:PRIORITY; …`.
pub const RT_TASKS_TOP: &str = "rt_tasks_top";
/// The number of kernel threads that have a real-time policy and may run on a measured CPU. Threads of the stop class
/// (`migration/N`) count too.
pub const RT_KERNEL_THREADS: &str = "rt_kernel_threads";
/// The first threads of `rt_kernel_threads` by priority.
pub const RT_KERNEL_THREADS_TOP: &str = "rt_kernel_threads_top";
