// SPDX-License-Identifier: GPL-2.0-or-later
//! The context of other threads that have a real-time policy and may run on a measured CPU.

use super::parse::{RealTime, Thread, cpu_list, labelled, thread};
use super::tree::Tree;
use super::{Context, keys};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How many threads are listed. These show what keeps a machine busy. A separate count gives the number of all threads.
const SHOWN: usize = 8;

/// A real-time thread that may delay the measuring threads.
struct Rival {
    thread: Thread,
    real_time: RealTime,
}

pub fn read(tree: &Tree, cpus: &BTreeSet<u32>, context: &mut Context) {
    let processes = tree.numbered("proc", "");
    if processes.is_empty() {
        return;
    }
    let ourselves = tree.link("proc/self").and_then(|pid| pid.parse().ok());
    let others = processes.into_iter().filter(|pid| Some(*pid) != ourselves);
    let mut rivals: Vec<Rival> = others.flat_map(|pid| rivals(tree, pid, cpus)).collect();
    rivals.sort_by_key(|r| (Reverse(r.real_time.priority()), r.thread.id));
    let (kernel, user): (Vec<Rival>, Vec<Rival>) =
        rivals.into_iter().partition(|r| r.thread.is_kernel);
    context.set(keys::RT_TASKS, Some(user.len()));
    context.set(keys::RT_TASKS_TOP, Some(shown(&user)));
    context.set(keys::RT_KERNEL_THREADS, Some(kernel.len()));
    context.set(keys::RT_KERNEL_THREADS_TOP, Some(shown(&kernel)));
}

/// The rivals in one process. A process that has ended meanwhile has none.
fn rivals(tree: &Tree, pid: u32, cpus: &BTreeSet<u32>) -> Vec<Rival> {
    let process = format!("proc/{pid}");
    let Some(first) = tree.text(&format!("{process}/stat")).as_deref().and_then(thread) else {
        return Vec::new();
    };
    if first.threads_of_process <= 1 {
        return rival(tree, &process, first, cpus).into_iter().collect();
    }
    let directory = format!("{process}/task");
    let threads = tree.numbered(&directory, "").into_iter().filter_map(|id| {
        let path = format!("{directory}/{id}");
        let thread = tree.text(&format!("{path}/stat")).as_deref().and_then(thread)?;
        rival(tree, &path, thread, cpus)
    });
    threads.collect()
}

/// The thread as a rival, if it may run on one of `cpus`. A thread whose CPUs cannot be read may run everywhere.
fn rival(tree: &Tree, path: &str, thread: Thread, cpus: &BTreeSet<u32>) -> Option<Rival> {
    let real_time = thread.real_time?;
    let status = tree.text(&format!("{path}/status"));
    let allowed = status.as_deref().and_then(|s| labelled(s, "Cpus_allowed_list"));
    let elsewhere =
        allowed.and_then(cpu_list).is_some_and(|list| list.iter().all(|c| !cpus.contains(c)));
    (!elsewhere).then_some(Rival { thread, real_time })
}

fn shown(rivals: &[Rival]) -> String {
    // Whoever runs a thread chooses its name. The name may hold the characters that separate the fields here.
    let name = |r: &Rival| r.thread.name.replace(|c: char| c == ';' || c.is_whitespace(), "_");
    let each = |r: &Rival| format!("{} {} {}", r.thread.id, name(r), r.real_time);
    rivals.iter().take(SHOWN).map(each).collect::<Vec<_>>().join("; ")
}
