// SPDX-License-Identifier: GPL-2.0-or-later
//! What the host writes is what the plugin reads, and what is wrong is named.

use super::*;
use alloc::vec;
use core::cell::RefCell;
use core::convert::Infallible;
use proptest::prelude::*;

const WORDS: &str = "start=restore ring_fd=5 phase_ns=10 period_ns=1000 jitter_ns=3 seed=9 \
                     count=7 high_ns=500 grace_ns=99 responders=129 pins=1 control=16";

fn parse(text: &str) -> Result<Arguments, WrongArgument> {
    Arguments::parse(text.split_whitespace(), |_| Ok::<_, Infallible>(7u64.to_le_bytes().to_vec()))
}

fn parse_following(text: &str) -> Result<Arguments, WrongArgument> {
    let text = format!("{text} follow=/f");
    Arguments::parse(text.split_whitespace(), |_| Ok::<_, Infallible>(b"stacks_from 5\n".into()))
}

fn triggers(text: &str) -> Triggers {
    match parse(text).unwrap().stimulus {
        Stimulus::Triggers(triggers) => triggers,
        Stimulus::Probe(_) => panic!("no plan was given"),
    }
}

#[test]
fn all_arguments_arrive() {
    let c = parse(WORDS).unwrap();
    assert_eq!((c.ring_fd, c.start, c.registers), (5, Start::Restore, (1, 16)));
    let t = triggers(WORDS);
    assert_eq!((t.high, t.grace, t.responders.mask()), (Nanos(500), Nanos(99), 129));
    let When::Planned(schedule) = t.when else { panic!("there is no aim") };
    assert_eq!(schedule.due(0).map(|t| t.0 / 10), Some(1));
    assert_eq!(schedule.count(), 7);
}

#[test]
fn commands_take_the_place_of_a_schedule_and_of_nothing_else() {
    let text =
        "start=restore commands_fd=6 ring_fd=5 high_ns=1 grace_ns=1 responders=1 pins=0 control=0";
    assert_eq!(parse(text).unwrap().commands_fd, Some(6));
    assert_eq!(triggers(text).when, When::Commanded);
    for more in ["times=/t", "plan=/p"] {
        let wrong = parse(&format!("{text} {more}")).unwrap_err().to_string();
        assert!(wrong.contains("commands_fd="), "{wrong}");
    }
}

#[test]
fn a_machine_that_is_advanced_is_told_how_far() {
    let advance = WORDS.replace("start=restore", "start=advance advance_ns=70");
    assert_eq!(parse(&advance).unwrap().start, Start::Advance(Nanos(70)));
    let error = parse(&WORDS.replace("restore", "advance")).unwrap_err().to_string();
    assert!(error.contains("advance_ns= is missing"), "{error}");
}

#[test]
fn an_aim_takes_the_place_of_a_schedule_and_needs_a_follower() {
    let text = "start=restore aim=longest kinds=3 gap_ns=5 count=7 until_ns=9 seed=1 ring_fd=1 high_ns=1 \
                grace_ns=1 responders=1 pins=0 control=0";
    let Arguments { stimulus: Stimulus::Triggers(triggers), .. } = parse_following(text).unwrap()
    else {
        panic!("no plan was given")
    };
    let (rule, gap, until) = (Rule::Longest, Nanos(5), Nanos(9));
    let aim = Aim { rule, kinds: 3, gap, count: 7, until, seed: 1 };
    assert_eq!(triggers.when, When::Aimed(aim));
    assert!(parse(text).unwrap_err().to_string().contains("follow="));
    let wrong = parse(&text.replace("longest", "widest")).unwrap_err().to_string();
    assert!(wrong.contains("aim=widest"), "{wrong}");
}

#[test]
fn listed_stretches_come_from_a_file() {
    let text = "start=restore aim=listed list=/l kinds=3 gap_ns=5 count=7 until_ns=9 seed=1 ring_fd=1 high_ns=1 \
                grace_ns=1 responders=1 pins=0 control=0 follow=/f";
    let occurrence = Occurrence { kind: Stretch::IrqsOff, key: 5, ordinal: 3 };
    let parse = |list: &[u8], text: &str| {
        let read = |path: &str| match path {
            "/l" => Ok::<_, Infallible>(list.to_vec()),
            _ => Ok(b"stacks_from 5\n".to_vec()),
        };
        Arguments::parse(text.split_whitespace(), read)
    };
    let whole = [bytes_of_occurrence(&occurrence); 2].concat();
    let aim = parse(&whole, text).unwrap().aim().unwrap();
    assert_eq!(aim.rule, Rule::Listed(vec![occurrence; 2]));
    let torn = parse(&whole[1..], text).unwrap_err().to_string();
    assert!(torn.contains("list=/l"), "{torn}");
    let missing = parse(&whole, &text.replace("list=/l", "")).unwrap_err().to_string();
    assert!(missing.contains("needs list="), "{missing}");
}

