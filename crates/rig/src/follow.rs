// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells the plugin what to follow in a guest's kernel: the facts of a [`Map`], as a plan.

use crate::x86_64::{CALLS, GATES, STUBS};
use sample::{Insns, Nanos, Stretch, Stretches};
use std::ops::Range;
use std::path::Path;
use trace::{Edge, Role, WATCHED, Watch, Watched, WindowKind};
use vmlinux::Map;
use wire::plan::{Count, Place, Plan, Stack, TaskFields};

/// A kernel without PREEMPT_RT does not miss these: its spinlocks do not sleep, and its preemption count tells of
/// bottom halves.
const RT_ONLY: [Role; 3] = [Role::LockOwner, Role::LockSleep, Role::BhDisable];

/// If a kernel has this function, migration is disabled without a call (include/linux/sched.h since 6.18). The running
/// task's count tells of it.
const MIGRATION_INLINE: &str = "___migrate_enable";

/// The functions in which the kernel schedules if somebody asked for it. If the kernel is not preemptible, no other
/// task can run between two of these calls.
const POINTS: [&str; 2] = ["__schedule", "__cond_resched"];

/// The calls of functions that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// No calls: the follower sees only masked interrupts, the preemption count and the running task. This is the
    /// quickest.
    None,
    /// The calls that open and close stretches that nothing else shows. Also those of the scheduler, from which on a
    /// task with an open stretch is away. Only long stretches get stacks.
    Stretches,
    /// The requests for another task, and the calls of the scheduler with their stacks. The follower also looks into
    /// the way from one place at which the kernel would schedule to the next one.
    Scheduling,
    /// All calls of [`WATCHED`], with the stacks that the list asks for.
    All,
}

impl Calls {
    fn has(self, role: Role, rt: bool) -> bool {
        match self {
            Calls::None => false,
            // If the preemption count tells of bottom halves, calls need not.
            Calls::Stretches => match role.edge() {
                Some((kind, _)) => rt || kind != WindowKind::BhOff,
                None => role == Role::Schedule,
            },
            Calls::Scheduling => matches!(role, Role::NeedResched | Role::Schedule),
            Calls::All => true,
        }
    }
}

/// The follower's plan, with everything that `map` knows of. For [`trace::Reader`] also the places of [`WATCHED`], in
/// the order in which the plan's events number them.
#[derive(Clone, Debug)]
pub struct Follow {
    pub(crate) plan: Plan,
    /// The watched places.
    pub watches: Vec<Watch>,
    /// The flag that asks a task to leave when this is not urgent, for [`trace::Reader::with_lazy_flag`].
    pub lazy: Option<u64>,
    /// What the follower cannot see in this kernel, and why.
    pub missing: Vec<String>,
    /// Whether to look into what the kernel does between two places at which it would schedule.
    looks_between_points: bool,
}

impl Follow {
    /// Follows the kernel of this map, whose file is `path`, and these `calls`. Stretches shorter than `stacks_from`
    /// get no stack.
    pub fn new(map: &Map, path: &Path, stacks_from: Insns, calls: Calls) -> Follow {
        let rt = map.layout().is_preempt_rt();
        let symbols = map.symbols().map(|(name, address, _)| (name, address));
        let (mut watches, lacking) = trace::places(symbols);
        watches.retain(|watch| calls.has(watched(watch.index).role, rt));
        let counted = counted(map);
        let is_counted = |watch: &Watch| COUNTED.contains(&watched(watch.index).role);
        if counted.is_some() {
            watches.retain(|watch| !is_counted(watch));
            watches
                .extend(COUNTED.iter().filter(|r| calls.has(**r, rt)).map(|role| by_count(*role)));
        }
        let [holds, releases] = BH_LOCK.map(|name| map.address(name).filter(|_| rt));
        let plan = Plan {
            map: map.unwinds().then(|| path.display().to_string()),
            stacks_from,
            gates: gates(map).collect(),
            points: POINTS.iter().filter_map(|name| map.address(name)).collect(),
            holds,
            releases,
            counter: counted,
            watches: watches.iter().map(|watch| told(watch, calls)).collect(),
            ..layout(map)
        };
        let functions = lacking
            .into_iter()
            .map(watched)
            .filter(|w| calls.has(w.role, rt) && (rt || !RT_ONLY.contains(&w.role)))
            .filter(|w| counted.is_none() || !COUNTED.contains(&w.role))
            .map(|w| format!("calls of {}: the kernel has no such function", w.names[0]));
        let missing = map.missing().map(String::from).chain(functions).chain(uncounted(map));
        // The flag behind the usual one (include/asm-generic/thread_info_tif.h).
        let lazy = map.layout().need_resched.map(|flag| flag + 1);
        let looks_between_points = rt || calls == Calls::Scheduling;
        Follow { plan, watches, lazy, missing: missing.collect(), looks_between_points }
    }

