// SPDX-License-Identifier: GPL-2.0-or-later
//! Journals that cannot be begun or cannot grow, and who else is at work.

use super::changes::changed;
use super::*;
use crate::journal::Journal;

#[test]
fn a_journal_in_a_directory_that_others_can_write_is_not_begun() {
    use std::os::unix::fs::PermissionsExt;
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10"]);
    let give = |mode| {
        fs::set_permissions(prepared.journal(), fs::Permissions::from_mode(mode)).unwrap();
        Tuning::begin(prepared.system(), &prepared.journal())
    };
    for mode in [0o777, 0o775, 0o1777, 0o702] {
        let Err(e) = give(mode) else { panic!("{mode:o}") };
        assert!(e.to_string().contains("chmod go-w"), "{e}");
    }
    assert!(give(0o755).is_ok());
    // Only root can give a directory away.
    if std::os::unix::fs::chown(prepared.journal(), Some(65534), None).is_ok() {
        assert!(give(0o755).is_err());
    }
}

/// Says to the process with small files which machine it shall change.
const SMALL: &str = "ONSET_MACHINE_SMALL";
const SWAPS: [&str; 6] = ["60", "1", "2", "3", "4", "5"];

/// A limit of the size of files stands for the disk: no process shares it, and no privilege is needed.
#[test]
fn a_journal_that_cannot_grow_changes_nothing_more_and_is_undone() {
    let apply = |root: &Path| {
        let system = || System::below(root.join("root"));
        let cpus = Cpus { measured: vec![3], housekeeping: vec![0, 1, 2] };
        let fate = |value: &&str| {
            let said = [format!("vm.swappiness={value}")];
            let plan = Plan::default().with(&said, &cpus).unwrap();
            let mut tuning = Tuning::begin(system(), &root.join("journal")).unwrap();
            tuning.apply(&plan, &cpus).unwrap().remove(0).fate
        };
        SWAPS[1..].iter().map(fate).collect::<Vec<Fate>>()
    };
    if let Some(root) = std::env::var_os(SMALL) {
        let fates = apply(Path::new(&root));
        assert_eq!(fates[0], changed(1));
        let is_refused =
            |fate: &Fate| matches!(fate, Fate::Refused(why) if why.contains("too large"));
        let refused = fates.iter().position(is_refused).expect("no journal is that small");
        assert!(fates[..refused].iter().all(|fate| *fate == changed(1)), "{fates:?}");
        assert!(fates[refused..].iter().all(is_refused), "{fates:?}");
        let text = fs::read_to_string(Path::new(&root).join("root/proc/sys/vm/swappiness"));
        assert_eq!(text.unwrap(), SWAPS[refused]);
        return;
    }
    let prepared = Prepared::new();
    let name = "tests::journals::a_journal_that_cannot_grow_changes_nothing_more_and_is_undone";
    let child = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads", "1"])
        .env(SMALL, prepared.journal().parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    // Nothing is half written, and there is room again.
    let tuning = prepared.begin();
    assert_eq!(tuning.torn(), 0);
    assert!(tuning.undo().unwrap().is_whole());
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "60\n");
}

#[test]
fn a_journal_that_is_a_link_is_refused_and_nothing_is_changed() {
    let prepared = Prepared::new();
    drop(Journal::open(&prepared.journal()).unwrap());
    std::os::unix::fs::symlink("/dev/full", prepared.journal().join("journal")).unwrap();
    let Err(e) = Tuning::begin(prepared.system(), &prepared.journal()) else { panic!() };
    assert!(e.to_string().contains("symbolic link"), "{e}");
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "60\n");
}

#[test]
fn who_writes_another_journal_waits_for_the_same_machine() {
    let prepared = Prepared::new();
    fs::create_dir(prepared.path("/run")).unwrap();
    let other = prepared.journal().with_file_name("other");
    let busy = prepared.begin();
    let error = Tuning::begin(prepared.system(), &other).err().expect("one at a time").to_string();
    let process = std::process::id();
    assert!(error.contains(&format!("(process {process}) is at work on this machine")), "{error}");
    assert!(!other.exists());
    drop(busy);
    assert!(Tuning::begin(prepared.system(), &other).is_ok());
}

#[test]
fn how_much_is_changed_is_known_to_who_has_the_journal() {
    let prepared = Prepared::new();
    assert_eq!(prepared.begin().changed(), 0);
    prepared.apply(&["vm.swappiness=10", "vm.stat_interval=120"]);
    assert_eq!(prepared.begin().changed(), 2);
    prepared.undo();
    assert_eq!(prepared.begin().changed(), 0);
}

#[test]
fn what_a_reboot_has_taken_back_is_not_in_the_status() {
    let prepared = Prepared::new();
    assert_eq!(prepared.fate("threadirqs"), Fate::NextBoot);
    prepared.apply(&["vm.swappiness=10"]);
    let places = || -> Vec<bool> {
        let seen = status(&prepared.system(), &prepared.journal()).unwrap();
        seen.iter().map(|(change, _)| change.place.persists()).collect()
    };
    assert_eq!(places(), [true, true, true, false]);
    prepared.put("/proc/sys/kernel/random/boot_id", "another\n");
    assert_eq!(places(), [true, true, true]);
}
