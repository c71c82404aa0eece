// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::{Reader, StackId, Stacks, Symbols, WATCHED};
use proptest::prelude::*;
use sample::{Insns, Nanos, Stamp};
use serde_json::json;

fn at(ns: u64) -> At {
    At::new(Stamp::from_ns(ns), Insns(ns / 2))
}

fn on(stack: u32) -> Place {
    Place::Stack(StackId(stack))
}

fn irqs(ns: u64, masked: bool, stack: u32) -> Event {
    Event { at: at(ns), what: What::Irqs { masked, place: on(stack), opened: Place::Unknown } }
}

fn preempt(ns: u64, count: u32, stack: u32) -> Event {
    Event { at: at(ns), what: What::Preempt { count, place: on(stack), opened: Place::Unknown } }
}

fn run(ns: u64, task: u64, pid: u32) -> Event {
    Event { at: at(ns), what: What::Run { task: TaskId(task), pid } }
}

fn enter(ns: u64, role: Role, taken: u64, stack: u32) -> Event {
    let what = What::Enter { role, address: 0, taken, place: on(stack), opened: Place::Unknown };
    Event { at: at(ns), what }
}

fn looked([irqs_off, preempt_off, unscheduled]: [bool; 3], stack: u32) -> What {
    let unscheduled = unscheduled.then_some(Insns(1_000));
    What::Inside { irqs_off, preempt_off, unscheduled, place: on(stack) }
}

fn inside(ns: u64, kinds: [bool; 3], stack: u32) -> Event {
    Event { at: at(ns), what: looked(kinds, stack) }
}

fn follow(events: &[Event]) -> Windows {
    let mut windows = Windows::new(Insns(0), Insns(0));
    events.iter().for_each(|e| windows.event(e));
    windows.finish();
    windows
}

fn tally(windows: &Windows, kind: WindowKind, stack: u32) -> Tally {
    let found = windows.tallies().find(|(key, _)| key.kind == kind && key.opened_by == on(stack));
    found.expect("windows of that stack").1.clone()
}

#[test]
fn a_tasks_window_has_the_stack_that_is_told_when_it_closes() {
    let closes = |ns, role, opened| {
        let what = What::Enter { role, address: 0, taken: 0x200, place: on(3), opened };
        Event { at: at(ns), what }
    };
    let windows = follow(&[
        run(0, 1, 1),
        enter(10, Role::MigrateDisable, 0, 0),
        enter(20, Role::BhDisable, 0x200, 0),
        closes(30, Role::BhEnable, on(1)),
        closes(70, Role::MigrateEnable, on(2)),
    ]);
    for (kind, stack, length) in [(WindowKind::BhOff, 1, 10), (WindowKind::MigrationOff, 2, 60)] {
        let longest = tally(&windows, kind, stack).longest();
        assert_eq!((longest.length.time, longest.closed_by), (Nanos(length), on(3)));
    }
    assert_eq!(windows.tallies().count(), 2);
}

struct Numbered;
impl Symbols for Numbered {
    fn name(&self, _: u64) -> Option<String> {
        None
    }

    fn caller(&self, _: u64) -> Option<String> {
        None
    }
}

/// Stacks of one frame each. The address of the frame is the number of the stack.
fn stacks(count: u32) -> Stacks {
    let mut reader = Reader::new(&[]);
    for stack in 1..=count {
        let (at, address) = (at(0), u64::from(stack));
        reader.read(&wire::Event::Frame { at, stack: StackId(stack), index: 0, address });
    }
    reader.stacks().clone()
}

#[test]
fn windows_of_one_stack_are_added_up_and_the_longest_is_kept() {
    let windows = follow(&[
        irqs(100, true, 1),
        irqs(150, false, 2),
        irqs(200, true, 1),
        irqs(300, false, 3),
        irqs(400, true, 1),
        irqs(410, false, 2),
    ]);
    let t = tally(&windows, WindowKind::IrqsOff, 1);
    assert_eq!((t.count(), t.total().time, t.total().insns), (3, Nanos(160), Insns(80)));
    assert_eq!((t.longest().length.time, t.longest().at), (Nanos(100), at(200)));
    assert_eq!((t.longest().closed_by, t.closed_by()), (on(3), on(2)));
    let histogram: Vec<_> = t.histogram().collect();
    assert_eq!(histogram, [(Some(Nanos(16)), 1), (Some(Nanos(64)), 1), (Some(Nanos(128)), 1)]);
    assert_eq!(windows.cuts(WindowKind::IrqsOff), Cuts::default());
}

