// SPDX-License-Identifier: GPL-2.0-or-later
//! What the plugin is told to follow of a guest's kernel: a [`Map`]'s facts, in the words of
//! `crates/plugin/src/follow/plan.rs`.

use sample::{Insns, Nanos, Stretch};
use std::path::Path;
use trace::{Edge, Role, WATCHED, Watch, Watched, WindowKind};
use vmlinux::Map;

/// Entries by which the kernel is called, besides the gates of the interrupt table (arch/x86/entry/entry_64*.S). All of
/// them mask interrupts.
const CALLS: [&str; 5] = [
    "entry_SYSCALL_64",
    "entry_SYSCALL_compat",
    "entry_SYSENTER_compat",
    "entry_INT80_compat",
    "asm_int80_emulation",
];
/// The gates of exceptions and of the interrupts that have an entry of their own.
const GATES: [&str; 2] = ["asm_exc_", "asm_sysvec_"];
/// The stubs of the other interrupts, one after the other, up to the first symbol behind them
/// (arch/x86/include/asm/idtentry.h).
const STUBS: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// Of these a kernel without PREEMPT_RT has none to miss: its spinlocks do not sleep, and its preemption count tells of bottom
/// halves.
const RT_ONLY: [Role; 3] = [Role::LockOwner, Role::LockSleep, Role::BhDisable];

/// Where this is, who disables migration does so without a call (include/linux/sched.h since 6.18): the running task's count
/// tells.
const MIGRATION_INLINE: &str = "___migrate_enable";

/// Functions in which the kernel schedules if it was asked to: what runs from one to the next cannot be replaced where the
/// kernel is not preemptible.
const POINTS: [&str; 2] = ["__schedule", "__cond_resched"];

/// Which calls of functions are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// None: only masked interrupts, the preemption count and the running task, which is quickest.
    None,
    /// Those that open and close stretches of which nothing else tells, and the scheduler's, from where on a task that has one
    /// open is away; only long stretches get stacks.
    Stretches,
    /// All of [`WATCHED`], with the stacks that it asks for.
    All,
}

impl Calls {
    fn has(self, role: Role, rt: bool) -> bool {
        match self {
            Calls::None => false,
            // Where the preemption count tells of bottom halves, calls do not.
            Calls::Stretches => match role.edge() {
                Some((kind, _)) => rt || kind != WindowKind::BhOff,
                None => role == Role::Schedule,
            },
            Calls::All => true,
        }
    }
}

/// The follower's plan, everything that `map` knows of, and the places of [`WATCHED`] in the order in which its records
/// number them, for [`trace::Reader`].
#[derive(Clone, Debug)]
pub struct Follow {
    pub(crate) plan: String,
    /// The watched places.
    pub watches: Vec<Watch>,
    /// By which flag a task is asked to leave when that is not urgent, for [`trace::Reader::with_lazy_flag`].
    pub lazy: Option<u64>,
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// Whether it is PREEMPT_RT.
    rt: bool,
}

impl Follow {
    /// Follows the kernel of this map, the file `path`, and these `calls`. Stretches shorter than `stacks_from` get no stack.
    pub fn new(map: &Map, path: &Path, stacks_from: Insns, calls: Calls) -> Follow {
        let rt = map.layout().is_preempt_rt();
        let symbols = map.symbols().map(|(name, address, _)| (name, address));
        let (mut watches, lacking) = trace::places(symbols);
        watches.retain(|watch| calls.has(watched(watch.index).role, rt));
        let mut plan = format!("stacks_from {}\n", stacks_from.0);
        if map.unwinds() {
            plan += &format!("map {}\n", path.display());
        }
        let lock = rt.then(|| bh_lock(map)).into_iter().flatten();
        for line in gates(map).chain(layout(map)).chain(points(map)).chain(lock) {
            plan += &line;
            plan.push('\n');
        }
        let counted = counted(map);
        let is_counted = |watch: &Watch| COUNTED.contains(&watched(watch.index).role);
        if let Some(counter) = counted {
            watches.retain(|watch| !is_counted(watch));
            watches
                .extend(COUNTED.iter().filter(|r| calls.has(**r, rt)).map(|role| by_count(*role)));
            plan += &format!("counter {counter:#x}\n");
        }
        for watch in &watches {
            plan += &line_of(watch, calls);
        }
        let functions = lacking
            .into_iter()
            .map(watched)
            .filter(|w| calls.has(w.role, rt) && (rt || !RT_ONLY.contains(&w.role)))
            .filter(|w| counted.is_none() || !COUNTED.contains(&w.role))
            .map(|w| format!("calls of {}: the kernel has no such function", w.names[0]));
        let missing = map.missing().map(String::from).chain(functions).chain(uncounted(map));
        // include/asm-generic/thread_info_tif.h: the flag behind the usual one.
        let lazy = map.layout().need_resched.map(|flag| flag + 1);
        Follow { plan, watches, lazy, missing: missing.collect(), rt }
    }

