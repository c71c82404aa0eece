// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests with bundles that are written, read, torn and altered.

use crate::examples::*;
use crate::*;
use proptest::prelude::*;
use sample::{Clock, Insns, Loss, Nanos, Observation, SeriesId};
use stats::{Constraint, Deadline, Demand, Finding, Limit, Statistic, Verdict};
use std::fs;

/// Alters a manifest in the way of somebody who knows the seal.
fn forge(path: &Path, alter: impl FnOnce(&mut Manifest)) {
    let mut manifest = Manifest::read(path).expect("a bundle");
    alter(&mut manifest);
    fs::write(path.join(MANIFEST), manifest.text()).expect("room on the disk");
}

#[test]
fn a_bundle_reads_back_as_it_was_written_and_verifies() {
    let root = tempfile::tempdir().unwrap();
    let path = write_bundle(root.path(), &run_id(0), 1_000);
    assert_eq!(names(root.path()), [run_id(0).as_str()]);
    let files = ["console.txt", "histograms", "manifest.json", "samples.parquet", "series.json"];
    assert_eq!(names(&path), files);

    let bundle = Bundle::open(&path).unwrap();
    bundle.verify().unwrap();
    let manifest = bundle.manifest();
    assert_eq!(manifest.about, about());
    assert_eq!((manifest.complete, manifest.conclusion.verdict), (true, Verdict::Pass));
    assert_eq!(manifest.series[1].losses.superseded, 2);
    assert_eq!(manifest.conclusion.warnings[0].code(), "superseded");
    assert_eq!(bundle.histogram(&name("task")).unwrap().len(), 1_000);
    assert_eq!(bundle.details().unwrap()[0].worst.len(), stats::WORST_KEPT);
}

#[test]
fn a_bundle_has_the_instructions_of_each_answer_and_one_of_schema_3_reads_without() {
    let root = tempfile::tempdir().unwrap();
    let path = write_bundle(root.path(), &run_id(0), 10);
    let manifest = Manifest::read(&path).unwrap();
    let paths = manifest.paths.clone().expect("the target counted");
    for (path, times) in paths.iter().zip(&manifest.series) {
        assert_eq!((&path.responder, path.count), (&times.responder, 10));
        // As many as half of the latency's nanoseconds, as the samples say.
        assert_eq!(path.max.map(|n| n.0), times.max.map(|n| n.0 / 2));
    }
    let text = fs::read_to_string(path.join(MANIFEST)).unwrap();
    assert!(text.contains("\"max_insns\""), "{text}");

    forge(&path, |manifest| (manifest.schema, manifest.paths) = (3, None));
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!((bundle.manifest().schema, &bundle.manifest().paths), (3, &None));
    bundle.verify().unwrap();
}

#[test]
fn a_bundle_says_for_how_long_was_measured_and_another_time_does_not_verify() {
    let root = tempfile::tempdir().unwrap();
    let path = write_bundle(root.path(), &run_id(0), 10);
    let last = [HARDIRQ, TASK].map(|series| sample(series, 9));
    let until = last.iter().map(|s| s.at + s.latency).max();
    assert_eq!(Manifest::read(&path).unwrap().samples.until, until);
    forge(&path, |manifest| manifest.samples.until = Some(Nanos::from_millis(999)));
    assert!(Bundle::open(&path).unwrap().verify().is_err());
}

#[test]
fn samples_come_back_in_order_across_row_groups() {
    let root = tempfile::tempdir().unwrap();
    let triggers = GROUP_ROWS as u64;
    let bundle = Bundle::open(&write_bundle(root.path(), &run_id(0), triggers)).unwrap();
    let mut read = Vec::new();
    bundle.samples(|s| read.push(s)).unwrap();
    let pushed = (0..triggers).flat_map(|t| [HARDIRQ, TASK].map(|s| sample(s, t)));
    assert!(read.iter().copied().eq(pushed));
}

#[test]
fn the_same_samples_give_the_same_bytes_and_one_other_sample_another_hash() {
    let root = tempfile::tempdir().unwrap();
    let [a, b, c] = [(0, 500), (1, 500), (2, 501)].map(|(n, triggers)| {
        let path = write_bundle(root.path(), &run_id(n), triggers);
        let hash = Manifest::read(&path).unwrap().samples.blake3;
        (hash, ["samples.parquet", "series.json"].map(|f| fs::read(path.join(f)).unwrap()))
    });
    assert_eq!(a, b);
    assert_ne!(a.0, c.0);
}