#[test]
fn a_window_that_was_not_seen_whole_is_counted_and_has_no_length() {
    let gap = Event { at: at(300), what: What::Gap };
    let windows = follow(&[
        irqs(100, false, 1),
        irqs(200, true, 2),
        gap,
        irqs(400, false, 3),
        irqs(500, true, 4),
    ]);
    assert_eq!(windows.tallies().count(), 0);
    assert_eq!(windows.cuts(WindowKind::IrqsOff), Cuts { at_begin: 2, at_end: 2 });
}

#[test]
fn a_nesting_whose_task_was_preempted_has_the_look_in_its_longest_stretch() {
    let look = |ns, insns, stack| {
        let (unscheduled, place) = (Some(Insns(insns)), on(stack));
        let what = What::Inside { irqs_off: false, preempt_off: false, unscheduled, place };
        Event { at: at(ns), what }
    };
    let windows = follow(&[
        run(0, 1, 1),
        enter(1, Role::MigrateDisable, 0, 9),
        look(10, 8, 3),
        look(18, 16, 4),
        run(30, 2, 2),
        run(40, 1, 1),
        // The rest after the preemption is shorter.
        look(48, 8, 5),
        enter(50, Role::MigrateEnable, 0, 9),
    ]);
    let t = tally(&windows, WindowKind::MigrationOff, 9);
    assert_eq!(t.longest().inside, on(4));
}

#[test]
fn a_window_has_the_last_look_of_its_own_kind_inside() {
    let (irqs_off, preempt_off, task) =
        ([true, false, false], [false, true, false], [false, false, true]);
    let windows = follow(&[
        run(0, 1, 1),
        enter(1, Role::MigrateDisable, 0, 9),
        preempt(5, 0, 8),
        preempt(10, 1, 1),
        inside(20, preempt_off, 4),
        irqs(30, true, 2),
        inside(40, irqs_off, 5),
        inside(50, irqs_off, 6),
        irqs(60, false, 3),
        inside(65, irqs_off, 7),
        preempt(70, 0, 3),
        inside(75, task, 4),
        run(80, 2, 2),
        inside(85, task, 5),
        run(90, 1, 1),
        enter(95, Role::MigrateEnable, 0, 9),
        // This window is too short for a look.
        preempt(100, 1, 1),
        preempt(105, 0, 3),
    ]);
    let mut seen: Vec<_> = windows.tallies().map(|(key, t)| (key, t.longest().inside)).collect();
    seen.sort();
    let is =
        |kind, opened_by, inside| (WindowKey { kind, opened_by: on(opened_by), inside }, inside);
    let all = [
        is(WindowKind::IrqsOff, 2, on(6)),
        is(WindowKind::PreemptOff, 1, Place::Unknown),
        is(WindowKind::PreemptOff, 1, on(4)),
        is(WindowKind::MigrationOff, 9, on(4)),
    ];
    assert_eq!(seen, all);
    // One opener is one row, whatever was inside. The row shows the inside of the longest window.
    let rows = windows.report(Order::Longest, 9, &stacks(9), &Numbered).windows;
    let of_kind: Vec<_> = rows.iter().filter(|r| r.kind == WindowKind::PreemptOff).collect();
    let [row] = of_kind[..] else { panic!("{of_kind:#?}") };
    assert_eq!((row.count, row.total_ns), (2, Nanos(65)));
    assert_eq!((&row.stack[..], &row.inside[..]), (&["0x1".into()][..], &["0x4".into()][..]));
}

#[test]
fn preemption_off_is_one_window_whose_parts_are_told_apart() {
    let windows = follow(&[
        preempt(0, 0, 9),
        preempt(100, 1, 1),
        preempt(110, 0x1_0001, 2),
        preempt(140, 0x101, 3),
        preempt(190, 1, 4),
        preempt(200, 0, 5),
    ]);
    let t = tally(&windows, WindowKind::PreemptOff, 1);
    assert_eq!((t.count(), t.total().time), (1, Nanos(100)));
    let parts = TimeParts {
        hardirq: Nanos(30),
        softirq: Nanos(50),
        own: Nanos(20),
        ..TimeParts::default()
    };
    assert_eq!((t.parts(), t.longest().parts), (parts, parts));
    assert_eq!(t.closed_by(), on(5));
}

#[test]
fn the_count_that_the_idle_task_always_has_opens_no_window() {
    let windows = follow(&[
        preempt(0, 2, 1),
        run(10, 7, 0),
        preempt(20, 1, 2),
        preempt(1_000, 2, 3),
        run(1_050, 8, 42),
        preempt(1_060, 0, 4),
    ]);
    // The first window was open before it was known that the idle task runs.
    let t = tally(&windows, WindowKind::PreemptOff, 3);
    assert_eq!((t.count(), t.total().time), (1, Nanos(60)));
}

