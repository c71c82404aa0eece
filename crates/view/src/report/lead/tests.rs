// SPDX-License-Identifier: GPL-2.0-or-later
//! The first sentences of reports of made-up runs.

use super::*;
use bundle::examples::manifest_of;
use bundle::{Conclusion, Warning};
use stats::{Limit, Statistic};

/// A run of 500 answers of `hardirq`, `task` and `work`, of which `task` was at most so late.
fn run(flavour: &str, load: &str, max_ns: u64) -> Manifest {
    let mut run = manifest_of(flavour, &["hardirq", "task", "work"]);
    run.about.load = load.into();
    for series in &mut run.series {
        let late = if series.responder.as_str() == TASK { max_ns } else { 9 * max_ns };
        (series.count, series.max) = (500, Some(Nanos(late)));
    }
    run
}

fn lose(run: &mut Manifest, responder: &str, change: impl FnOnce(&mut Losses)) {
    let series = run.series.iter_mut().find(|s| s.responder.as_str() == responder);
    change(&mut series.expect("a series").losses);
}

fn limited(mut run: Manifest, bound_ns: u64) -> Manifest {
    let responder = "task".parse().expect("a name");
    let limits = vec![Limit::at_most(responder, Statistic::Max, Nanos(bound_ns))];
    run.conclusion = Conclusion::of(&run.series, &[], limits, Vec::new());
    run
}

fn said(runs: &[Manifest]) -> Vec<String> {
    let experiments = vec!["ladder".to_owned(); runs.len()];
    of_runs(&runs.iter().collect::<Vec<_>>(), &experiments)
}

#[test]
fn flavours_under_the_worst_load_stand_in_one_sentence_with_how_many_times_that_is() {
    let runs = [
        run("6.12 preempt=none", "idle", 9_000),
        run("6.12 preempt=none", "mixed", 1_710_000),
        run("6.12-rt", "mixed", 16_900),
    ];
    assert_eq!(
        said(&runs),
        [
            "Under mixed load, task answered within 16.9 µs of virtual time on 6.12-rt and within 1.71 ms on 6.12 preempt=none, \
         in 500 answers each: 101 times as long."
        ]
    );
    assert_eq!(
        said(&runs[..1]),
        [
            "Without load, task answered within 9.00 µs of virtual time on 6.12 preempt=none, in 500 answers."
        ]
    );
}

#[test]
fn what_was_lost_is_said_and_an_answer_that_may_be_missing_takes_the_comparison_away() {
    let mut runs = [run("a", "mixed", 1_000), run("b", "mixed", 4_000)];
    lose(&mut runs[1], "task", |losses| losses.superseded = 12);
    lose(&mut runs[0], "work", |losses| losses.unanswered = 7);
    let text = said(&runs).join(" ");
    assert!(
        text.contains(": 4.0 times as long. These numbers do not contain: 12 superseded on b."),
        "{text}"
    );
    lose(&mut runs[0], "task", |losses| losses.unanswered = 3);
    let text = said(&runs).join(" ");
    assert!(!text.contains("times"), "{text}");
    assert!(
        text.ends_with("These numbers do not contain: 3 unanswered on a; 12 superseded on b."),
        "{text}"
    );
}

#[test]
fn flavours_that_were_not_answered_in_the_same_company_are_not_compared() {
    let mut runs = [run("a", "mixed", 1_000), run("b", "mixed", 4_000)];
    runs[0].series.remove(0);
    let text = said(&runs).join(" ");
    assert!(text.contains("within 4.00 µs on b") && !text.contains("times"), "{text}");
}

#[test]
fn an_unsound_run_is_left_out_and_said_to_be_so() {
    let mut runs = [run("a", "mixed", 1_000), run("b", "mixed", 4_000)];
    runs[1].conclusion = Conclusion::of(&[], &[], Vec::new(), vec![Warning::Interrupted]);
    assert_eq!(
        said(&runs),
        [
            "Under mixed load, task answered within 1.00 µs of virtual time on a, in 500 answers.",
            "1 of 2 runs is unsound: do not use its numbers."
        ]
    );
    assert_eq!(said(&runs[1..]), ["The run is unsound: do not use its numbers."]);
}

