// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests the names of interrupts and softirqs, by stacks that were taken in them.
use super::*;

/// The frames, by their address. The stacks are numbered from 1 on.
const FRAMES: [&str; 12] = [
    "asm_sysvec_apic_timer_interrupt+0x1a",
    "sysvec_apic_timer_interrupt+0x6c",
    "__sysvec_apic_timer_interrupt+0x58",
    "hrtimer_interrupt+0xfa",
    "__hrtimer_run_queues+0x10d",
    "test_hardirq+0x9 [test]",
    "handle_softirqs+0xd0",
    "net_rx_action+0x2f",
    "__napi_poll+0x2b",
    "process_backlog+0x9",
    "ip_rcv+0x7",
    "clear_page+0xb",
];
/// Stacks in the timer's interrupt: one in the handler, and below one on the way to it.
const IN_HANDLER: u32 = 1;
const BEFORE_HANDLER: u32 = 2;
/// Stacks in the softirq, and below in the timer's interrupt during the softirq.
const IN_SOFTIRQ: u32 = 3;
const IN_NESTED: u32 = 4;

struct Framed;
impl crate::Symbols for Framed {
    fn name(&self, address: u64) -> Option<String> {
        let of_entry = match address {
            ASM_COMMON => "asm_common_interrupt+0x0",
            ASM_TIMER => "asm_sysvec_apic_timer_interrupt+0x0",
            _ => FRAMES.get(usize::try_from(address).ok()?)?,
        };
        Some(of_entry.into())
    }

    fn caller(&self, address: u64) -> Option<String> {
        self.name(address)
    }
}

/// The cause, the function that was called, and the functions, for each part that is an interrupt or a softirq.
fn served(pin: u8, events: &[(u64, What)]) -> Vec<(String, String, Vec<String>)> {
    let mut reader = Reader::new(&[]);
    for (id, frames) in (1..).zip([
        &[5, 4, 3, 2, 1, 0, 11][..],
        &[3, 2, 1, 0, 11],
        &[10, 9, 8, 7, 6, 11],
        &[5, 4, 3, 2, 1, 0, 10, 9, 8, 7, 6, 11],
    ]) {
        for (index, address) in (0..).zip(frames) {
            let (at, stack, address) = (at(0), StackId(id), *address);
            reader.read(&wire::Event::Frame { at, stack, index, address });
        }
    }
    let report = explained(pin, events).report(&reader, &Framed);
    let parts = report.parts.into_iter().map(|part| part.cause);
    let served = parts.filter(|c| c.cause == "interrupt" || c.cause == "softirq");
    served.map(|c| (c.cause, c.who, c.stack)).collect()
}

/// The event that a softirq begins.
const SOFTIRQ: What = What::Enter {
    role: Role::SoftirqAction,
    address: 7,
    taken: 0,
    place: Place::Unknown,
    opened: Place::Unknown,
};

fn look(stack: u32) -> What {
    What::Inside { irqs_off: true, preempt_off: false, unscheduled: None, place: on(stack) }
}

#[test]
fn an_interrupt_is_named_by_whom_it_called_whether_that_was_seen_before_the_trigger_or_after() {
    for seen in [[(20, BEFORE_HANDLER), (90, IN_HANDLER)], [(20, IN_HANDLER), (90, BEFORE_HANDLER)]]
    {
        let [first, last] = seen.map(|(ns, stack)| (ns, look(stack)));
        let mut events = vec![
            (0, run(LOAD)),
            (0, preempt(0, 0)),
            (10, irqs(true, 0)),
            (10, enter(Role::Interrupt, 0, 0)),
            first,
            (50, TRIGGER),
            last,
            (120, irqs(false, 0)),
            (120, TO_KERNEL),
        ];
        events.extend(own_interrupt(120));
        events.push((200, What::Pins { level: 1 }));
        let functions = [
            "test_hardirq [test]",
            "__hrtimer_run_queues",
            "hrtimer_interrupt",
            "__sysvec_apic_timer_interrupt",
            "sysvec_apic_timer_interrupt",
            "asm_sysvec_apic_timer_interrupt",
        ];
        let functions = functions.map(String::from).to_vec();
        let who = "local timer: test_hardirq [test]".to_owned();
        assert_eq!(served(0, &events), [("interrupt".to_owned(), who, functions)]);
    }
}