#[test]
fn the_fingerprint_is_that_of_the_documented_bytes() {
    let counted = sample(SeriesId(0x102), 3);
    let timed = Sample { path: None, ..sample(TASK, 4) };
    let mut bytes = b"onset samples 2\n\x02\x01".to_vec();
    for number in [3, 3_000_000, counted.latency.0, counted.latency.0 / 2] {
        bytes.extend(u64::to_le_bytes(number));
    }
    bytes.extend(b"\x01\x00");
    for number in [4, 4_000_000, timed.latency.0] {
        bytes.extend(u64::to_le_bytes(number));
    }
    let mut fingerprint = Fingerprint::default();
    fingerprint.add(&counted);
    fingerprint.add(&timed);
    assert_eq!(fingerprint.hex(), blake3::hash(&bytes).to_hex().to_string());
}

#[test]
fn numbers_at_the_edge_of_their_type_survive() {
    let root = tempfile::tempdir().unwrap();
    let names: Vec<SeriesName> = (0..300).map(|n| name(&format!("method-{n}"))).collect();
    let mut writer =
        BundleWriter::create(root.path(), &begun(&run_id(0), Clock::Virtual, names)).unwrap();
    let extreme = |series, n| Sample {
        series,
        trigger: n,
        at: Nanos(n),
        latency: Nanos(n),
        path: Some(Insns(n)),
    };
    let series = [0, 1, 255, 256, 299].map(SeriesId);
    let pushed: Vec<Sample> =
        series.into_iter().flat_map(|s| [0, u64::MAX].map(|n| extreme(s, n))).collect();
    pushed.iter().for_each(|s| writer.observe(&Observation::Sample(*s)).unwrap());
    let conclusion = conclusion(&writer);
    let bundle = Bundle::open(&writer.finish(about(), conclusion, true).unwrap()).unwrap();
    bundle.verify().unwrap();
    let mut read = Vec::new();
    bundle.samples(|s| read.push(s)).unwrap();
    assert_eq!(read, pushed);
    assert_eq!(bundle.manifest().series[0].losses.tainted, 1);
}

#[test]
fn where_nobody_counts_instructions_there_is_no_path_and_no_zero() {
    let root = tempfile::tempdir().unwrap();
    let names = vec![name("nanosleep-3.25ms-cpu0"), name("futex")];
    let mut writer =
        BundleWriter::create(root.path(), &begun(&run_id(0), Clock::Monotonic, names)).unwrap();
    let pushed = [0, 1].map(|n| Sample { path: None, ..sample(SeriesId(n), u64::from(n)) });
    pushed.iter().for_each(|s| writer.observe(&Observation::Sample(*s)).unwrap());
    writer.observe(&Observation::Loss(SeriesId(1), Loss::Overrun, 3)).unwrap();
    let conclusion = conclusion(&writer);
    let path = writer.finish(about(), conclusion, true).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    bundle.verify().unwrap();
    let mut read = Vec::new();
    bundle.samples(|s| read.push(s)).unwrap();
    assert_eq!(read, pushed);
    assert!(path.join("histograms/nanosleep-3.25ms-cpu0.hdr").is_file());
    let drawn = fs::read_to_string(path.join(SERIES)).unwrap();
    assert!(drawn.contains("\"futex\"") && !drawn.contains("path_insns"), "{drawn}");
    let codes: Vec<_> = bundle.manifest().conclusion.warnings.iter().map(Warning::code).collect();
    assert_eq!(codes, ["overrun"]);
}

#[test]
fn an_interrupted_run_leaves_what_it_had_marked_as_such() {
    let root = tempfile::tempdir().unwrap();
    let writer = writer(root.path(), &run_id(0), 7);
    let conclusion = Conclusion::of(
        &writer.summaries(),
        &writer.tallies(),
        limits(),
        vec![Warning::Interrupted],
    );
    let bundle = Bundle::open(&writer.finish(about(), conclusion, false).unwrap()).unwrap();
    bundle.verify().unwrap();
    assert!(!bundle.manifest().complete);
    assert_eq!(bundle.manifest().samples.count, 14);
}

#[test]
fn a_run_without_a_single_answer_is_a_bundle_too() {
    let root = tempfile::tempdir().unwrap();
    let bundle = Bundle::open(&write_bundle(root.path(), &run_id(0), 0)).unwrap();
    bundle.verify().unwrap();
    assert_eq!(bundle.manifest().series[0].max, None);
}

