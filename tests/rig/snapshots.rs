// SPDX-License-Identifier: GPL-2.0-or-later
//! A damaged snapshot or kernel is noticed; what can be made again is.

use serde_json::Value;
use std::fs;
use testbench::{Lab, experiment, have_kernels};

#[test]
fn a_damaged_snapshot_is_made_anew_and_gives_the_same_samples() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let text = experiment(&["6.12 preempt=none"], &["idle"], 100, "");
    let hash = || lab.run(&text, &[]).exits(3).run().text("samples_blake3").to_string();
    let first = hash();
    let key = Lab::names(&lab.cache().join("snapshots")).pop().expect("a snapshot");
    let place = lab.cache().join("snapshots").join(key);
    // Not compared with each other: the state also holds the host's time, which the guest never sees.
    let state_is_as_recorded = || {
        let record = fs::read(place.join("snapshot.json")).expect("a record");
        let record: Value = serde_json::from_slice(&record).expect("a record");
        let state = fs::read(place.join("state")).expect("a state");
        record["state_blake3"] == blake3::hash(&state).to_hex().as_str()
    };

    let mut state = fs::read(place.join("state")).expect("a state");
    let middle = state.len() / 2;
    state[middle] ^= 1;
    fs::write(place.join("state"), &state).expect("ours");
    assert!(!state_is_as_recorded());
    assert_eq!(hash(), first, "after a flipped bit");
    assert!(state_is_as_recorded());

    let image = fs::read(place.join("image")).expect("an image");
    fs::write(place.join("image"), &image[..image.len() / 2]).expect("ours");
    assert_eq!(hash(), first, "after the image was cut short");
    assert!(fs::read(place.join("image")).expect("an image") == image);
    assert!(state_is_as_recorded());
}

#[test]
fn a_damaged_map_is_made_anew_and_explains_the_same() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let text = experiment(&["6.12 preempt=none"], &["idle"], 20, "");
    let run = lab.run(&text, &[]).exits(3).run();
    let explained = || {
        let words = ["explain", run.text("run"), "--responder", "task", "--worst", "1", "--json"];
        lab.onset(&words).exits(0).json()["explanations"].clone()
    };
    let first = explained();
    assert!(first.as_array().is_some_and(|all| all.len() == 1), "{first:#}");
    let key = Lab::names(&lab.cache().join("snapshots")).pop().expect("a snapshot");
    let path = lab.cache().join("snapshots").join(key).join("map/map");
    let whole = fs::read(&path).expect("a map");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() / 2], b""] {
        fs::write(&path, damaged).expect("ours");
        assert_eq!(explained(), first, "{} bytes", damaged.len());
        assert!(fs::read(&path).expect("a map") == whole, "{} bytes", damaged.len());
    }
}

#[test]
fn a_damaged_kernel_is_refused_with_its_remedy() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let (lab, whole) = (Lab::bare(), Lab::new());
    let (from, to) = (whole.cache().join("kernels/6.12"), lab.cache().join("kernels/6.12"));
    fs::create_dir_all(&to).expect("ours");
    fs::copy(from.join("kernel.json"), to.join("kernel.json")).expect("a kernel");
    let image = fs::read(from.join("vmlinuz")).expect("a kernel");
    fs::write(to.join("vmlinuz"), &image).expect("ours");
    testbench::write_hashes(&to);
    fs::write(to.join("vmlinuz"), &image[..image.len() - 1]).expect("ours");
    let text = experiment(&["6.12"], &["idle"], 5, "");
    lab.run(&text, &[]).exits(69).says(&["6.12", "damaged", "onset kernels fetch 6.12"]);
}
