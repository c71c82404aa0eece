// SPDX-License-Identifier: GPL-2.0-or-later
//! Conversations over real sockets: with a generator that has the fake session behind it, and with what is none.

mod drift;
mod serial;

use super::*;
use crate::generator::Happened;
use crate::generator::Line;
use crate::generator::fake::Served;
use crate::target::fake::Fake;
use sample::{Loss, Losses, Responder, Sample, SeriesId};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use wire::generator::Ended;

/// A host of it.
fn host(served: &Served) -> Live {
    Live::connect(&served.address.to_string()).expect("it speaks the protocol")
}

/// Listens until the run has ended, and returns what was observed.
fn to_the_end(live: &mut Live) -> Vec<Observation> {
    let begun = Instant::now();
    while live.is_running() {
        live.listen(WAIT).expect("it goes on");
        assert!(begun.elapsed() < Duration::from_secs(60), "the run does not end");
    }
    live.observed()
}

fn start(live: &mut Live, period: u64, count: u64) {
    live.set(Setting::Period, period).expect("within the limits");
    live.set(Setting::High, period / 10).expect("within the limits");
    live.set(Setting::Count, count).expect("within the limits");
    live.start().expect("it starts");
}

fn samples(observed: &[Observation]) -> Vec<Sample> {
    let sample = |o: &Observation| match o {
        Observation::Sample(sample) => Some(*sample),
        Observation::Loss(..) => None,
    };
    observed.iter().filter_map(sample).collect()
}

#[test]
fn two_runs_are_one_series_whose_triggers_and_times_count_on() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    assert_eq!((live.name().as_str(), live.clock()), ("a fake", Clock::Virtual));
    start(&mut live, 100_000, 50);
    let first = to_the_end(&mut live);
    start(&mut live, 50_000, 30);
    let second = to_the_end(&mut live);
    let all: Vec<Sample> = samples(&first).into_iter().chain(samples(&second)).collect();
    let of_task: Vec<&Sample> = all.iter().filter(|s| s.series == SeriesId(1)).collect();
    assert!(of_task.iter().map(|s| s.trigger).eq(0..80));
    assert!(of_task.is_sorted_by_key(|s| s.at));
    assert_eq!((live.triggers(), live.channels()[1].series.summary().count), (80, 80));
    assert_eq!(live.channels()[1].losses, Losses::default());
    // They are the triggers of the generator, moved to the beginning of each run.
    let (fired, _) = served.end();
    let gaps = |times: &[Nanos]| times.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>();
    let ours: Vec<Nanos> = of_task.iter().map(|s| s.at).collect();
    let theirs: Vec<Nanos> = fired.iter().map(|f| f.at).collect();
    assert_eq!(gaps(&ours[..50]), gaps(&theirs[..50]));
    assert_eq!(gaps(&ours[50..]), gaps(&theirs[50..]));
}

#[test]
fn what_is_lost_is_told_at_the_end_of_a_run_and_counts_over_all_runs() {
    let served = Served::new(Fake { lose_every: 5, ..Fake::default() });
    let mut live = host(&served);
    start(&mut live, 100_000, 20);
    let observed = to_the_end(&mut live);
    let lost = Observation::Loss(SeriesId(1), Loss::Unanswered, 4);
    assert!(observed.contains(&lost), "{observed:?}");
    start(&mut live, 100_000, 20);
    to_the_end(&mut live);
    assert_eq!(live.channels()[1].losses.unanswered, 8);
}

#[test]
fn after_a_reset_in_a_run_every_number_counts_from_there_and_what_is_observed_counts_on() {
    let served = Served::new(Fake { lose_every: 5, ..Fake::default() });
    let mut live = host(&served);
    start(&mut live, 100_000, 20);
    let mut observed = to_the_end(&mut live);
    live.set(Setting::Batch, 1).expect("within the limits");
    live.set(Setting::Count, 300).expect("within the limits");
    live.start().expect("it starts");
    while live.triggers() < 60 {
        live.listen(WAIT).expect("it goes on");
    }
    observed.extend(live.observed());
    live.reset();
    assert_eq!((live.triggers(), live.elapsed()), (0, Nanos(0)));
    let task = &live.channels()[1];
    assert_eq!((task.series.summary().count, task.losses), (0, Losses::default()));
    let before = observed.len();
    observed.extend(to_the_end(&mut live));
    let (task, triggers) = (&live.channels()[1], live.triggers());
    let (count, lost) = (task.series.summary().count, task.losses.unanswered);
    assert!((1..=260).contains(&triggers), "{triggers}");
    // Of the first run nothing, and of the second what came after the reset: a fifth is lost.
    assert!(lost.abs_diff(triggers / 5) <= 2, "{lost} of {triggers}");
    assert!((1..=triggers).contains(&count), "{count} of {triggers}");
    let slices = task.series.timeline().buckets();
    assert!(slices.iter().all(|slice| slice.at <= live.elapsed()), "{slices:?}");
    // A recording goes on: its triggers count from the beginning.
    assert_eq!(samples(&observed).iter().map(|s| s.trigger).max(), Some(319));
    assert!(samples(&observed[before..]).iter().all(|s| s.trigger >= 20));
}

