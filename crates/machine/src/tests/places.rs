// SPDX-License-Identifier: GPL-2.0-or-later
//! Places that are no files, and the programs that change them.

use super::changes::{changed, ends};
use super::*;

#[test]
fn a_setting_of_a_card_is_changed_and_given_back_by_ethtool() {
    let prepared = Prepared::new();
    let before = prepared.tree();
    assert_eq!(prepared.fate("net.adaptive_rx=off"), changed(1));
    assert_eq!(prepared.fate("net.rx_usecs=0"), changed(1));
    assert_eq!(prepared.text("/card/rx-usecs"), "0\n");
    let Fate::Refused(why) = prepared.fate("net.rx_usecs=5000") else { panic!("5000 was taken") };
    assert!(why.contains("rx-usecs of eth0") && why.contains("Invalid argument"), "{why}");
    let Fate::Refused(why) = prepared.fate("net.rx_frames=1") else { panic!("not there") };
    assert!(why.contains("no network card has rx-frames"), "{why}");
    prepared.put("/card/adaptive-rx", "on\n");
    assert_eq!(ends(&prepared.undo()), [End::Restored, End::Already]);
    assert_eq!(prepared.tree(), before);
}

#[test]
fn a_partition_needs_cgroups_and_cpus() {
    let prepared = Prepared::new();
    let Fate::Refused(why) = prepared.fate("cpuset.partition=2-3") else { panic!("no cgroups") };
    assert!(why.contains("no cgroups of version 2"), "{why}");
    let refused = Plan::default().with(&["cpuset.partition=all".into()], &prepared.cpus());
    assert!(refused.unwrap_err().to_string().contains("no list of CPUs"));
}

#[test]
fn what_a_killed_process_had_started_has_the_lock_until_it_ends() {
    let prepared = Prepared::new();
    let tuning = prepared.begin();
    let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let opened = fs::read_dir(format!("/proc/{}/fd", program.id())).unwrap().flatten();
    let lock = prepared.journal().join("lock").canonicalize().unwrap();
    let has_lock = opened.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|path| path == lock);
    assert!(has_lock);
    // A process that comes to its end takes the lock from it.
    drop(tuning);
    prepared.begin();
    program.kill().unwrap();
    program.wait().unwrap();
}