#[test]
fn a_writer_that_nothing_was_observed_by_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let begun = begun(&run_id(0), Clock::Virtual, responders());
    let writer = BundleWriter::create(root.path(), &begun).unwrap();
    assert_eq!((names(root.path()).len(), writer.kept()), (1, None));
    drop(writer);
    assert_eq!(names(root.path()), [""; 0]);
}

#[test]
fn debris_of_a_killed_command_is_swept_and_a_living_writer_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let living = writer(root.path(), &run_id(0), 10);
    // The command was killed at the first steps of a run, before there could be an answer.
    for (n, files) in [(1, &[][..]), (2, &["samples.parquet"]), (3, &["journal", "begun.json"])] {
        let dead = root.path().join(format!(".partial-{}", run_id(n)));
        fs::create_dir(&dead).unwrap();
        files.iter().for_each(|file| fs::write(dead.join(file), b"{\"sch").unwrap());
    }
    salvage(root.path()).unwrap();
    assert_eq!(names(root.path()), [format!(".partial-{}", run_id(0))]);
    let conclusion = conclusion(&living);
    Bundle::open(&living.finish(about(), conclusion, true).unwrap()).unwrap().verify().unwrap();
}

#[test]
fn a_run_is_never_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let begun = begun(&run_id(0), Clock::Virtual, responders());
    let create = || BundleWriter::create(root.path(), &begun);
    let writing = create().unwrap();
    assert!(matches!(create().err(), Some(BundleError::Exists { .. })));
    drop(writing);
    let path = write_bundle(root.path(), &run_id(0), 3);
    assert!(matches!(create().err(), Some(BundleError::Exists { .. })));
    Bundle::open(&path).unwrap().verify().unwrap();
}

#[test]
fn two_writers_of_one_name_end_with_one_whole_bundle() {
    let root = tempfile::tempdir().unwrap();
    let late = writer(root.path(), &run_id(0), 5);
    // Another machine would do so, since our locks mean nothing to it.
    let place = root.path().join(run_id(0).as_str());
    fs::create_dir(&place).unwrap();
    fs::write(place.join("manifest.json"), b"{}").unwrap();
    let conclusion = conclusion(&late);
    let refused = late.finish(about(), conclusion, true).unwrap_err();
    assert!(matches!(refused, BundleError::Exists { .. }), "{refused}");
    let partial = format!(".partial-{}", run_id(0));
    assert_eq!(names(root.path()), [partial.as_str(), run_id(0).as_str()]);
}

#[test]
fn a_full_disk_and_a_store_that_cannot_be_written_say_what_to_do() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut samples = samples::SamplesWriter::new(full, &responders()).unwrap();
    samples.push(&sample(TASK, 0)).unwrap();
    let source = samples.finish().err().expect("no room");
    let error = BundleError::io("write", Path::new("samples.parquet"))(source).to_string();
    assert!(error.contains("No space left") && error.contains("free some space"), "{error}");

    // Nobody can make a directory in sysfs, whichever user runs the test.
    let refused =
        BundleWriter::create(Path::new("/sys/x"), &begun(&run_id(0), Clock::Virtual, responders()));
    let error = refused.err().expect("refused").to_string();
    assert!(error.contains("create the store /sys/x") && error.contains("--store"), "{error}");
}

#[test]
fn a_foreign_schema_is_named_and_an_unknown_key_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = write_bundle(root.path(), &run_id(0), 3);
    let text = fs::read_to_string(path.join(MANIFEST)).unwrap();
    let open_with = |from: &str, to: &str| {
        fs::write(path.join(MANIFEST), text.replacen(from, to, 1)).unwrap();
        Bundle::open(&path).unwrap_err()
    };
    let foreign = open_with("\"schema\": 4", "\"future\": true, \"schema\": 5");
    assert!(matches!(foreign, BundleError::ForeignSchema { found: 5, .. }), "{foreign}");
    let unknown = open_with("\"complete\"", "\"extra\": 1, \"complete\"").to_string();
    assert!(unknown.contains("manifest.json") && unknown.contains("extra"), "{unknown}");
    fs::write(path.join(MANIFEST), &text).unwrap();
    forge(&path, |manifest| {
        let record = manifest.files.remove(SERIES).unwrap();
        manifest.files.insert("../series.json".into(), record);
    });
    let outside = Bundle::open(&path).unwrap_err().to_string();
    assert!(outside.contains("list of files"), "{outside}");
    let empty = Bundle::open(root.path()).unwrap_err();
    assert!(matches!(empty, BundleError::NotABundle { .. }), "{empty}");
}