#[test]
fn bottom_halves_of_a_plain_kernel_are_told_by_the_count() {
    let windows = follow(&[preempt(0, 0, 9), preempt(10, 0x200, 1), preempt(35, 0, 2)]);
    assert_eq!(tally(&windows, WindowKind::BhOff, 1).total().time, Nanos(25));
    // In a kernel that has a function for enabling only, these calls say nothing.
    let windows = follow(&[run(0, 1, 1), enter(5, Role::BhEnable, 0x200, 1)]);
    assert_eq!(windows.cuts(WindowKind::BhOff), Cuts::default());
}

#[test]
fn nesting_belongs_to_the_task_and_outlives_a_switch() {
    let windows = follow(&[
        run(0, 1, 1),
        enter(10, Role::MigrateDisable, 0, 1),
        enter(20, Role::MigrateDisable, 0, 2),
        enter(25, Role::BhDisable, 0x200, 5),
        run(30, 2, 2),
        enter(40, Role::MigrateEnable, 0, 3),
        run(50, 1, 1),
        enter(55, Role::BhEnable, 0x200, 6),
        enter(60, Role::MigrateEnable, 0, 3),
        enter(90, Role::MigrateEnable, 0, 4),
    ]);
    let t = tally(&windows, WindowKind::MigrationOff, 1);
    assert_eq!((t.count(), t.total().time, t.closed_by()), (1, Nanos(80), on(4)));
    assert_eq!(tally(&windows, WindowKind::BhOff, 5).total().time, Nanos(30));
    assert_eq!(windows.cuts(WindowKind::MigrationOff), Cuts { at_begin: 1, at_end: 0 });
}

#[test]
fn what_other_tasks_and_interrupts_took_of_a_tasks_window_is_told_apart() {
    let windows = follow(&[
        preempt(0, 0, 9),
        run(0, 1, 1),
        enter(10, Role::MigrateDisable, 0, 1),
        preempt(20, 0x1_0000, 9),
        preempt(35, 0, 9),
        // The switch away from the task is not its own time either.
        enter(38, Role::Schedule, 0, 9),
        run(40, 2, 2),
        // An interrupt while the task is away belongs to the other task.
        preempt(50, 0x1_0000, 9),
        preempt(60, 0, 9),
        run(90, 1, 1),
        enter(100, Role::MigrateEnable, 0, 2),
    ]);
    let t = tally(&windows, WindowKind::MigrationOff, 1);
    assert_eq!((t.count(), t.total().time), (1, Nanos(90)));
    let parts =
        TimeParts { hardirq: Nanos(15), others: Nanos(52), own: Nanos(23), ..TimeParts::default() };
    assert_eq!(t.longest().parts, parts);
}

#[test]
fn a_window_that_opens_after_the_scheduler_kept_its_task_is_its_own_until_the_switch() {
    let windows = follow(&[
        preempt(0, 0, 9),
        run(0, 1, 1),
        enter(10, Role::Schedule, 0, 9),
        enter(20, Role::MigrateDisable, 0, 1),
        run(50, 2, 2),
        run(90, 1, 1),
        enter(100, Role::MigrateEnable, 0, 2),
    ]);
    let t = tally(&windows, WindowKind::MigrationOff, 1);
    let parts = TimeParts { others: Nanos(40), own: Nanos(40), ..TimeParts::default() };
    assert_eq!((t.total().time, t.longest().parts), (Nanos(80), parts));
}

#[test]
fn the_report_is_ranked_and_has_the_published_keys() {
    let windows = follow(&[
        irqs(0, true, 1),
        irqs(30, false, 2),
        irqs(40, true, 1),
        irqs(70, false, 2),
        irqs(100, true, 3),
        irqs(150, false, 2),
    ]);
    let report = |order| windows.report(order, 10, &stacks(9), &Numbered).windows[0].max_ns;
    assert_eq!((report(Order::Longest), report(Order::Total)), (Nanos(50), Nanos(30)));
    let report = windows.report(Order::Total, 1, &stacks(9), &Numbered);
    let json = serde_json::to_value(&report).expect("JSON");
    let row = &json["windows"][0];
    assert_eq!(row["kind"], "irqs_off");
    assert_eq!(
        (&row["count"], &row["total_ns"], &row["max_ns"]),
        (&2.into(), &60.into(), &30.into())
    );
    assert_eq!((&row["stack"], &row["inside"]), (&json!(["0x1"]), &json!([])));
    assert_eq!(json["cut"]["preempt_off"]["at_end"], 0);
    assert_eq!(serde_json::from_value::<WindowsReport>(json).expect("the same"), report);
}

