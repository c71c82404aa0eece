// SPDX-License-Identifier: GPL-2.0-or-later
//! A census has the latency that a run from the snapshot has at each instant of its window.

use lab::census::{Census, Window, stretches};
use lab::followed::{Choice, Named, Ready, Reproducer, open, reproducer};
use rig::{Bench, Generator};
use sample::{Nanos, Observation, Schedule, When};
use serde_json::Value;
use std::ops::ControlFlow;
use testbench::{FIRST_AND_LAST, Lab, Run, assert_as_promised_by, experiment, have_kernels};

/// The trigger around which there is a census.
const TRIGGER: u64 = 2;

/// The latency of the task if the triggers before come as in the run, and this one at `at`.
fn cold(ready: &Ready, find: &Reproducer, at: Nanos) -> Option<Nanos> {
    let before = find.times_ns[..TRIGGER as usize].iter().copied();
    let when = When::Planned(Schedule::Explicit(before.chain([at]).collect()));
    let generator = Generator { when, ..ready.generator().clone() };
    let task = find.sample().series;
    let mut latency = None;
    let mut observe = |observation| {
        match observation {
            Observation::Sample(s) if (s.trigger, s.series) == (TRIGGER, task) => {
                latency = Some(s.latency);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    };
    ready.fire(generator, &mut observe, None, &|_| ()).expect("it runs");
    latency
}

fn of_run(lab: &Lab, bench: &Bench, run: &Run) -> Reproducer {
    let bundle = lab.store().join(run.text("run"));
    let bundle = open(bundle.to_str().expect("text"), || panic!("it is a path")).expect("a run");
    let named = Named::Run(Box::new(bundle));
    let task = "task".parse().expect("a series");
    reproducer(bench, &named, Some(&task), Some(Choice::Trigger(TRIGGER))).expect("a latency")
}

#[test]
fn a_census_has_the_latency_of_a_run_at_each_instant_and_knows_what_was_off() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let run = lab.run(&experiment(&["6.12-rt"], &["mixed"], 4, FIRST_AND_LAST), &[]).exits(3).run();
    let find = of_run(&lab, &bench, &run);
    let subject = find.subject(&bench).expect("its parts are here");
    let ready = Ready::new(&bench, subject, &|_| ()).expect("it is ready");
    let window = Window::around(&find, Nanos(40_000), Nanos(5_000)).expect("a window");
    let instants: Vec<Nanos> = window.instants().collect();
    let census = Census::new(&ready, &find);
    // A shard may follow one that lies later.
    let later = census.take(&instants[5..], 2, &|_| ()).expect("a part");
    let earlier = census.take(&instants[..5], 2, &|_| ()).expect("a part");
    let latencies = [earlier, later].concat();
    assert_eq!(census.news(), None);
    let expected: Vec<_> = window.instants().map(|at| cold(&ready, &find, at)).collect();
    assert_eq!(latencies, expected);
    assert_eq!((latencies.len(), latencies[4]), (9, Some(find.answer.latency_ns)));
    assert!(latencies.iter().any(|latency| *latency != latencies[4]), "{latencies:?}");

    // The command says the same, and writes it.
    let (csv, svg) = (lab.path().join("census.csv"), lab.path().join("census.svg"));
    let [csv, svg] = [&csv, &svg].map(|path| path.to_str().expect("text"));
    let words = ["census", run.text("run"), "--responder", "task", "--sample", "2", "--json"];
    let more = ["--around", "40us", "--every", "5us", "--csv", csv, "--picture", svg];
    let printed = lab.onset(&[&words[..], &more].concat()).exits(0).json();
    assert_as_promised_by("census", &printed);
    let written = std::fs::read_to_string(csv).expect("it was written");
    let line = |(at, latency): (Nanos, &Option<Nanos>)| {
        format!("{},{}\n", at.0, latency.map_or(String::new(), |ns| ns.0.to_string()))
    };
    let lines: String = window.instants().zip(&latencies).map(line).collect();
    assert_eq!(written, format!("at_ns,latency_ns\n{lines}"));
    let drawn = std::fs::read_to_string(svg).expect("it was drawn");
    assert_eq!(drawn.matches("h1").count(), latencies.iter().flatten().count());
    let max = latencies.iter().flatten().max().expect("an answer");
    assert_eq!(printed["latency"]["max_ns"], max.0);
    let off = printed["off"].as_array().expect("what was off");
    let triggers: u64 = off.iter().map(|share| share["triggers"].as_u64().expect("n")).sum();
    assert_eq!(triggers, 9);
    let stretches = stretches(&ready, &find, window).expect("it is followed");
    let masked = window.instants().filter(|at| stretches.at(*at).is_some()).count() as u64;
    let nothing = off.iter().filter(|share| share["kind"] == "nothing");
    let nothing: u64 = nothing.map(|share| share["triggers"].as_u64().expect("n")).sum();
    assert_eq!(masked, 9 - nothing);
}

#[test]
fn a_window_of_one_instant_and_a_find_of_another_guest_are_refused() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let run = lab.run(&experiment(&["6.12-rt"], &["idle"], 4, FIRST_AND_LAST), &[]).exits(3).run();
    let words = ["census", run.text("run"), "--responder", "task"];
    let refused = |more: &[&str]| lab.onset(&[&words[..], more].concat()).exits(2);
    refused(&["--around", "4ns"]).says(&["no two instants", "--around a longer time"]);
    refused(&["--around", "10ms", "--every", "1ns"]).says(&["--every a longer time"]);
    lab.onset(&["census", "none.find.json"]).exits(2).says(&["there is no file none.find.json"]);
    // The find of an answer, by itself and as on a machine that has another guest.
    let words = ["--responder", "task", "--sample", "2", "-o", "task.find.json"];
    lab.onset(&[&["minimise", run.text("run")], &words[..]].concat()).exits(0);
    let find = std::fs::read(lab.path().join("task.find.json")).expect("written");
    let find: Value = serde_json::from_slice(&find).expect("JSON");
    let census = |file: &str| lab.onset(&["census", file, "--around", "10us", "--every", "5us"]);
    census("task.find.json").exits(0);
    for (key, said) in [("release", "the kernel's release is "), ("snapshot", "snapshot is ")] {
        let mut other = find.clone();
        assert!(other[key].is_string(), "{key} in {find:#}");
        other[key] = "another".into();
        lab.write("other.find.json", &other.to_string());
        census("other.find.json").exits(69).says(&[said, "was another then"]);
    }
}