#[test]
fn a_forged_number_is_found_although_its_seal_is_right() {
    let root = tempfile::tempdir().unwrap();
    let path = write_bundle(root.path(), &run_id(0), 100);
    assert_eq!(Bundle::open(&path).unwrap().verify().unwrap().samples, 200);
    let text = fs::read(path.join(MANIFEST)).unwrap();
    let conclusion = "findings or warnings do not follow";
    type Edit = (&'static str, fn(&mut Manifest));
    let edits: [Edit; 12] = [
        ("numbers of instructions do not follow", |m| m.paths.as_mut().unwrap()[1].max = None),
        ("numbers of instructions do not follow", |m| m.paths = Some(Vec::new())),
        ("hardirq do not follow", |m| m.series[0].max = Some(Nanos(100))),
        ("hardirq do not follow", |m| m.series[0].count = 99),
        ("not the samples of the manifest", |m| m.samples.count = 3),
        (conclusion, |m| m.conclusion.verdict = Verdict::Fail),
        (conclusion, |m| {
            m.conclusion.limits[0] = Limit::at_most(name("task"), Statistic::Max, Nanos(1))
        }),
        (conclusion, |m| m.conclusion.limits.clear()),
        (conclusion, |m| m.conclusion.findings.clear()),
        (conclusion, |m| m.conclusion.warnings.clear()),
        (conclusion, |m| m.conclusion.warnings.push(Warning::Killed)),
        (conclusion, |m| m.complete = false),
    ];
    for (says, edit) in edits {
        forge(&path, edit);
        let error = Bundle::open(&path).unwrap().verify().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        fs::write(path.join(MANIFEST), &text).unwrap();
    }
}

#[test]
fn every_changed_byte_of_a_manifest_is_found_when_it_is_read() {
    let root = tempfile::tempdir().unwrap();
    let path = write_bundle(root.path(), &run_id(0), 3);
    let text = fs::read(path.join(MANIFEST)).unwrap();
    for place in 0..text.len() {
        for bit in [0, 5] {
            let mut changed = text.clone();
            changed[place] ^= 1 << bit;
            fs::write(path.join(MANIFEST), changed).unwrap();
            assert!(Manifest::read(&path).is_err(), "byte {place}, bit {bit}");
        }
    }
    // Nobody reads the texts of doubts back, but the seal covers them.
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("together with an older one"));
    fs::write(path.join(MANIFEST), text.replace("with an older", "with a newer")).unwrap();
    assert!(Manifest::read(&path).unwrap_err().to_string().contains("its seal"));
}

#[test]
fn every_warning_carries_its_texts_and_reads_back() {
    let text = "Kernel panic".to_owned();
    for warning in [
        Warning::ChannelDropped { records: 3 },
        Warning::GuestPanicked { text },
        Warning::GuestDidNotEnd { text: "t".into() },
        Warning::QemuUntried { version: "10.2.0".into() },
        Warning::Unanswered { responder: name("bh_work"), triggers: 2 },
        Warning::Overrun { responder: name("futex"), periods: 2 },
        Warning::Probe(probes::Doubt::NotMeasured { series: "futex".into(), reason: "r".into() }),
        Warning::Probe(probes::Doubt::TscNotInvariant),
        Warning::Validity(probes::validity::Doubt::RtThrottled),
    ] {
        let json = serde_json::to_value(&warning).unwrap();
        assert_eq!(json["code"], warning.code());
        assert_eq!(json["symptom"], warning.symptom());
        assert_eq!(
            (&json["cause"], &json["action"]),
            (&warning.cause().into(), &warning.action().into())
        );
        assert_eq!(serde_json::from_value::<Warning>(json).unwrap(), warning);
    }
}