    /// Also tells every call of a function of the kernel and its return, from so long after measuring began on.
    pub fn telling_functions(mut self, from: Nanos) -> Follow {
        self.plan += &format!("functions {}\n", from.0);
        self
    }

    /// Also looks where the CPU is ([`Kind::Inside`](sample::Kind::Inside)) in stretches as long as `from`, at least one
    /// instruction: what runs in them where their entry does not tell.
    pub fn looking_inside(mut self, from: Insns) -> Follow {
        let mut kinds = Stretch::IrqsOff as u8 | Stretch::PreemptOff as u8;
        if self.rt {
            // Softirqs are threads' there, with nothing off that is counted.
            kinds |= Stretch::Unscheduled as u8;
        }
        self.plan += &format!("inside {} {kinds}\n", from.0.max(1));
        self
    }
}

fn gates(map: &Map) -> impl Iterator<Item = String> {
    let named = CALLS.iter().filter_map(|name| map.address(name));
    let prefixed = GATES.iter().flat_map(|prefix| map.with_prefix(prefix)).map(|(_, at)| at);
    let single = named.chain(prefixed).map(|at| (at, at + 1));
    let stubs = STUBS.iter().filter_map(|name| map.address(name)).map(|start| {
        let end = map.symbols().map(|(_, at, _)| at).filter(|at| *at > start).min();
        (start, end.unwrap_or(start + 1))
    });
    single.chain(stubs).map(|(from, to)| format!("gate {from:#x} {to:#x}"))
}

fn layout(map: &Map) -> impl Iterator<Item = String> {
    let layout = map.layout();
    let irqs = if layout.counts_irqs_disabled() { " irqs" } else { "" };
    let preempt = layout.preempt_count.map(|offset| format!("preempt {offset:#x}{irqs}"));
    let tasks = (|| {
        let [current, pid, comm, prio] =
            [layout.current_task?, layout.pid?, layout.comm?, layout.prio?];
        Some(format!("current {current:#x}\ntask {pid} {comm} {prio}"))
    })();
    preempt.into_iter().chain(tasks)
}

fn points(map: &Map) -> impl Iterator<Item = String> {
    POINTS.iter().filter_map(|name| map.address(name)).map(|at| format!("point {at:#x}"))
}

/// Where PREEMPT_RT takes and releases what keeps bottom halves off (kernel/softirq.c): a lock, since 6.18 only where that is
/// configured; else the CPU's count, while which is not 0 nobody is woken to serve softirqs.
fn bh_lock(map: &Map) -> impl Iterator<Item = String> {
    let functions = [("holds", "__local_bh_disable_ip"), ("releases", "__local_bh_enable_ip")];
    let found = functions.map(|(word, name)| Some((word, map.address(name)?)));
    found.into_iter().flatten().map(|(word, at)| format!("{word} {at:#x}"))
}

/// Calls that tell nothing where the running task's count does.
const COUNTED: [Role; 2] = [Role::MigrateDisable, Role::MigrateEnable];

/// Where in a task the kernel counts how often it has disabled migration, where that has to be followed.
fn counted(map: &Map) -> Option<u64> {
    map.address(MIGRATION_INLINE)?;
    map.layout().migration_disabled
}

/// What is missing where that has to be followed and is not known.
fn uncounted(map: &Map) -> Option<String> {
    let is_inline = map.address(MIGRATION_INLINE).is_some();
    (is_inline && counted(map).is_none()).then(|| {
        "stretches with migration disabled: the kernel counts them where its types do not tell"
            .into()
    })
}

/// The watch of a call that is not one; its place is wherever the count changes.
fn by_count(role: Role) -> Watch {
    let index = (0..).zip(WATCHED).find(|(_, watched)| watched.role == role);
    let (index, _) = index.expect("every role is in the list");
    Watch { index, address: 0 }
}

fn watched(index: u8) -> &'static Watched {
    &WATCHED[usize::from(index)]
}

fn line_of(watch: &Watch, calls: Calls) -> String {
    let watched = watched(watch.index);
    let stack = match (calls, watched.role.edge()) {
        (Calls::Stretches, Some((kind, Edge::Opens))) => format!(" opens {}", kind as u8),
        (Calls::Stretches, Some((kind, Edge::Closes))) => format!(" closes {}", kind as u8),
        (Calls::All, _) if watched.stack => " stack".into(),
        _ => String::new(),
    };
    let what = format!("{}{stack}", watched.take);
    match (watch.address, watched.role) {
        (0, Role::MigrateEnable) => format!("falls {what}\n"),
        (0, _) => format!("rises {what}\n"),
        (address, _) => format!("watch {address:#x} {what}\n"),
    }
}
