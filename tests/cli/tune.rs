// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset tune` on this machine, whose settings are only read: plans, journals that somebody damaged, and refusals.

use crate::tuning_alone;
use serde_json::Value;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use testbench::{Lab, assert_as_promised_by, onset};

/// The first record of a journal, and one that announces a change that was never made on this machine.
fn journal(lab: &Lab, text: &str) -> String {
    let place = lab.path().join("journal");
    fs::create_dir_all(&place).unwrap();
    // Whatever the user's mask says: onset refuses a directory that the group can write.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.join("journal"), text).unwrap();
    place.to_str().unwrap().to_owned()
}

/// A line as onset writes it after a line with the digits `last`.
fn line(last: &str, json: &str) -> String {
    let hash = blake3::hash(format!("{last}{json}").as_bytes());
    format!("{} {json}\n", &hash.to_hex()[..16])
}

#[test]
fn the_plan_is_as_its_schema_says_and_changes_nothing() {
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let interval = || fs::read_to_string("/proc/sys/vm/stat_interval").ok();
    let before = interval();
    let printed = lab.onset(&["tune", "--json"]).exits(0).json();
    assert_as_promised_by("tune", &printed);
    let knobs = printed["knobs"].as_array().unwrap();
    let knob = |name: &str| knobs.iter().find(|knob| knob["name"] == name).unwrap();
    let text = lab.onset(&["tune"]).exits(0).stdout;
    for name in ["vm.stat_interval", "threadirqs", "firmware.smi"] {
        assert!(
            text.contains(name) && text.contains(knob(name)["source"].as_str().unwrap()),
            "{text}"
        );
    }
    assert_eq!(knob("firmware.smi")["state"], "told");
    assert_eq!(knob("threadirqs")["needs_reboot"], true);
    if let Some(before) = &before {
        assert_eq!(knob("vm.stat_interval")["now"], before.trim());
    }
    assert_eq!(interval(), before);
    let again = lab.onset(&["tune", "--json"]).exits(0).json();
    let now = |printed: &Value| -> Vec<(Value, Value)> {
        let knobs = printed["knobs"].as_array().unwrap().iter();
        knobs.map(|knob| (knob["name"].clone(), knob["now"].clone())).collect()
    };
    assert_eq!(now(&again), now(&printed));
}

#[test]
fn a_plan_is_written_and_one_that_nobody_can_carry_out_is_refused() {
    let lab = Lab::bare();
    let path = lab.path().join("plan.toml");
    let path = path.to_str().unwrap();
    lab.onset(&["tune", "--output", path]).exits(0).says(&["the plan is in"]);
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("version = 1") && text.contains("[knobs]"), "{text}");

    fs::write(path, "version = 1\n[knobs]\n\"vm.stat_intervall\" = \"1\"\n").unwrap();
    let apply = |words: &[&str]| {
        let journal = lab.path().join("none");
        let journal = journal.to_str().unwrap();
        let finished = lab.onset(&[&["tune", "apply", "--journal", journal], words].concat());
        assert!(!Path::new(journal).exists());
        finished
    };
    apply(&["--plan", path]).exits(2).says(&["plan.toml", "\"vm.stat_interval\""]);
    apply(&["--plan", "missing.toml"]).exits(2).says(&["missing.toml"]);
    apply(&["--knob", "vm.swapiness=1"]).exits(2).says(&["\"vm.swappiness\"", "onset tune"]);
    apply(&["--knob", "vm.swappiness"]).exits(2).says(&["--knob vm.swappiness=VALUE"]);
    apply(&["--knob", "irqbalance=1"]).exits(2).says(&["systemctl stop irqbalance"]);
    apply(&["--knob", "rcu_normal=1", "--knob", "rcu_expedited=1"]).exits(2).says(&["contradict"]);
    apply(&["--only", "boot"]).exits(2).says(&["runtime"]);
    lab.onset(&["tune", "--cpus", "8000"]).exits(2).says(&["--cpus", "online are"]);
    lab.onset(&["tune", "--json", "undo"]).exits(2);
}

#[test]
fn nothing_to_undo_is_said() {
    let lab = Lab::bare();
    let place = lab.path().join("journal");
    let place = place.to_str().unwrap();
    for words in [["tune", "undo", "--journal", place], ["tune", "status", "--journal", place]] {
        assert!(lab.onset(&words).exits(0).stdout.contains("nothing is changed"));
    }
    assert!(!Path::new(place).exists());
}