#[test]
fn a_plan_takes_the_place_of_triggers() {
    let text = "start=restore plan=/p ring_fd=1 pins=0 control=0";
    assert_eq!(parse(text).unwrap().stimulus, Stimulus::Probe(7u64.to_le_bytes().to_vec()));
    assert!(parse(&format!("{text} witness=on")).unwrap().witness);
    let both = parse(&format!("{text} period_ns=5")).unwrap_err().to_string();
    assert!(both.contains("unknown argument period_ns="), "{both}");
    let empty =
        Arguments::parse(text.split_whitespace(), |_| Ok::<_, Infallible>(Vec::new())).unwrap_err();
    assert!(empty.to_string().contains("plan=/p holds 0 bytes"), "{empty}");
}

#[test]
fn a_tally_needs_the_witness_and_functions_that_rise() {
    let with = |words: &[u64], text: &str| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let text = format!("start=restore plan=/p ring_fd=1 pins=0 control=0 functions=/t {text}");
        Arguments::parse(text.split_whitespace(), |_| Ok::<_, Infallible>(bytes.clone()))
    };
    const AT: u64 = 1 << 63;
    let told = with(&[AT + 9, AT + 5, 7], "witness=on").unwrap();
    let starts = vec![(AT + 5, true), (AT + 7, false)];
    assert_eq!(told.functions, Some(FunctionStarts { fault: AT + 9, starts }));
    let falling = with(&[AT + 9, AT + 5, 5], "witness=on").unwrap_err().to_string();
    assert!(falling.contains("functions=/t is truncated or does not rise"), "{falling}");
    assert!(with(&[AT + 9], "").unwrap_err().to_string().contains("functions= needs witness="));
}

#[test]
fn a_missing_unknown_or_wrong_argument_is_named() {
    let message = |text: &str| parse(text).unwrap_err().to_string();
    assert!(message(&WORDS.replace("grace_ns=99", "")).contains("grace_ns= is missing"));
    assert!(message(&format!("{WORDS} colour=red")).contains("unknown argument colour="));
    assert!(message(&WORDS.replace("pins=1", "pins=65536")).contains("pins=65536"));
    let nobody = message(&WORDS.replace("responders=129", "responders=2049"));
    assert!(nobody.contains("responders=2049 has a bit of no responder"), "{nobody}");
    assert!(message(&WORDS.replace("seed=9", "seed=x")).contains("seed=x"));
    assert!(message(&WORDS.replace("restore", "now")).contains("start="));
    assert!(message(&format!("{WORDS} witness=off")).contains("witness=off"));
    assert!(message("nonsense").contains("\"nonsense\""));
}

#[test]
fn explicit_times_come_from_a_file_and_must_rise() {
    let text = "start=boot times=/t ring_fd=1 high_ns=1 grace_ns=1 responders=1 pins=0 control=0";
    assert_eq!(triggers(text).when, When::Planned(Schedule::Explicit(vec![Nanos(7)])));
    for wrong in [[0; 9].as_slice(), &[0; 16]] {
        let read = |_: &str| Ok::<_, Infallible>(wrong.to_vec());
        let message = Arguments::parse(text.split_whitespace(), read).unwrap_err().to_string();
        assert!(message.contains("trigger times are truncated"), "{message}");
    }
}

#[test]
fn disturbances_come_from_a_file_and_must_rise() {
    let text = format!("{WORDS} disturbances=/d");
    let parse = |bytes: Vec<u8>| {
        Arguments::parse(text.split_whitespace(), |_| Ok::<_, Infallible>(bytes.clone()))
            .map(|c| c.stimulus)
    };
    let list = [(5, 0), (6, 64)].map(|(at, timers)| Disturbance { at: Nanos(at), timers });
    let bytes: Vec<u8> = list.iter().flat_map(bytes_of_disturbance).collect();
    let Ok(Stimulus::Triggers(read)) = parse(bytes.clone()) else { panic!("a whole list") };
    assert_eq!(read.disturbances, list);
    assert_eq!(triggers(WORDS).disturbances, []);
    let (first, second) = bytes.split_at(16);
    for wrong in [[second, first].concat(), first[1..].to_vec(), vec![65; 16]] {
        let message = parse(wrong).unwrap_err().to_string();
        assert!(message.contains("disturbances=/d"), "{message}");
    }
}

