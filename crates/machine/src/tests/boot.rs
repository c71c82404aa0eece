// SPDX-License-Identifier: GPL-2.0-or-later
//! Boot parameters on a prepared machine, whose GRUB is three scripts.

use super::changes::ends;
use super::*;
use crate::boot::{PARAMETERS, SCRIPT};

const MENU: &str = "/boot/grub/grub.cfg";

fn all_are(applied: &[Applied], fate: &Fate) -> bool {
    applied.iter().all(|applied| applied.fate == *fate)
}

#[test]
fn an_entry_of_its_own_has_the_parameters_and_the_usual_one_stays() {
    let prepared = Prepared::new();
    // Somebody has edited the menu: GRUB's programs would not make it so.
    prepared.put(MENU, "menuentry 'by hand' { linux /vmlinuz }\n");
    let before = prepared.tree();
    let applied = prepared.apply(&["threadirqs", "rcu_nocbs", "nohz_full=2-3"]);
    assert!(all_are(&applied, &Fate::NextBoot), "{applied:?}");
    let menu = prepared.text(MENU);
    assert!(menu.starts_with("menuentry 'Debian GNU/Linux' { linux /vmlinuz }\n"), "{menu}");
    // Both are knobs of isolation, and come in the order of their names on the command line.
    assert!(
        menu.contains(
            "menuentry 'onset GNU/Linux' { linux /vmlinuz  threadirqs rcu_nocbs=3 nohz_full=2-3 }"
        ),
        "{menu}"
    );
    assert_eq!(prepared.text("/boot/env"), "next_entry=onset GNU/Linux\n");

    let applied = prepared.apply(&["skew_tick=1"]);
    assert!(all_are(&applied, &Fate::NextBoot), "{applied:?}");
    assert!(prepared.text(PARAMETERS).contains("nohz_full=2-3 skew_tick=1"));
    let undone = prepared.undo();
    assert!(undone.ended.iter().all(|ended| ended.end == End::Restored), "{undone:?}");
    assert_eq!(prepared.text("/boot/env"), "");
    let mut after = prepared.tree();
    after.retain(|path, _| !path.ends_with("env"));
    assert_eq!(after, before);
}

#[test]
fn a_menu_that_somebody_made_since_is_made_anew_without_the_entry() {
    let prepared = Prepared::new();
    prepared.put(MENU, "menuentry 'by hand' { linux /vmlinuz }\n");
    prepared.apply(&["threadirqs"]);
    let menu = prepared.text(MENU);
    prepared.put(MENU, &format!("menuentry 'a new kernel' {{ linux /new }}\n{menu}"));
    let undone = prepared.undo();
    assert!(undone.is_whole(), "{undone:?}");
    assert_eq!(ends(&undone), [End::Restored, End::Restored, End::Anew]);
    assert_eq!(prepared.text(MENU), "menuentry 'Debian GNU/Linux' { linux /vmlinuz }\n");
}

/// An undo gives everything back before it marks that in the journal, and a kill may come between.
#[test]
fn a_menu_that_a_killed_undo_gave_back_stays_also_after_two_applies() {
    let prepared = Prepared::new();
    let by_hand = "menuentry 'by hand' { linux /vmlinuz }\n";
    prepared.put(MENU, by_hand);
    prepared.apply(&["threadirqs"]);
    prepared.apply(&["skew_tick=1"]);
    prepared.put(MENU, by_hand);
    [PARAMETERS, SCRIPT].iter().for_each(|path| fs::remove_file(prepared.path(path)).unwrap());
    let undone = prepared.undo();
    assert!(undone.is_whole(), "{undone:?}");
    assert!(!ends(&undone).contains(&End::Anew), "{undone:?}");
    assert_eq!(prepared.text(MENU), by_hand);
}

/// A kill may come after GRUB's programs have made the menu, and before the journal has its text.
#[test]
fn a_menu_whose_text_is_not_in_the_journal_is_made_anew() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs"]);
    let path = prepared.journal().join("journal");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().last().unwrap().contains("read_back"), "{text}");
    let whole: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(&path, whole[..whole.len() - 1].concat()).unwrap();
    let undone = prepared.undo();
    assert_eq!(ends(&undone), [End::Restored, End::Restored, End::Anew]);
    assert_eq!(prepared.text(MENU), "menuentry 'Debian GNU/Linux' { linux /vmlinuz }\n");
}

