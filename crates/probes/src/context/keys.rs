// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a context. They are part of the bundle's format: a meaning never changes under the same name.
//!
//! Lists of CPUs are written as the kernel does (`0-3,5`), an empty one as `none`.

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
/// The mode of preemption in force, of those that this kernel can be told: `none`, `voluntary`, `full` or `lazy`. On a
/// real-time kernel too, where it can be told one; absent where there is no choice, or it cannot be read.
pub const PREEMPTION_MODE: &str = "preemption_mode";
/// All of those, separated by spaces.
pub const PREEMPTION_MODES: &str = "preemption_modes";
/// Words of the command line that the kernel did not know, separated by spaces, as far as its log reaches back.
pub const BOOT_WORDS_UNKNOWN: &str = "boot_words_unknown";
/// What the kernel's log says of words that it knew and did not take, separated by `; `.
pub const BOOT_WORDS_REFUSED: &str = "boot_words_refused";
/// Where the kernel's configuration was found.
pub const CONFIG: &str = "config";
/// Options of the kernel that make it slower to find its defects, without `CONFIG_`; `none` where it has none.
pub const DEBUG_OPTIONS: &str = "debug_options";
/// Ticks of the kernel each second (`CONFIG_HZ`): to that grain it measures time where it has no high-resolution
/// timers.
pub const HZ: &str = "hz";
/// Why the kernel calls itself tainted, as the number in `/proc/sys/kernel/tainted`; 0 where it does not.
pub const TAINT: &str = "taint";
/// How long real-time tasks may run in each period, µs; −1 for without limit (`sched_rt_runtime_us`).
pub const RT_RUNTIME_US: &str = "rt_runtime_us";
/// That period, µs.
pub const RT_PERIOD_US: &str = "rt_period_us";
/// `true` where the kernel's log says that it kept real-time tasks from running since boot, `false` where the
/// log can be read and does not. The kernel says so once.
pub const RT_THROTTLED: &str = "rt_throttled";
/// Of each measured CPU: what ordinary tasks are given where real-time tasks starve them, `RUNTIME/PERIOD` in ns
/// (Linux 6.12 and later, through debugfs).
pub const FAIR_SERVER_NS: &str = "fair_server_ns";
/// Of each measured CPU: the same of tasks that a loaded scheduler of BPF manages (sched_ext), as far as the kernel
/// keeps time for them beside real-time tasks (Linux 7.0 and later, through debugfs).
pub const EXT_SERVER_NS: &str = "ext_server_ns";
/// The clock source in use.
pub const CLOCKSOURCE: &str = "clocksource";
/// Those that could be used.
pub const CLOCKSOURCES_AVAILABLE: &str = "clocksources_available";
/// Transparent huge pages: `always`, `madvise` or `never`.
pub const THP: &str = "thp";
/// Load averages over 1, 5 and 15 minutes.
pub const LOAD_AVERAGE: &str = "load_average";