fn when() -> impl Strategy<Value = When> {
    let periodic =
        any::<[u64; 5]>().prop_map(|[phase, period, jitter, seed, count]| Schedule::Periodic {
            phase: Nanos(phase),
            period: Nanos(period),
            jitter: Nanos(jitter),
            seed,
            count,
        });
    let explicit = prop::collection::btree_set(any::<u64>(), 0..9);
    let explicit =
        explicit.prop_map(|times| Schedule::Explicit(times.into_iter().map(Nanos).collect()));
    let kind = prop::sample::select(Stretch::ALL.to_vec());
    let occurrence = (kind, any::<(u64, u32)>()).prop_map(|(kind, (key, ordinal))| Occurrence {
        kind,
        key,
        ordinal,
    });
    let named = [Rule::Coverage, Rule::Longest, Rule::Nested, Rule::Scout];
    let rule = prop_oneof![
        prop::sample::select(named.to_vec()),
        prop::collection::vec(occurrence, 0..5).prop_map(Rule::Listed),
    ];
    let aim =
        (rule, any::<(u8, [u64; 4])>()).prop_map(|(rule, (kinds, [gap, count, until, seed]))| {
            Aim { rule, kinds, gap: Nanos(gap), count, until: Nanos(until), seed }
        });
    prop_oneof![
        periodic.prop_map(When::Planned),
        explicit.prop_map(When::Planned),
        aim.prop_map(When::Aimed),
        Just(When::Commanded),
    ]
}

fn stimulus() -> impl Strategy<Value = Stimulus> {
    let disturbances = prop::collection::btree_map(any::<u64>(), 0u8..=64, 0..5);
    let work = prop::option::of(prop::collection::vec(any::<u8>(), 1..40));
    let triggers = (when(), disturbances, any::<(u64, u64, u16)>(), work).prop_map(
        |(when, disturbances, numbers, work)| {
            let (high, grace, responders) = numbers;
            let disturbance = |(at, timers)| Disturbance { at: Nanos(at), timers };
            Stimulus::Triggers(Triggers {
                when,
                high: Nanos(high),
                grace: Nanos(grace),
                responders: ResponderSet::ALL.at(responders),
                disturbances: disturbances.into_iter().map(disturbance).collect(),
                work,
            })
        },
    );
    let probe = prop::collection::vec(any::<u8>(), 1..40).prop_map(Stimulus::Probe);
    prop_oneof![triggers, probe]
}

fn functions() -> impl Strategy<Value = FunctionStarts> {
    let starts =
        prop::collection::btree_map(any::<u64>().prop_map(|at| at | 1 << 63), any::<bool>(), 0..9);
    (any::<u64>(), starts)
        .prop_map(|(fault, starts)| FunctionStarts { fault, starts: starts.into_iter().collect() })
}

proptest! {
    #[test]
    fn arguments_survive_their_words_and_files(
        stimulus in stimulus(), start in 0..4, time: u64, ring_fd in 0i32.., registers: (u16, u8),
        witness: bool, plan in prop::option::of(crate::plan::tests::plan()),
        functions in prop::option::of(functions()), forks in prop::option::of("[^\0\n]{0,20}"),
    ) {
        let start = match start {
            0 => Start::Boot,
            1 => Start::Restore,
            2 => Start::Walk,
            _ => Start::Advance(Nanos(time)),
        };
        let (follow, commands_fd) = (plan, None);
        let mut forking = forks.map(|directory| Forking { requests_fd: 9, directory });
        if start == Start::Walk {
            forking.get_or_insert(Forking { requests_fd: 0, directory: "/".into() });
        }
        let mut told = Arguments {
            ring_fd, commands_fd, start, stimulus, witness, functions, follow, registers, forking,
        };
        told.commands_fd = told.is_commanded().then_some(ring_fd);
        // What excludes each other, and what needs another.
        told.witness &= told.follow.is_none();
        if told.aim().is_some() {
            told.follow.get_or_insert_default();
            told.witness = false;
        }
        told.functions = told.functions.filter(|_| told.witness);
        let files = RefCell::new(BTreeMap::new());
        let file = |name: &str, bytes: &[u8]| {
            files.borrow_mut().insert(format!("/a=b/{name}"), bytes.to_vec());
            Ok::<_, Infallible>(format!("/a=b/{name}"))
        };
        let words = told.words(file).unwrap();
        let read = |path: &str| files.borrow().get(path).cloned().ok_or("no such file");
        prop_assert_eq!(Arguments::parse(words.iter().map(String::as_str), read), Ok(told));
    }

    #[test]
    fn any_bytes_are_an_item_of_a_list_or_none_and_nothing_is_lost(b: [u8; 16], blank: u16) {
        let blank = |at: &usize| blank >> at & 1 == 1;
        for last in [b[12] & 0xf, 1 << (b[12] & 3)] {
            let mut b = b;
            (8..16).filter(blank).for_each(|at| b[at] = 0);
            b[12] = last;
            if let Some(occurrence) = occurrence_of(&b) {
                prop_assert_eq!(bytes_of_occurrence(&occurrence), b);
            }
            b[12] = 0;
            if let Some(disturbance) = disturbance_of(&b) {
                prop_assert_eq!(bytes_of_disturbance(&disturbance), b);
            }
        }
    }
}