#[test]
fn an_entry_that_cannot_grow_stays_as_it_is_and_chosen() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs"]);
    let (before, chosen) = (prepared.tree(), "next_entry=onset GNU/Linux\n");
    prepared.put("/fail", "");
    let Fate::Refused(why) = prepared.fate("skew_tick=1") else { panic!("it has grown") };
    assert!(why.contains("no device for /"), "{why}");
    fs::remove_file(prepared.path("/fail")).unwrap();
    assert_eq!((prepared.tree(), prepared.text("/boot/env")), (before, chosen.into()));
    assert!(prepared.undo().is_whole());
}

#[test]
fn an_entry_grows_by_what_it_has_already() {
    let prepared = Prepared::new();
    let refused = |said: &str| match prepared.fate(said) {
        Fate::Refused(why) => why,
        fate => panic!("{said}: {fate:?}"),
    };
    let why = refused("rcu_nocb_poll");
    assert!(why.contains("does nothing without rcu_nocbs"), "{why}");
    prepared.apply(&["rcu_nocbs", "rcupdate.rcu_expedited=1"]);
    assert_eq!(prepared.fate("rcu_nocb_poll"), Fate::NextBoot);
    let why = refused("rcupdate.rcu_normal_after_boot=1");
    assert!(why.contains("rcupdate.rcu_expedited is in onset's boot entry"), "{why}");
    assert!(!prepared.text(PARAMETERS).contains("normal"));
    prepared.put("/proc/cmdline", "ro rcu_nocbs=3\n");
    let entry = entry(&prepared.system());
    // Isolation comes last of an apply.
    let words = ["rcupdate.rcu_expedited=1", "rcu_nocbs=3", "rcu_nocb_poll"];
    assert_eq!(entry, words.map(|word| (word.to_owned(), word == "rcu_nocbs=3")));
}

#[test]
fn cpus_that_the_machine_has_not_are_refused_before_a_boot() {
    let prepared = Prepared::new();
    for (said, cpu) in [("nohz_full=2-7", 4), ("isolcpus=managed_irq,domain,9", 9)] {
        let Fate::Refused(why) = prepared.fate(said) else { panic!("{said}") };
        assert!(why.contains(&format!("CPU {cpu}, and this machine has 0-3")), "{why}");
    }
    // A CPU that is offline may come.
    prepared.put("/sys/devices/system/cpu/possible", "0-7\n");
    assert_eq!(prepared.fate("isolcpus=managed_irq,domain,2-7"), Fate::NextBoot);
}

#[test]
fn the_files_of_an_entry_outlive_a_reboot_and_are_undone_after_it() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs", "vm.swappiness=10"]);
    prepared.put("/proc/sys/kernel/random/boot_id", "another\n");
    let tuning = prepared.begin();
    assert_eq!(tuning.rebooted(), 1);
    let undone = tuning.undo().unwrap();
    assert!(undone.ended.iter().all(|ended| ended.end == End::Restored), "{undone:?}");
    assert_eq!(undone.ended.len(), 3);
    assert!(!prepared.path(SCRIPT).exists() && !prepared.path(PARAMETERS).exists());
}

#[test]
fn without_the_distributions_grub_the_parameters_are_told() {
    let prepared = Prepared::new();
    fs::remove_file(prepared.path("/usr/sbin/update-grub")).unwrap();
    let before = prepared.tree();
    let applied = prepared.apply(&["threadirqs", "skew_tick"]);
    let Fate::Refused(why) = &applied[0].fate else { panic!("{applied:?}") };
    assert!(
        why.contains("no /usr/sbin/update-grub")
            && why.contains("yourself: threadirqs skew_tick=1"),
        "{why}"
    );
    assert_eq!(prepared.tree(), before);
}

#[test]
fn a_file_that_somebody_else_wrote_is_not_touched() {
    for path in [PARAMETERS, SCRIPT] {
        let prepared = Prepared::new();
        prepared.put(path, "# mine\n");
        let before = prepared.tree();
        let Fate::Refused(why) = prepared.fate("threadirqs") else { panic!() };
        assert!(why.contains(path) && why.contains("onset did not write it"), "{why}");
        assert_eq!(prepared.tree(), before);
    }
}