#[test]
fn a_softirq_and_the_interrupts_around_it_have_each_what_was_seen_in_them() {
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (50, TRIGGER)];
    events.extend(own_interrupt(50));
    events.extend([
        (95, preempt(0, 0)),
        (96, irqs(false, 0)),
        (96, TO_KERNEL),
        // Another interrupt, at whose end softirqs run.
        (100, irqs(true, 0)),
        (100, enter(Role::Interrupt, 0, 0)),
        (105, preempt(0x1_0000, 0)),
        (120, preempt(0, 0)),
        (121, preempt(0x100, 0)),
        (122, SOFTIRQ),
        (130, irqs(false, 0)),
        (150, look(IN_SOFTIRQ)),
        (160, irqs(true, 0)),
        (160, enter(Role::Interrupt, 0, 0)),
        (165, preempt(0x1_0100, 0)),
        (180, look(IN_NESTED)),
        (190, preempt(0x100, 0)),
        (195, irqs(false, 0)),
        (195, TO_KERNEL),
        (300, What::Pins { level: 4 }),
    ]);
    let served = served(2, &events);
    let who: Vec<_> = served.iter().map(|(cause, who, _)| (cause.as_str(), who.as_str())).collect();
    let softirq = ("softirq", "net_rx: process_backlog");
    let nested = ("interrupt", "local timer: test_hardirq [test]");
    let first = [("interrupt", "local timer"), ("softirq", "")];
    assert_eq!(who, [&first[..], &[softirq, nested, softirq]].concat());
    let functions = ["process_backlog", "__napi_poll", "net_rx_action", "handle_softirqs"];
    assert_eq!(served[2].2, functions);
}

#[test]
fn a_task_that_serves_softirqs_is_late_for_those_before_the_one_that_answers() {
    let look = |stack| What::Inside {
        irqs_off: false,
        preempt_off: false,
        unscheduled: Some(Insns(500)),
        place: on(stack),
    };
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (50, TRIGGER)];
    events.extend(own_interrupt(50));
    events.extend([
        (92, enter(Role::WakeUp, RESPONDER.0, 0)),
        (95, preempt(0, 0)),
        (96, irqs(false, 0)),
        (96, TO_KERNEL),
        (97, enter(Role::Schedule, 0, 0)),
        (98, run(RESPONDER)),
        (99, preempt(1, 0)),
        (100, preempt(0, 0)),
        // The task behaves as ksoftirqd on PREEMPT_RT: it has the lock of bottom halves, which keeps it on its CPU.
        (101, enter(Role::BhDisable, 0x100, 0)),
        (102, enter(Role::MigrateDisable, 0, 0)),
        (110, enter(Role::Softirq, 0, 0)),
        (120, SOFTIRQ),
        // A lock inside the softirq.
        (130, enter(Role::MigrateDisable, 0, 0)),
        (131, preempt(1, 0)),
        (132, preempt(0, 0)),
        (140, enter(Role::MigrateEnable, 0, 0)),
        (150, look(IN_SOFTIRQ)),
        (250, enter(Role::MigrateEnable, 0, 0)),
        (300, What::Pins { level: 4 }),
    ]);
    let named = ("softirq".to_owned(), "net_rx: process_backlog".to_owned());
    let served = served(2, &events);
    let who: Vec<_> = served.into_iter().map(|(cause, who, _)| (cause, who)).collect();
    assert_eq!(who[1..].iter().filter(|who| **who != named).count(), 0, "{who:?}");
    assert_eq!(who[0], ("softirq".into(), String::new()), "until its action begins");
    let of = |cause: fn(&Cause) -> bool| {
        let parts = parts(&explained(2, &events)).into_iter().filter(|(_, of, _)| cause(of));
        parts.map(|(.., ns)| ns).sum::<u64>()
    };
    assert_eq!(of(|cause| matches!(cause, Cause::Softirq(_))), 140);
    assert_eq!(of(|cause| *cause == Cause::Responder), 10 + 50, "before and after");
}