#[test]
fn a_journal_that_is_damaged_newer_or_of_another_machine_is_refused_by_its_name() {
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let first = line("", r#"{"journal":{"version":1}}"#);
    let change = r#"{"change":{"number":1,"knob":"vm.swappiness","place":{"kernel":"/proc/sys/vm/swappiness"},"reads":"words","old":"60\n","new":"10","boot":"b","machine":"elsewhere"}}"#;
    let second = line(&first[..16], change);
    let newer = line("", r#"{"journal":{"version":9,"more":1}}"#);
    for (text, says) in [
        (
            format!("{}{second}", first.replace("version", "versiom")),
            ["line 1 is damaged", "by hand"],
        ),
        (newer, ["version 9", "undo with that onset"]),
        (first.clone() + &second, ["another machine (elsewhere)", "--journal DIR"]),
        ("somebody's notes\n".into(), ["line 1 is damaged", "move the file away"]),
    ] {
        let place = journal(&lab, &text);
        for command in ["undo", "status"] {
            lab.onset(&["tune", command, "--journal", &place]).exits(69).says(&says);
        }
        assert_eq!(fs::read_to_string(Path::new(&place).join("journal")).unwrap(), text);
    }
}

#[test]
fn a_change_of_an_earlier_boot_is_closed_and_half_a_record_is_cut_off() {
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let swappiness = || fs::read_to_string("/proc/sys/vm/swappiness").ok();
    let before = swappiness();
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_else(|_| "none".into());
    let first = line("", r#"{"journal":{"version":1}}"#);
    let change = format!(
        r#"{{"change":{{"number":1,"knob":"vm.swappiness","place":{{"kernel":"/proc/sys/vm/swappiness"}},"reads":"words","old":"1\n","new":"{}","boot":"b","machine":"{}"}}}}"#,
        before.as_deref().unwrap_or("60").trim(),
        machine.trim()
    );
    let place = journal(&lab, &format!("{first}{}0123 half", line(&first[..16], &change)));
    let undone = lab.onset(&["tune", "undo", "--journal", &place]).exits(0);
    undone.says(&["1 changes of an earlier boot", "half a record (9 bytes)"]);
    assert!(!Path::new(&place).join("journal").exists());
    assert_eq!(swappiness(), before);
}

#[test]
fn two_tunes_at_once_are_refused_by_the_process() {
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let place = journal(&lab, "");
    let lock = fs::File::create(Path::new(&place).join("lock")).unwrap();
    fs::write(Path::new(&place).join("lock"), "4711").unwrap();
    // SAFETY: a plain system call on our own file.
    assert_eq!(unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) }, 0);
    lab.onset(&["tune", "undo", "--journal", &place]).exits(69).says(&["process 4711", "wait"]);
}

#[test]
fn a_journal_that_cannot_be_made_changes_nothing_and_says_what_to_do() {
    let (_alone, lab) = (tuning_alone(), Lab::bare());
    let apply = ["tune", "apply", "--knob", "vm.swappiness=10"];
    let swappiness = || fs::read_to_string("/proc/sys/vm/swappiness").ok();
    let before = swappiness();
    // Nobody makes a directory there.
    let nowhere = [&apply[..], &["--journal", "/proc/onset"]].concat();
    lab.onset(&nowhere).exits(69).says(&["/proc/onset", "--journal DIR"]);
    // SAFETY: the call only asks.
    match unsafe { libc::geteuid() } {
        0 => testbench::skip("root may write the journal of this machine"),
        _ => drop(lab.onset(&apply).exits(69).says(&["run the command as root"])),
    }
    assert_eq!(swappiness(), before);
}

#[test]
fn the_unit_is_printed_and_names_command_and_journal() {
    let lab = Lab::bare();
    let unit = lab.onset(&["tune", "status", "--unit", "--journal", "/srv/tune"]).exits(0).stdout;
    let command = format!("ExecStart=\"{}\" tune undo --journal \"/srv/tune\"", onset().display());
    assert!(unit.contains(&command) && unit.contains("[Install]"), "{unit}");
    let unit = lab.onset(&["tune", "status", "--unit", "--journal", "a%b"]).exits(0).stdout;
    let journal = lab.path().join("a%%b");
    assert!(unit.contains(&format!("undo --journal \"{}\"", journal.display())), "{unit}");
}