/// The files of a bundle, by number.
const FILES: [&str; 5] = [
    "manifest.json",
    "samples.parquet",
    "series.json",
    "histograms/hardirq.hdr",
    "histograms/task.hdr",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_truncated_file_is_named(file in 0..FILES.len(), cut in any::<prop::sample::Index>()) {
        let root = tempfile::tempdir().unwrap();
        let path = write_bundle(root.path(), &run_id(0), 50);
        let torn = path.join(FILES[file]);
        let bytes = fs::read(&torn).unwrap();
        let keep = cut.index(bytes.len());
        fs::write(&torn, &bytes[..keep]).unwrap();
        let error = Bundle::open(&path).unwrap_err().to_string();
        prop_assert!(error.contains(FILES[file]) && error.contains("damaged"), "{}", error);
    }

    #[test]
    fn a_flipped_bit_is_found(
        file in 0..FILES.len(),
        place in any::<prop::sample::Index>(),
        bit in 0u32..8,
    ) {
        let root = tempfile::tempdir().unwrap();
        let path = write_bundle(root.path(), &run_id(0), 50);
        let mut bytes = fs::read(path.join(FILES[file])).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        fs::write(path.join(FILES[file]), bytes).unwrap();
        let verified = Bundle::open(&path).and_then(|bundle| bundle.verify());
        let error = verified.unwrap_err().to_string();
        prop_assert!(error.contains(FILES[file]), "{}", error);
    }

    #[test]
    fn random_bytes_in_any_file_are_refused_without_a_panic(
        file in 0..FILES.len(),
        place in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let root = tempfile::tempdir().unwrap();
        let path = write_bundle(root.path(), &run_id(0), 50);
        let before = fs::read(path.join(FILES[file])).unwrap();
        let mut bytes = before.clone();
        let at = place.index(bytes.len());
        let end = (at + noise.len()).min(bytes.len());
        bytes.splice(at..end, noise);
        fs::write(path.join(FILES[file]), &bytes).unwrap();
        let found = Bundle::open(&path).and_then(|bundle| bundle.verify());
        prop_assert!(found.is_err() || bytes == before);
    }
}

/// A run of `task` with limits on a deadline of 50 µs, of which 3 triggers were superseded. Both interrupted and killed
/// runs are judged by the same counters.
fn run_with_deadlines(root: &Path) -> (BundleWriter, Vec<Limit>) {
    let limit = |kind: Constraint, bound: &str| {
        let deadline = Deadline { time: Nanos(50_000), tolerance: kind.tolerance(bound).unwrap() };
        Limit { responder: name("task"), demand: Demand::Deadline(deadline) }
    };
    let limits = vec![
        limit(Constraint::Miss, "0"),
        limit(Constraint::Miss, "9 in 10"),
        limit(Constraint::Consecutive, "199"),
        limit(Constraint::Firm, "5 of 10"),
    ];
    let begun = begun(&run_id(7), Clock::Virtual, responders());
    let mut writer =
        BundleWriter::create(root, &Begun { limits: limits.clone(), ..begun }).unwrap();
    // Trigger 100 has no sample.
    for trigger in (0..100).chain(101..200) {
        writer.observe(&Observation::Sample(sample(TASK, trigger))).unwrap();
    }
    writer.observe(&Observation::Loss(TASK, Loss::Superseded, 1)).unwrap();
    (writer, limits)
}

#[test]
fn misses_of_a_deadline_follow_from_the_samples_also_of_a_killed_run() {
    let store = tempfile::tempdir().unwrap();
    let (writer, limits) = run_with_deadlines(store.path());
    let conclusion =
        Conclusion::of(&writer.summaries(), &writer.tallies(), limits.clone(), Vec::new());
    let findings = conclusion.findings.clone();
    let path = writer.finish(about(), conclusion, true).unwrap();
    let late = (0..200).filter(|t| *t != 100 && sample(TASK, *t).latency > Nanos(50_000)).count();
    let Finding::Deadline(all) = &findings[0] else { panic!("{findings:?}") };
    let superseded = u64::from(sample(TASK, 99).latency > Nanos(50_000));
    assert_eq!((all.events, all.late, all.open), (200, late as u64, superseded));
    assert_eq!((all.missed, all.verdict), (late as u64 + superseded, Verdict::Fail));
    assert_eq!(findings[1].verdict(), Verdict::Pass);
    assert_eq!(Bundle::open(&path).unwrap().verify().unwrap().findings, 4);
    forge(&path, |m| {
        let Finding::Deadline(finding) = &mut m.conclusion.findings[0] else { panic!("none") };
        finding.missed -= 1;
    });
    let error = Bundle::open(&path).unwrap().verify().unwrap_err().to_string();
    assert!(error.contains("findings or warnings do not follow"), "{error}");

    let store = tempfile::tempdir().unwrap();
    let (writer, _) = run_with_deadlines(store.path());
    drop(writer);
    assert!(salvage(store.path()).unwrap().is_empty());
    let salvaged = Bundle::open(&store.path().join(run_id(7).as_str())).unwrap();
    assert_eq!(salvaged.manifest().conclusion.findings, findings);
    salvaged.verify().unwrap();
}
