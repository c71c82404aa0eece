// SPDX-License-Identifier: GPL-2.0-or-later
//! The measuring threads. All of them are made ready first, then they start together.

use crate::Output;
use crate::report::RunError;
use rt::Policy;
use sample::Nanos;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread::{self, Builder};

/// The size of a stack: four times the prefaulted part. It is small, because locked memory is resident even if unused.
const STACK_BYTES: usize = 256 * 1024;

const WAIT: u8 = 0;
const GO: u8 = 1;
const LEAVE: u8 = 2;

/// Runs `measure` under `policy` in one thread for each of `cpus`. Each has its own of `outputs`. A thread without a
/// CPU is not bound. No thread begins before all threads are ready, so a refusal costs no measuring time.
///
/// # Errors
/// The first refusal, or the first error of `measure` after all threads have ended.
pub(crate) fn measuring<T: Send>(
    policy: Policy,
    cpus: &[Option<u32>],
    outputs: &mut [Output],
    measure: impl Fn(usize, &mut Output) -> Result<T, RunError> + Sync,
) -> Result<Vec<T>, RunError> {
    let gate = AtomicU8::new(WAIT);
    let (tell, told) = mpsc::channel();
    thread::scope(|s| {
        let mut threads = Vec::new();
        let mut answer = Ok(());
        for (index, (cpu, output)) in cpus.iter().zip(outputs).enumerate() {
            let (tell, gate, measure) = (tell.clone(), &gate, &measure);
            let body = move || {
                // The receiver outlives every thread.
                let _ = tell.send(become_measuring(policy, *cpu));
                while gate.load(Ordering::Acquire) == WAIT {
                    thread::park();
                }
                (gate.load(Ordering::Acquire) == GO).then(|| {
                    let measured = measure(index, output);
                    cpu.is_some().then(saw_cpu);
                    measured
                })
            };
            match Builder::new().stack_size(STACK_BYTES).spawn_scoped(s, body) {
                Ok(thread) => threads.push(thread),
                Err(e) => answer = Err(no_thread(&e)),
            }
        }
        for told in told.iter().take(threads.len()) {
            answer = answer.and(told);
        }
        gate.store(if answer.is_ok() { GO } else { LEAVE }, Ordering::Release);
        threads.iter().for_each(|thread| thread.thread().unpark());
        let ended: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        answer.and_then(|()| ended.into_iter().flatten().collect())
    })
}

/// The CPUs on which bound threads were when they had measured.
static SEEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn saw_cpu() {
    let cpu = rustix::thread::sched_getcpu();
    // A poisoned lock still holds a sound set.
    SEEN.lock().unwrap_or_else(|e| e.into_inner()).extend(u32::try_from(cpu));
}

/// The CPUs on which bound threads were seen when they had measured. The set has no thread that changes its CPU, and
/// none that cannot be bound.
pub(crate) fn seen_cpus() -> BTreeSet<u32> {
    std::mem::take(&mut SEEN.lock().unwrap_or_else(|e| e.into_inner()))
}

fn no_thread(e: &std::io::Error) -> RunError {
    RunError::Unavailable {
        what: "thread".into(),
        reason: format!(
            "{e}; raise the limit on processes (ulimit -u) or, where memory is locked, on that (ulimit -l)"
        ),
    }
}

/// Makes the calling thread a measuring thread: with a resident stack, exact timers and the plan's policy, and bound to
/// `cpu` if there is one. Threads under `SCHED_DEADLINE` cannot be bound.
pub(crate) fn become_measuring(policy: Policy, cpu: Option<u32>) -> Result<(), RunError> {
    rt::prefault_stack();
    rt::timer_slack(Nanos(1))?;
    match cpu {
        Some(cpu) => rt::pin(cpu)?,
        None => rt::unpin()?,
    }
    Ok(rt::apply(policy)?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use wire::{Producer, ring_bytes, ring_init};

    pub(crate) fn output() -> Output {
        let memory = Box::leak(vec![0u64; ring_bytes(4) / 8].into_boxed_slice());
        let (memory, bytes) = (memory.as_mut_ptr().cast(), ring_bytes(4));
        // SAFETY: the memory is fresh, has that size and is never freed.
        unsafe {
            ring_init(memory, bytes).unwrap();
            Output::new(Producer::attach(memory, bytes).unwrap())
        }
    }

    #[test]
    fn nobody_measures_when_one_thread_is_refused() {
        let mut outputs = [output(), output()];
        let begun = AtomicU8::new(0);
        let answer = measuring(Policy::Other(0), &[None, Some(4000)], &mut outputs, |_, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        assert!(matches!(answer, Err(RunError::Refused(rt::Error::CpuMissing { cpu: 4000, .. }))));
        assert_eq!(begun.into_inner(), 0);
    }

    #[test]
    fn every_thread_has_its_own_cpu_and_answers_in_order() {
        let cpus: Vec<_> = rt::allowed_cpus().unwrap().into_iter().map(Some).collect();
        let mut outputs: Vec<_> = cpus.iter().map(|_| output()).collect();
        let answer =
            measuring(Policy::Other(0), &cpus, &mut outputs, |_, _| Ok(rt::allowed_cpus()?));
        let want: Vec<_> = cpus.iter().flatten().map(|cpu| vec![*cpu]).collect();
        assert_eq!(answer, Ok(want));
    }
}