#[test]
fn a_mark_is_one_short_line_with_its_place_and_there_is_room_for_a_thousand() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    start(&mut live, 100_000, 20);
    to_the_end(&mut live);
    live.mark("  the door was opened ").expect("a line");
    let mark = &live.marks()[0];
    assert_eq!((mark.triggers, mark.note.as_str()), (20, "the door was opened"));
    assert_eq!(mark.elapsed, live.elapsed());
    for wrong in ["two\nlines", "\u{1b}[31m", &"x".repeat(201)] {
        live.mark(wrong).expect_err(wrong);
    }
    (1..1_000).for_each(|n| live.mark(&n.to_string()).expect("room"));
    live.mark("one more").expect_err("no room");
}

#[test]
fn what_a_generator_refuses_is_told_with_its_limits() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    let refused = live.set(Setting::Period, 10).expect_err("below the limit").to_string();
    assert!(refused.contains("refuses period 10") && refused.contains("1000 to"), "{refused}");
    live.set(Setting::High, 2_000_000).expect("alone it is within the limits");
    let refused = live.start().expect_err("longer than the period").to_string();
    assert!(refused.contains("refuses high"), "{refused}");
}

#[test]
fn a_second_host_takes_the_place_of_the_first_and_finds_its_run() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    start(&mut live, 1_000_000, u64::MAX);
    while live.triggers() < 20 {
        live.listen(WAIT).expect("it goes on");
    }
    let mut second = host(&served);
    assert!(second.is_running());
    second.stop().expect("it is its host now");
    to_the_end(&mut second);
    let task = &second.channels()[1];
    let count = task.series.summary().count;
    assert_eq!(count + task.losses.dropped, second.triggers());
    assert!(task.losses.dropped >= 20, "what came before it was there is lost to it");
    // The first one learns of it, and keeps what it had.
    let gone = loop {
        match live.listen(WAIT) {
            Ok(()) => {}
            Err(e) => break e.to_string(),
        }
    };
    assert!(gone.contains("hung up"), "{gone}");
    let had = live.triggers();
    live.break_off();
    assert!(!live.is_running() && live.triggers() == had);
    let (_, happened) = served.end();
    assert!(happened.iter().any(|what| matches!(what, Happened::Replaced(_))), "{happened:?}");
}

#[test]
fn who_calls_and_is_no_host_takes_no_place_and_starts_nothing() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    start(&mut live, 1_000_000, u64::MAX);
    let mut page = TcpStream::connect(served.address).expect("it listens");
    let mut body = vec![0];
    for command in [Command::Identify { oldest: VERSION, newest: VERSION }, Command::Stop] {
        body.extend_from_slice(command.encode(1, &mut [0; STUFFED_MAX]));
    }
    let head = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    page.write_all(&[head.as_bytes(), &body].concat()).expect("it takes it");
    assert!(!matches!(page.read(&mut [0]), Ok(1..)), "it is answered");
    let before = live.triggers();
    while live.triggers() < before + 20 {
        live.listen(WAIT).expect("it goes on");
    }
    live.stop().expect("it is still the host");
    to_the_end(&mut live);
    let (_, happened) = served.end();
    assert!(!happened.iter().any(|what| matches!(what, Happened::Replaced(_))), "{happened:?}");
}

#[test]
fn a_generator_that_is_switched_off_tells_its_host_how_the_run_ended() {
    let served = Served::new(Fake::default());
    let mut live = host(&served);
    start(&mut live, 1_000_000, u64::MAX);
    while live.triggers() < 5 {
        live.listen(WAIT).expect("it goes on");
    }
    served.end();
    to_the_end(&mut live);
    assert!(matches!(live.stopped().map(|s| s.ended), Some(Ended::Fault(2))));
}

#[test]
fn time_goes_on_also_where_nobody_answers_and_is_told() {
    let served = Served::new(Fake { silent: true, ..Fake::default() });
    let mut live = host(&served);
    start(&mut live, 1_000_000, u64::MAX);
    let begun = Instant::now();
    while live.triggers() < 30 || live.elapsed() < Nanos::from_millis(30) {
        live.listen(WAIT).expect("it goes on");
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} in {}",
            live.triggers(),
            live.elapsed()
        );
    }
    live.stop().expect("it obeys");
    to_the_end(&mut live);
    assert_eq!(live.channels()[1].losses.unanswered, live.triggers());
}