    /// Also reports every call of a kernel's function and its return, from this time after the beginning of measuring
    /// on.
    pub fn telling_functions(mut self, from: Nanos) -> Follow {
        self.plan.functions_from = Some(from);
        self
    }

    /// Also numbers all stretches by their openers, so that a copy of the guest can be aimed later ([`Walker`]). All
    /// runs that are compared with such a copy need it.
    ///
    /// [`Walker`]: crate::Walker
    pub fn numbering_stretches(mut self) -> Follow {
        self.plan.numbers = true;
        self
    }

    /// Also looks where the CPU is ([`wire::Event::Inside`]) in stretches as long as `from`, which is at least one
    /// instruction. The looks show what runs in a stretch if its entry does not tell.
    pub fn looking_inside(mut self, from: Insns) -> Follow {
        // On PREEMPT_RT threads serve softirqs, and nothing is off that is counted.
        let unscheduled = self.looks_between_points.then_some(Stretch::Unscheduled);
        let kinds = [Stretch::IrqsOff, Stretch::PreemptOff].into_iter().chain(unscheduled);
        self.plan.inside_from = from.max(Insns(1));
        self.plan.inside_kinds = kinds.collect::<Stretches>();
        self
    }
}

fn gates(map: &Map) -> impl Iterator<Item = Range<u64>> {
    let named = CALLS.iter().filter_map(|name| map.address(name));
    let prefixed = GATES.iter().flat_map(|prefix| map.with_prefix(prefix)).map(|(_, at)| at);
    let single = named.chain(prefixed).map(|at| at..at + 1);
    let stubs = STUBS.iter().filter_map(|name| map.address(name)).map(|start| {
        let end = map.symbols().map(|(_, at, _)| at).filter(|at| *at > start).min();
        start..end.unwrap_or(start + 1)
    });
    single.chain(stubs)
}

/// The places in which the kernel keeps what is followed.
fn layout(map: &Map) -> Plan {
    let layout = map.layout();
    let counts_irqs = layout.counts_irqs_disabled();
    let preempt = layout.preempt_count.map(|offset| Count { offset, counts_irqs });
    let tasks = (|| {
        let [current, pid, comm, prio] =
            [layout.current_task?, layout.pid?, layout.comm?, layout.prio?];
        Some((current, TaskFields { pid, comm, prio }))
    })();
    let (current, task) = tasks.unzip();
    Plan { preempt, current, task: task.unwrap_or_default(), ..Plan::default() }
}

/// The calls by which PREEMPT_RT takes and releases what keeps bottom halves off (kernel/softirq.c). This is a lock;
/// since 6.18 only if the kernel is configured so. Otherwise it is the CPU's count: while the count is not 0, nobody is
/// woken to serve softirqs.
const BH_LOCK: [&str; 2] = ["__local_bh_disable_ip", "__local_bh_enable_ip"];

/// The calls that tell nothing if the running task's count does.
const COUNTED: [Role; 2] = [Role::MigrateDisable, Role::MigrateEnable];

/// The place in a task at which the kernel counts how often the task has disabled migration, if the count has to be
/// followed.
fn counted(map: &Map) -> Option<u64> {
    map.address(MIGRATION_INLINE)?;
    map.layout().migration_disabled
}

/// The line for the user if the count has to be followed and its place is not known.
fn uncounted(map: &Map) -> Option<String> {
    let is_inline = map.address(MIGRATION_INLINE).is_some();
    (is_inline && counted(map).is_none()).then(|| {
        "stretches with migration disabled: the kernel counts them where its types do not tell"
            .into()
    })
}

/// The watch of a role that no call has. Its place is wherever the count changes.
fn by_count(role: Role) -> Watch {
    let index = (0..).zip(WATCHED).find(|(_, watched)| watched.role == role);
    let (index, _) = index.expect("every role is in the list");
    Watch { index, address: 0 }
}

fn watched(index: u8) -> &'static Watched {
    &WATCHED[usize::from(index)]
}

/// The watch in the form of the plugin's plan.
fn told(watch: &Watch, calls: Calls) -> wire::plan::Watch {
    let watched = watched(watch.index);
    let stack = match (calls, watched.role.edge()) {
        (Calls::Stretches, Some((kind, Edge::Opens))) => Stack::Opens(kind as u8),
        (Calls::Stretches, Some((kind, Edge::Closes))) => Stack::Closes(kind as u8),
        (Calls::All | Calls::Scheduling, _) if watched.stack => Stack::Always,
        _ => Stack::Never,
    };
    let place = match (watch.address, watched.role) {
        (0, Role::MigrateEnable) => Place::Falls,
        (0, _) => Place::Rises,
        (address, _) => Place::Address(address),
    };
    wire::plan::Watch { place, take: watched.take, stack }
}