#[test]
fn a_menu_that_cannot_be_made_takes_the_files_back() {
    let prepared = Prepared::new();
    prepared.put("/fail", "");
    let before = prepared.tree();
    let Fate::Refused(why) = prepared.fate("threadirqs") else { panic!() };
    assert!(why.contains("no device for /"), "{why}");
    assert_eq!(prepared.tree(), before);
    let undone = prepared.undo();
    assert!(undone.is_whole() && undone.ended.is_empty(), "{undone:?}");
}

/// The menu is another one meanwhile, and cannot be made anew.
#[test]
fn a_menu_that_cannot_be_made_anew_stays_in_the_journal() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs"]);
    prepared.put(MENU, "menuentry 'a new kernel' { linux /new }\n");
    prepared.put("/fail", "");
    let undone = prepared.undo();
    assert!(!undone.is_whole() && undone.ended.len() == 3, "{undone:?}");
    fs::remove_file(prepared.path("/fail")).unwrap();
    let undone = prepared.undo();
    assert!(undone.is_whole(), "{undone:?}");
    assert_eq!(ends(&undone), [End::Already, End::Already, End::Anew]);
}

#[test]
fn a_parameter_that_the_command_line_has_is_so_already() {
    let prepared = Prepared::new();
    prepared.put("/proc/cmdline", "ro threadirqs skew_tick=0\n");
    assert_eq!(prepared.fate("threadirqs"), Fate::Already);
    assert_eq!(prepared.fate("skew_tick=1"), Fate::NextBoot);
}

#[test]
fn somebody_elses_choice_of_the_next_boot_stays() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs"]);
    prepared.put("/boot/env", "next_entry=other\n");
    assert!(prepared.undo().is_whole());
    assert_eq!(prepared.text("/boot/env"), "next_entry=other\n");
}

#[test]
fn a_choice_that_was_there_before_stays_and_is_said() {
    let prepared = Prepared::new();
    prepared.put("/boot/env", "next_entry=other\n");
    let Fate::Entry(why) = prepared.fate("threadirqs") else { panic!("it was chosen") };
    assert!(why.contains("\"other\""), "{why}");
    assert_eq!(prepared.text("/boot/env"), "next_entry=other\n");
}

#[test]
fn where_grub_could_not_take_the_choice_back_there_is_no_entry() {
    let prepared = Prepared::new();
    prepared
        .put("/usr/sbin/grub-probe", "#!/bin/sh\n[ $1 = --target=fs ] && echo ext2 || echo lvm\n");
    let Fate::Refused(why) = prepared.fate("threadirqs") else { panic!("there is an entry") };
    assert!(why.contains("cannot write to /boot/grub as it boots (lvm)"), "{why}");
    assert!(why.contains("yourself: threadirqs"), "{why}");
    prepared.put("/usr/sbin/grub-probe", "#!/bin/sh\n[ $1 = --target=fs ] && echo ext2 || echo\n");
    assert_eq!(prepared.fate("threadirqs"), Fate::NextBoot);
    // An entry that is there leaves the menu all the same, also one that was made anew.
    prepared.put("/usr/sbin/grub-probe", "#!/bin/sh\necho zfs\n");
    prepared.put(MENU, "menuentry 'onset GNU/Linux' { linux /vmlinuz }\n");
    assert!(prepared.undo().is_whole());
    assert_eq!(prepared.text(MENU), "menuentry 'Debian GNU/Linux' { linux /vmlinuz }\n");
}

#[test]
fn an_empty_choice_that_grub_left_behind_goes_too() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs"]);
    prepared.put("/boot/env", "next_entry=\n");
    assert!(prepared.undo().is_whole());
    assert_eq!(prepared.text("/boot/env"), "");
}

/// After a power failure the menu may be the old one again, if it is not durable when the journal says that it is made.
#[test]
fn a_menu_that_cannot_be_made_durable_stays_in_the_journal() {
    let prepared = Prepared::new();
    prepared.apply(&["threadirqs"]);
    let menu = prepared.text(MENU);
    // The device takes what is written, and cannot be synced.
    prepared.link(MENU, "/dev/null");
    let undone = prepared.undo();
    let why = undone.boot.as_ref().unwrap();
    assert!(!undone.is_whole() && why.contains("cannot be made durable"), "{why}");
    fs::remove_file(prepared.path(MENU)).unwrap();
    prepared.put(MENU, &menu);
    assert!(prepared.undo().is_whole());
    assert!(!prepared.path(MENU).exists(), "there was none");
}