#[test]
fn triggers_that_are_answered_with_an_older_one_are_raised_before_they_are_lost() {
    let served = Served::new(Fake { supersede: 3, ..Fake::default() });
    let mut live = host(&served);
    live.set(Setting::Batch, 1).expect("within the limits");
    start(&mut live, 100_000, 40);
    to_the_end(&mut live);
    let task = &live.channels()[1];
    assert_eq!((task.series.summary().count, task.losses.superseded), (10, 30));
}

#[test]
fn a_host_that_talks_nonsense_or_reads_nothing_slows_nobody() {
    let served = Served::new(Fake::default());
    let mut hostile = TcpStream::connect(served.address).expect("it listens");
    let mut bytes = 0x9e37_79b9_7f4a_7c15_u64;
    let is_hung_up = (0..20_000).any(|_| {
        bytes = bytes.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        hostile.write_all(&bytes.to_be_bytes()).is_err()
    });
    // The end of the line, or that there is none any more.
    assert!(is_hung_up || !matches!(hostile.read(&mut [0]), Ok(1..)));
    drop(hostile);
    let mut live = host(&served);
    // It does not read meanwhile: the generator comes to its end all the same, and says what was lost.
    start(&mut live, 2_000, 30_000);
    std::thread::sleep(Duration::from_secs(1));
    to_the_end(&mut live);
    let hardirq = &live.channels()[0];
    assert_eq!(hardirq.series.summary().count + hardirq.losses.dropped, 30_000);
}

#[test]
fn an_address_that_others_can_reach_is_refused_with_the_way_in() {
    let refused = Line::listen("0.0.0.0:7010".parse().expect("an address")).err();
    let refused = refused.expect("no password").to_string();
    assert!(refused.contains("ssh -L 7010:127.0.0.1:7010"), "{refused}");
}

#[test]
fn what_is_no_generator_is_told_so() {
    let nobody = Live::connect("127.0.0.1:1").err().expect("nobody is there").to_string();
    assert!(nobody.contains("cannot open 127.0.0.1:1") && nobody.contains("onset generator"));
    let missing = Live::connect("/dev/none").err().expect("nothing is there").to_string();
    assert!(missing.contains("cannot open /dev/none: No such file"), "{missing}");
    // A server of something else hangs up.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port").to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a host");
        let _ = stream.read(&mut [0; 16]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let wrong = Live::connect(&address).err().expect("it is no generator").to_string();
    assert!(wrong.contains("or it is none"), "{wrong}");
    other.join().expect("no panic");
}

struct Noon;

impl crate::matrix::Issuer for Noon {
    fn now(&self) -> bundle::UtcTime {
        bundle::UtcTime::from_unix_seconds(1_790_000_000).expect("a time")
    }

    fn tool(&self) -> bundle::Tool {
        bundle::Tool { version: "0.0.0".into(), revision: "test".into() }
    }
}

#[test]
fn what_was_recorded_until_the_line_broke_is_a_sound_bundle_that_says_so() {
    let store = tempfile::tempdir().expect("a directory");
    let served = Served::new(Fake { lose_every: 5, ..Fake::default() });
    let mut live = host(&served);
    let mut record = Record::begin(&live, store.path(), &Noon).expect("room on the disk");
    start(&mut live, 1_000_000, u64::MAX);
    while live.triggers() < 20 {
        live.listen(WAIT).expect("it goes on");
        live.observed().iter().for_each(|o| record.observe(o).expect("room on the disk"));
    }
    live.mark("the <b>door</b>").expect("a line");
    // Another host takes the line away, and a second recording of the same second has another name.
    let mut second = host(&served);
    let mut other = Record::begin(&second, store.path(), &Noon).expect("another name");
    let why = loop {
        match live.listen(WAIT) {
            Ok(()) => {}
            Err(e) => break e.to_string(),
        }
    };
    let path = record.finish(&mut live, Some(why)).expect("room on the disk");
    let bundle = bundle::Bundle::open(&path).expect("a bundle");
    bundle.verify().expect("it is sound");
    let manifest = bundle.manifest();
    assert!(!manifest.complete && manifest.series[1].losses.unanswered > 0);
    assert_eq!(manifest.conclusion.verdict, stats::Verdict::Invalid);
    let source = &manifest.about.experiment.source;
    assert!(source.contains("from trigger 0, at 0 ns: period 1000000"), "{source}");
    assert!(source.contains("ns: the <b>door</b>\n") && source.contains("# mark at trigger "));

    // The second one has missed measurements, among which the latest may be.
    second.stop().expect("it is its host now");
    to_the_end(&mut second).iter().for_each(|o| other.observe(o).expect("room on the disk"));
    let path = other.finish(&mut second, None).expect("room on the disk");
    let bundle = bundle::Bundle::open(&path).expect("a bundle");
    bundle.verify().expect("it is sound");
    let codes: Vec<&str> = bundle.manifest().conclusion.warnings.iter().map(|w| w.code()).collect();
    assert!(codes.contains(&"channel_dropped"), "{codes:?}");
}