/// CPUs that are running.
pub const CPUS_ONLINE: &str = "cpus_online";
/// CPUs that the reading process runs on. It may choose others of its cpuset: what is isolated at boot is in nobody's
/// affinity until it is asked for.
pub const AFFINITY: &str = "affinity";
/// CPUs that the reading process may choose (cpuset(7)).
pub const CPUS_ALLOWED: &str = "cpus_allowed";
/// CPUs kept from the scheduler's balancing at boot (`isolcpus=`).
pub const CPUS_ISOLATED: &str = "cpus_isolated";
/// CPUs kept from it by cpuset partitions.
pub const CPUS_ISOLATED_BY_CPUSET: &str = "cpus_isolated_by_cpuset";
/// CPUs without a tick while one task runs (`nohz_full=`).
pub const NOHZ_FULL: &str = "nohz_full";
/// The word `irqaffinity=` of the command line.
pub const IRQAFFINITY: &str = "irqaffinity";
/// Where new interrupts are delivered.
pub const DEFAULT_SMP_AFFINITY: &str = "default_smp_affinity";
/// Interrupts in use that are delivered to a measured CPU, as `NUMBER:NAME@CPUS; …`. Those that each CPU has for
/// itself are not among them.
pub const IRQS_ON_MEASURED: &str = "irq_affinity_of_measured";
/// The processor's name.
pub const CPU_MODEL: &str = "cpu_model";
/// Revision of its microcode.
pub const MICROCODE: &str = "microcode";
/// Simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
pub const SMT: &str = "smt";
/// Of each measured CPU: those that share its core, itself included.
pub const SMT_SIBLINGS: &str = "smt_siblings";
/// Of each measured CPU: the frequency governor.
pub const GOVERNOR: &str = "governor";
/// What sets the frequency.
pub const FREQUENCY_DRIVER: &str = "frequency_driver";
/// Of each measured CPU: lowest frequency that the governor may take, kHz.
pub const FREQUENCY_MIN_KHZ: &str = "frequency_min_khz";
/// Of each measured CPU: highest frequency that the governor may take, kHz.
pub const FREQUENCY_MAX_KHZ: &str = "frequency_max_khz";
/// Of each measured CPU: the frequency when it was read, kHz.
pub const FREQUENCY_KHZ: &str = "frequency_khz";
/// What knows the idle states.
pub const IDLE_DRIVER: &str = "idle_driver";
/// What chooses among them.
pub const IDLE_GOVERNOR: &str = "idle_governor";
/// Of each measured CPU: idle states that are not disabled, as `NAME:EXIT_LATENCY_US …`.
pub const IDLE_STATES: &str = "idle_states";
/// The longest exit latency that anybody allows, µs (PM QoS, `/dev/cpu_dma_latency`).
pub const CPU_DMA_LATENCY_US: &str = "cpu_dma_latency_us";
/// Of each measured CPU and its siblings: time spent working since boot, in ticks of 10 ms.
pub const BUSY_TICKS: &str = "busy_ticks";
/// Of each measured CPU and its siblings: time spent idle since boot, in ticks of 10 ms.
pub const IDLE_TICKS: &str = "idle_ticks";
/// Of each measured CPU: time that the hypervisor gave to others since boot, in ticks of 10 ms.
pub const STEAL_TICKS: &str = "steal_ticks";
/// Of each measured CPU: how often its core was slowed down by heat since boot.
pub const CORE_THROTTLES: &str = "core_throttles";
/// Of each measured CPU: how often its package was slowed down by heat since boot.
pub const PACKAGE_THROTTLES: &str = "package_throttles";
/// Thermal zones as `TYPE:MILLIDEGREES …` (Celsius).
pub const TEMPERATURES: &str = "temperatures_millicelsius";

/// What runs the machine: `none` for nothing, else the hypervisor's name, `unnamed` where it has none.
pub const VIRTUALISATION: &str = "virtualisation";
/// The machine's maker by its firmware.
pub const VENDOR: &str = "vendor";
/// The machine's name by its firmware.
pub const PRODUCT: &str = "product";
/// The machine's name in its network; of a guest of the rig, which has none, absent.
pub const HOST: &str = "host";
/// The kind of container that the reading process is in.
pub const CONTAINER: &str = "container";
/// How much memory the reading process may lock, in bytes or `unlimited`.
pub const MEMORY_LOCK_LIMIT: &str = "memory_lock_limit_bytes";
/// Threads of other processes with a real-time policy that may run on a measured CPU.
pub const RT_TASKS: &str = "rt_tasks";
/// The first of them by priority, as `PID NAME POLICY:PRIORITY; …`.
pub const RT_TASKS_TOP: &str = "rt_tasks_top";
/// Kernel threads with a real-time policy that may run on a measured CPU, those of the stop class (`migration/N`)
/// included.
pub const RT_KERNEL_THREADS: &str = "rt_kernel_threads";
/// The first of them by priority.
pub const RT_KERNEL_THREADS_TOP: &str = "rt_kernel_threads_top";