fn any_event() -> impl Strategy<Value = (u64, What)> {
    let stack = (0u32..6).prop_map(|s| if s > 0 { on(s) } else { Place::Unknown });
    let counts =
        prop_oneof![Just(0u32), Just(1), Just(2), Just(0x100), Just(0x201), Just(0x1_0001)];
    let what = prop_oneof![
        (any::<bool>(), stack.clone()).prop_map(|(masked, place)| What::Irqs {
            masked,
            place,
            opened: Place::Unknown
        }),
        (counts, stack.clone()).prop_map(|(count, place)| What::Preempt {
            count,
            place,
            opened: Place::Unknown
        }),
        (0u64..3).prop_map(|t| What::Run { task: TaskId(t), pid: t as u32 }),
        (0..WATCHED.len(), 0u64..0x400, stack).prop_map(|(watch, taken, place)| {
            What::Enter {
                role: WATCHED[watch].role,
                address: 0,
                taken,
                place,
                opened: Place::Unknown,
            }
        }),
        (any::<[bool; 3]>(), 0u32..6).prop_map(|(kinds, stack)| looked(kinds, stack)),
        Just(What::Gap),
    ];
    (0u64..100, what)
}

proptest! {
    #[test]
    fn windows_never_add_up_to_more_than_the_time_that_passed(
        steps in prop::collection::vec(any_event(), 0..300)
    ) {
        let (mut now, mut windows) = (0, Windows::new(Insns(0), Insns(0)));
        for (step, what) in steps {
            now += step;
            windows.event(&Event { at: at(now), what });
        }
        windows.finish();
        for kind in WindowKind::ALL {
            let of_kind = || windows.tallies().filter(|(key, _)| key.kind == kind).map(|(_, t)| t);
            // The windows of several tasks overlap.
            let is_cpus = [WindowKind::IrqsOff, WindowKind::PreemptOff].contains(&kind);
            prop_assert!(!is_cpus || of_kind().map(|t| t.total().time).sum::<Nanos>() <= Nanos(now));
            for t in of_kind() {
                prop_assert!(t.longest().length.time <= t.total().time);
                prop_assert_eq!(t.histogram().map(|(_, n)| n).sum::<u64>(), t.count());
                let all = |p: TimeParts| p.nmi + p.hardirq + p.softirq + p.others + p.own;
                let whole = |time: Nanos| if kind == WindowKind::IrqsOff { Nanos(0) } else { time };
                prop_assert_eq!(all(t.parts()), whole(t.total().time));
                prop_assert_eq!(all(t.longest().parts), whole(t.longest().length.time));
                prop_assert!(!is_cpus || t.parts().others.0 == 0);
            }
        }
    }

    #[test]
    fn memory_grows_with_stacks_and_not_with_time(
        steps in prop::collection::vec(any_event(), 300..600)
    ) {
        let mut windows = Windows::new(Insns(0), Insns(0));
        for (i, (_, what)) in steps.into_iter().enumerate() {
            windows.event(&Event { at: at(i as u64), what });
        }
        prop_assert!(windows.tallies().count() <= WindowKind::ALL.len() * 6 * 6);
        prop_assert!(windows.migration.len() <= 3 && windows.bh_tasks.len() <= 3);
    }
}

#[test]
fn a_run_that_was_followed_more_closely_has_the_same_windows_by_the_same_stacks() {
    // An instruction takes 2 ns here. One window has 400 instructions. Another one has 3,000 and was looked into at 600
    // and at 2,400.
    let closes = |ns, stack, opened| {
        let what = What::Irqs { masked: false, place: on(stack), opened: on(opened) };
        Event { at: at(ns), what }
    };
    let gate = |ns| {
        let what = What::Irqs { masked: true, place: Place::Address(7), opened: Place::Unknown };
        Event { at: at(ns), what }
    };
    let look = |ns, stack| inside(ns, [true, false, false], stack);
    let close = [
        gate(0),
        closes(800, 2, 1),
        gate(1_000),
        look(2_200, 3),
        look(5_800, 4),
        closes(7_000, 2, 1),
    ];
    let far = [gate(0), irqs(800, false, 0), gate(1_000), look(5_800, 4), closes(7_000, 2, 1)];
    let far = far.map(|mut event| {
        if let What::Irqs { masked: false, place, .. } = &mut event.what
            && *place == on(0)
        {
            *place = Place::Unknown;
        }
        event
    });
    let keys = |events: &[Event], from: (u64, u64)| {
        let mut windows = Windows::new(Insns(from.0), Insns(from.1));
        events.iter().for_each(|e| windows.event(e));
        let mut keys: Vec<_> =
            windows.tallies().map(|(key, tally)| (key, tally.count(), tally.closed_by())).collect();
        keys.sort_unstable_by_key(|(key, ..)| *key);
        keys
    };
    assert_eq!(keys(&close, (1_000, 2_000)), keys(&far, (0, 0)));
    assert_ne!(keys(&close, (0, 0)), keys(&far, (0, 0)));
}