#[test]
fn what_became_of_the_limits_is_counted() {
    let run = |max| limited(run("a", "mixed", max), 250_000);
    let last = |runs: &[Manifest]| said(runs).pop().expect("a sentence");
    assert_eq!(last(&[run(1), run(300_000), run(300_000)]), "2 of 3 runs exceeded a limit.");
    assert_eq!(last(&[run(1), run(300_000)]), "1 of 2 runs exceeded a limit.");
    assert_eq!(last(&[run(300_000)]), "It exceeded a limit.");
    assert_eq!(last(&[run(1), run(2)]), "All 2 runs kept their limits.");
}

#[test]
fn a_limited_method_of_a_probe_or_the_last_one_stands_where_there_is_no_task() {
    let mut of_names = manifest_of("6.12", &["futex", "nanosleep-1ms", "select-1ms"]);
    of_names.clock = Clock::Monotonic;
    of_names.series.iter_mut().for_each(|s| s.max = Some(Nanos(52_000)));
    assert_eq!(responder(&[&of_names]), Some("select-1ms"));
    assert_eq!(
        said(std::slice::from_ref(&of_names)),
        ["Without load, select-1ms answered within 52.0 µs on 6.12, in 10 answers."]
    );
    let responder_of = "nanosleep-1ms".parse().expect("a name");
    of_names.conclusion.limits = vec![Limit::at_most(responder_of, Statistic::Max, Nanos(1))];
    assert_eq!(responder(&[&of_names]), Some("nanosleep-1ms"));
}

#[test]
fn several_experiments_have_no_common_maximum_and_many_flavours_only_their_extremes() {
    let runs = [run("a", "mixed", 1_000), run("b", "mixed", 4_000)];
    let names = ["one".to_owned(), "other".to_owned()];
    assert!(of_runs(&runs.iter().collect::<Vec<_>>(), &names).is_empty());
    let many: Vec<Manifest> = (1..=6).map(|n| run(&format!("6.{n}"), "mixed", 1_000 * n)).collect();
    let text = said(&many).join(" ");
    let part = "on 6.1 and within 6.00 µs on 6.6, the best and the worst of 6, in 500 answers each: 6.0 times";
    assert!(text.contains(part), "{text}");
}

#[test]
fn who_never_answered_is_later_than_any_other() {
    let mut runs = [run("a", "mixed", 1_000), run("b", "mixed", 4_000)];
    let task = &mut runs[0].series[1];
    (task.count, task.max) = (0, None);
    lose(&mut runs[0], "task", |losses| losses.unanswered = 500);
    let text = said(&runs).join(" ");
    assert!(
        text.contains("within 4.00 µs of virtual time on b, and never on a, in 500 answers."),
        "{text}"
    );
    assert!(text.ends_with("These numbers do not contain: 500 unanswered on a."), "{text}");
}

#[test]
fn a_hunt_tells_its_worst_of_how_many_triggers_and_what_was_lost() {
    let losses = Losses { superseded: 12, ..Losses::default() };
    let text = |worst, losses| hunt_sentence("6.12", "mixed", "task", worst, 5_673, losses);
    assert_eq!(
        text(Some(Nanos(2_000_000)), &losses),
        "The hunt of 6.12 under mixed load made task answer as late as 2.00 ms of virtual time, the worst of 5\u{202f}673 \
         triggers. This number does not contain: 12 superseded."
    );
    let none = "The hunt of 6.12 under mixed load had no answer of task to 5\u{202f}673 triggers.";
    assert_eq!(text(None, &Losses::default()), none);
    assert!(
        hunt_sentence("6.12", "mixed, fork", "task", None, 1, &losses)
            .contains("under the loads mixed, fork")
    );
}
