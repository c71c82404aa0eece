// SPDX-License-Identifier: GPL-2.0-or-later
//! An answer that has to wait for a tick.

use super::*;

/// A guest whose timer softirq toggles D9 and, in the same tick, the tasklet toggles D2.
fn answers_at_the_tick() -> Vec<(u64, What)> {
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (20, TO_USER)];
    events.push((100, TRIGGER));
    events.extend(own_interrupt(105));
    events.extend([
        (160, preempt(0, 0)),
        (170, irqs(false, 0)),
        (170, TO_USER),
        // A tick is an interrupt of the timer; this one is another timer's.
        (300, irqs(true, 0)),
        (300, enter(Role::Interrupt, 0, 0)),
        (350, irqs(false, 0)),
        (350, TO_USER),
        (400, irqs(true, 0)),
        (400, enter(Role::Interrupt, 0, 0)),
        (410, preempt(0x1_0000, 0)),
        (420, enter(Role::Tick, 0, 0)),
        (450, preempt(0x100, 0)),
        (455, enter(Role::SoftirqAction, 0, 0)),
        (500, What::Pins { level: 0x204 }),
    ]);
    events
}

#[test]
fn a_timer_that_waits_for_the_tick_waits_for_nobody() {
    let timer = Interrupt { entry: Some(ASM_TIMER), vector: None };
    let e = explained(9, &answers_at_the_tick());
    let causes = e.causes();
    // From the return to user space to the entry of the tick's interrupt, with the interrupt in between.
    assert_eq!(causes[&Cause::Tick].time, Nanos(230));
    assert_eq!(causes[&Cause::Interrupt(timer)].time, Nanos(50));
    assert!(!causes.contains_key(&Cause::Task(LOAD)), "{:?}", parts(&e));
    assert_eq!(e.latency().time, Nanos(400));
    // Who needs no tick waits for whatever ran.
    let tasklet = explained(2, &answers_at_the_tick());
    assert_eq!(tasklet.causes().get(&Cause::Tick), None);
    assert_eq!(tasklet.causes()[&Cause::Task(LOAD)].time, Nanos(180));
    assert_eq!(tasklet.latency().time, Nanos(400));
}
