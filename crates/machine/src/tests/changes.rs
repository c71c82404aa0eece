// SPDX-License-Identifier: GPL-2.0-or-later
//! Changes of a prepared machine, and taking them back. Where the kernel has to answer, a file of the running kernel
//! stands in the place of one of the machine.

use super::*;
use crate::journal::{Journal, Record};
use crate::undo::open_changes;

/// A file of the kernel that holds 15 bytes of what is written: it reads back another value.
const SHORT: &str = "/proc/self/comm";
/// A file of the kernel that refuses numbers above 1000 (EINVAL).
const REFUSES: &str = "/proc/self/oom_score_adj";
/// A file of the kernel that nobody can write.
const CLOSED: &str = "/proc/version";

pub(super) fn changed(places: usize) -> Fate {
    Fate::Changed { places, refused: Vec::new() }
}

pub(super) fn ends(undone: &Undone) -> Vec<End> {
    undone.ended.iter().map(|ended| ended.end.clone()).collect()
}

#[test]
fn a_plan_is_applied_and_taken_back_to_the_byte_last_in_first_out() {
    let prepared = Prepared::new();
    let before = prepared.tree();
    // What shows all its words would be another file than the kernel's after a word was written into it.
    let fit: Vec<Sighting> =
        prepared.looks().into_iter().filter(|l| l.knob.reads != Notation::Brackets).collect();
    let plan = Plan::proposed(&fit).at_once();
    assert!(plan.changes().len() > 12, "{plan:?}");
    let applied = prepared.begin().apply(&plan, &prepared.cpus()).unwrap();
    for applied in &applied {
        assert!(matches!(applied.fate, Fate::Changed { .. }), "{applied:?}");
    }
    assert_eq!(prepared.text("/proc/irq/24/smp_affinity_list"), "0-2");
    assert_eq!(prepared.text("/proc/irq/9/smp_affinity_list"), "0-2");
    let undone = prepared.undo();
    assert_eq!(prepared.tree(), before);
    let numbers: Vec<u64> = undone.ended.iter().map(|ended| ended.change.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
    let first = &undone.ended[0].change.knob;
    assert!(find(first).unwrap().isolates, "{first} was changed last");
    assert!(ends(&undone).iter().all(|end| *end == End::Restored));
    assert!(Journal::look(&prepared.journal()).unwrap().is_none());
}

#[test]
fn the_same_setting_changed_twice_has_its_first_value_after_an_undo() {
    let prepared = Prepared::new();
    assert_eq!(prepared.fate("vm.swappiness=10"), changed(1));
    assert_eq!(prepared.fate("vm.swappiness=10"), Fate::Already);
    assert_eq!(prepared.fate("vm.swappiness=60"), changed(1));
    assert_eq!(prepared.fate("vm.swappiness=5"), changed(1));
    assert_eq!(prepared.undo().ended.len(), 3);
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "60\n");
}

#[test]
fn a_first_value_is_kept_when_a_later_change_could_not_be_taken_back() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10"]);
    prepared.apply(&["vm.swappiness=5"]);
    // The name under which the new file would be written is taken, so it cannot be written.
    let obstacle = prepared.path("/proc/sys/vm/.swappiness.onset-tune");
    fs::create_dir(&obstacle).unwrap();
    let undone = ends(&prepared.undo());
    let [End::Failed(last), End::Failed(first)] = &undone[..] else { panic!("{undone:?}") };
    assert!(last.contains("swappiness does not take its old value"), "{last}");
    assert!(first.contains("a later change of") && first.contains("swappiness"), "{first}");
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "5");
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(ends(&prepared.undo()), [End::Restored, End::Restored]);
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "60\n");
    assert!(Journal::look(&prepared.journal()).unwrap().is_none());
}

#[test]
fn a_file_with_two_names_keeps_its_first_value_too() {
    let prepared = Prepared::new();
    let file = "/sys/devices/virtual/workqueue/writeback/cpumask";
    prepared.link(
        "/sys/bus/workqueue/devices/writeback/cpumask",
        prepared.path(file).to_str().unwrap(),
    );
    assert!(matches!(prepared.fate("workqueue.cpumask.each=3"), Fate::Changed { .. }));
    assert_eq!(prepared.fate("writeback.cpumask=1"), changed(1));
    let obstacle = prepared.path("/sys/devices/virtual/workqueue/writeback/.cpumask.onset-tune");
    fs::create_dir(&obstacle).unwrap();
    assert!(!prepared.undo().is_whole());
    fs::remove_dir(&obstacle).unwrap();
    assert!(prepared.undo().is_whole());
    assert_eq!(prepared.text(file), "f\n");
}

#[test]
fn what_somebody_else_changed_is_left_and_said() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10", "vm.stat_interval=120"]);
    prepared.put("/proc/sys/vm/swappiness", "33\n");
    let undone = prepared.undo();
    assert_eq!(ends(&undone), [End::Restored, End::Left("33".into())]);
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "33\n");
    assert_eq!(prepared.text("/proc/sys/vm/stat_interval"), "1\n");
    assert!(undone.is_whole() && Journal::look(&prepared.journal()).unwrap().is_none());
}

#[test]
fn what_is_not_there_now_is_kept_until_it_is_and_what_is_back_already_is_said() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10", "net.threaded=1"]);
    prepared.put("/proc/sys/vm/swappiness", "60\n");
    let file = prepared.path("/sys/class/net/eth0/threaded");
    let written = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let undone = prepared.undo();
    let [End::Restored, End::Failed(why), End::Already] = &ends(&undone)[..] else {
        panic!("{undone:?}")
    };
    assert!(why.contains("eth0/threaded is not there now; undo again when it is"), "{why}");
    assert!(!undone.is_whole());
    // Its driver is back, with what was written.
    fs::write(&file, written).unwrap();
    let undone = prepared.undo();
    assert_eq!(ends(&undone), [End::Restored]);
    assert_eq!(prepared.text("/sys/class/net/eth0/threaded"), "0\n");
    assert!(undone.is_whole() && Journal::look(&prepared.journal()).unwrap().is_none());
}

#[test]
fn a_value_that_reads_back_otherwise_is_restored_and_the_others_go_on() {
    let prepared = Prepared::new();
    prepared.link("/sys/devices/system/clocksource/clocksource0/current_clocksource", SHORT);
    let comm = fs::read_to_string(SHORT).unwrap();
    let applied =
        prepared.apply(&["current_clocksource=a_clock_of_a_long_name", "vm.swappiness=10"]);
    let Fate::Refused(why) = &applied[0].fate else { panic!("{applied:?}") };
    assert!(why.contains("reads back \"a_clock_of_a_lo\" where"), "{why}");
    assert_eq!(applied[1].fate, changed(1));
    assert_eq!(fs::read_to_string(SHORT).unwrap(), comm);
    let open = open_changes(&Journal::look(&prepared.journal()).unwrap().unwrap().records).0;
    assert_eq!(open.len(), 1, "{open:?}");
}

#[test]
fn a_knob_that_one_file_refuses_is_taken_back_whole() {
    let prepared = Prepared::new();
    prepared.link("/sys/devices/system/cpu/cpu3/cpuidle/state1/disable", REFUSES);
    let before = prepared.tree();
    let Fate::Refused(why) = prepared.fate("cpuidle.state.disable=5000") else { panic!() };
    assert!(why.contains("state1/disable does not take \"5000\": Invalid argument"), "{why}");
    assert_eq!(prepared.tree(), before);
    assert_eq!(prepared.undo().ended, []);
}

#[test]
fn what_the_kernel_refuses_for_single_files_is_named_and_the_others_change() {
    let prepared = Prepared::new();
    prepared.link("/proc/irq/1/smp_affinity_list", CLOSED);
    let Fate::Changed { places, refused } = prepared.fate("irq.smp_affinity") else { panic!() };
    assert_eq!((places, refused.len()), (2, 1));
    assert!(
        refused[0].contains("/proc/irq/1/smp_affinity_list does not take \"0-2\""),
        "{refused:?}"
    );
    // What has the value has it still, so the knob is not refused.
    let Fate::Changed { places, refused } = prepared.fate("irq.smp_affinity") else { panic!() };
    assert_eq!((places, refused.len()), (0, 1));
    assert_eq!(ends(&prepared.undo()), [End::Restored, End::Restored]);
}

#[test]
fn a_knob_that_the_kernel_refuses_for_all_files_is_refused() {
    let prepared = Prepared::new();
    for irq in prepared.system().matching("/proc/irq/*/smp_affinity_list") {
        prepared.link(&irq, CLOSED);
    }
    assert!(matches!(prepared.fate("irq.smp_affinity"), Fate::Refused(_)));
}

/// Where the driver of the frequency follows the governor: the file of CPU 0's governor is that of its preference.
#[test]
fn an_undo_gives_back_what_the_kernel_changed_together_with_a_knob() {
    let file = |name: &str| format!("/sys/devices/system/cpu/cpu0/cpufreq/{name}");
    let (governor, preference) = (file("scaling_governor"), file("energy_performance_preference"));
    let (prepared, follows) = (Prepared::new(), "balance_performance\n");
    prepared.link(&governor, prepared.path(&preference).to_str().unwrap());
    let plan = ["scaling_governor=performance", "energy_performance_preference=performance"];
    assert_eq!(prepared.apply(&plan)[0].fate, changed(3));
    assert_eq!(prepared.text(&preference), "performance");
    // Now the kernel gives back the governor alone.
    fs::remove_file(prepared.path(&governor)).unwrap();
    prepared.put(&governor, "performance");
    let undone = prepared.undo();
    assert!(ends(&undone).iter().all(|end| *end == End::Restored), "{undone:?}");
    assert_eq!([prepared.text(&governor), prepared.text(&preference)], [follows, follows]);
    let at = |name: &str| {
        let path = Spot::Kernel(file(name));
        undone.ended.iter().position(|ended| ended.change.place == path).unwrap()
    };
    assert!(at("scaling_governor") < at("energy_performance_preference"));
    assert!(Journal::look(&prepared.journal()).unwrap().is_none());
    // Where nothing followed, nothing is left to undo but the governor.
    assert_eq!(prepared.fate("scaling_governor=powersave"), changed(2));
    assert_eq!(prepared.undo().ended.len(), 2);
}

#[test]
fn the_preference_is_proposed_before_the_governor_that_changes_it() {
    let plan = Plan::proposed(&Prepared::new().looks());
    let at = |name: &str| plan.changes().iter().position(|c| c.knob.name == name).unwrap();
    assert!(at("energy_performance_preference") < at("scaling_governor"));
}

#[test]
fn a_kill_between_the_journal_and_the_write_is_undone_as_any_other() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10"]);
    // The value is as it was before the write: no write came.
    prepared.put("/proc/sys/vm/swappiness", "60\n");
    assert_eq!(ends(&prepared.undo()), [End::Already]);
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "60\n");
}

#[test]
fn what_the_kernel_made_of_a_value_is_ours_after_a_kill() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10"]);
    let mut journal = Journal::open(&prepared.journal()).unwrap();
    journal.add(Record::ReadBack { number: 1, text: "9\n".into() }).unwrap();
    drop(journal);
    prepared.put("/proc/sys/vm/swappiness", "9\n");
    assert_eq!(ends(&prepared.undo()), [End::Restored]);
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "60\n");
}

#[test]
fn a_reboot_has_taken_the_running_kernels_values_back() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10", "vm.stat_interval=120"]);
    prepared.put("/proc/sys/kernel/random/boot_id", "another\n");
    // The new boot has this value from somebody else, by chance the same.
    prepared.put("/proc/sys/vm/stat_interval", "120\n");
    let tuning = prepared.begin();
    assert_eq!(tuning.rebooted(), 2);
    assert_eq!(tuning.undo().unwrap().ended, []);
    assert_eq!(prepared.text("/proc/sys/vm/stat_interval"), "120\n");
    assert!(Journal::look(&prepared.journal()).unwrap().is_none());
}

#[test]
fn the_journal_of_another_machine_is_refused_by_its_name() {
    let prepared = Prepared::new();
    prepared.apply(&["vm.swappiness=10"]);
    prepared.put("/etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
    let Err(e) = Tuning::begin(prepared.system(), &prepared.journal()) else { panic!() };
    let why = e.to_string();
    assert!(why.contains("4d1c2b7e0f6a4a6f9b0e1c2d3e4f5a6b") && why.contains("--journal"), "{why}");
    assert!(status(&prepared.system(), &prepared.journal()).is_err());
    assert_eq!(prepared.text("/proc/sys/vm/swappiness"), "10");
}

#[test]
fn a_knob_without_what_it_needs_or_against_another_is_refused() {
    let prepared = Prepared::new();
    let Fate::Refused(why) = prepared.fate("rcu_nocb_poll") else { panic!() };
    assert!(why.contains("--knob rcu_nocbs"), "{why}");
    assert_eq!(prepared.fate("rcu_normal"), changed(1));
    let Fate::Refused(why) = prepared.fate("rcu_expedited=1") else { panic!() };
    assert!(why.contains("rcu_normal is in effect"), "{why}");
    let said = ["rcu_normal=1".to_owned(), "rcu_expedited=1".to_owned()];
    let plan = Plan::default().with(&said, &prepared.cpus()).unwrap();
    let why = prepared.begin().apply(&plan, &prepared.cpus()).unwrap_err().to_string();
    assert!(why.contains("contradict each other"), "{why}");
}

#[test]
fn what_contradicts_a_knob_is_seen_without_a_proposal_and_from_both_sides() {
    let refused = |prepared: &Prepared, said: &str, by: &str| {
        let Fate::Refused(why) = prepared.fate(said) else { panic!("{said} is not refused") };
        assert!(why.contains(&format!("{by} is in effect, which contradicts it")), "{why}");
    };
    // onset proposes no value of rcu_expedited.
    let prepared = Prepared::new();
    prepared.put("/sys/kernel/rcu_expedited", "1\n");
    refused(&prepared, "rcu_normal", "rcu_expedited");
    assert_eq!(prepared.fate("rcu_expedited=0"), changed(1));
    assert_eq!(prepared.fate("rcu_normal"), changed(1));
    // Only idle names the other one.
    prepared.put("/proc/cmdline", "ro idle=poll\n");
    refused(&prepared, "pm_qos_resume_latency_us", "idle");
    prepared.put("/proc/cmdline", "ro\n");
    assert_eq!(prepared.fate("pm_qos_resume_latency_us"), changed(1));
}

#[test]
fn a_share_of_dirty_memory_is_refused_while_a_number_of_bytes_holds() {
    for name in ["vm.dirty_ratio", "vm.dirty_background_ratio"] {
        let prepared = Prepared::new();
        let (said, bytes) = (format!("{name}=5"), name.replace("ratio", "bytes"));
        let file = format!("/proc/sys/{}", bytes.replace('.', "/"));
        prepared.put(&file, "8192\n");
        // The kernel would set the bytes to 0, which it refuses as their old value.
        let Fate::Refused(why) = prepared.fate(&said) else { panic!("{said} is not refused") };
        assert!(why.contains(&format!("{bytes} is in effect")), "{why}");
        prepared.put(&file, "0\n");
        assert_eq!(prepared.fate(&said), changed(1));
    }
}

/// A change of this place that this machine's onset could have made.
fn change(place: Spot, old: &str, new: &str) -> Record {
    Record::Change(crate::journal::Change {
        number: 1,
        knob: "vm.swappiness".into(),
        place,
        reads: Notation::Words,
        old: Some(old.into()),
        new: Some(new.into()),
        boot: "8f14e45f-ceea-467f-a0e6-2ac1d8e5b3c1".into(),
        machine: "4d1c2b7e0f6a4a6f9b0e1c2d3e4f5a6b".into(),
    })
}

#[test]
fn what_the_kernel_made_of_an_old_value_is_ours_at_the_next_undo() {
    let prepared = Prepared::new();
    let path = "/proc/sys/vm/swappiness";
    // The name of this thread has 15 bytes. No other test changes it.
    let name = "/proc/thread-self/comm";
    fs::write(name, "new").unwrap();
    prepared.link(path, name);
    let mut journal = Journal::open(&prepared.journal()).unwrap();
    journal.add(change(Spot::Kernel(path.into()), "an_old_name_of_too_many_bytes", "new")).unwrap();
    drop(journal);
    for _ in 0..2 {
        let undone = ends(&prepared.undo());
        let [End::Failed(why)] = &undone[..] else { panic!("{undone:?}") };
        assert!(why.contains("reads back another value"), "{why}");
        assert_eq!(prepared.text(path), "an_old_name_of_\n");
    }
    // Where the value can be given back, it is.
    fs::remove_file(prepared.path(path)).unwrap();
    prepared.put(path, "an_old_name_of_\n");
    assert_eq!(ends(&prepared.undo()), [End::Restored]);
}

#[test]
fn a_place_that_onset_never_changes_is_not_written() {
    let kernel = |path: &str| Spot::Kernel(path.into());
    let places = [
        Spot::Disk("/etc/victim".into()),
        Spot::Disk("/etc/default/grub.d/../../victim".into()),
        kernel("/etc/victim"),
        kernel("/proc/../etc/victim"),
        kernel("/sys/kernel/../../etc/victim"),
        kernel("/system/../etc/victim"),
        Spot::Card { interface: "--help".into(), setting: "victim".into() },
        Spot::Card { interface: "eth0".into(), setting: "../victim".into() },
    ];
    for place in places {
        let prepared = Prepared::new();
        prepared.put("/etc/victim", "mine");
        prepared.put("/etc/.victim.onset-tune", "mine too");
        fs::create_dir(prepared.path("/system")).unwrap();
        let before = prepared.tree();
        let mut journal = Journal::open(&prepared.journal()).unwrap();
        let journaled = place.clone();
        journal.add(change(place, "theirs", "mine")).unwrap();
        drop(journal);
        let ended = ends(&prepared.undo());
        let [End::Failed(why)] = &ended[..] else { panic!("{ended:?}") };
        let place = journaled.to_string();
        assert!(why.contains(&format!("{place} is no place that onset changes")), "{why}");
        assert_eq!(prepared.tree(), before);
    }
}

/// One file with two names stands for two settings that the kernel keeps in one place.
#[test]
fn a_place_that_the_change_of_another_one_changed_is_not_changed_again() {
    let prepared = Prepared::new();
    let governor = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    prepared.link(&governor(1), prepared.path(&governor(0)).to_str().unwrap());
    // CPU 3 has it already, and CPU 1 with CPU 0.
    assert_eq!(prepared.fate("scaling_governor=performance"), changed(2));
    let undone = prepared.undo();
    assert_eq!(ends(&undone), [End::Restored, End::Restored]);
    assert_eq!(prepared.text(&governor(1)), "powersave\n");
}

#[test]
fn the_status_says_what_is_changed_and_needs_no_lock() {
    let prepared = Prepared::new();
    let see = || status(&prepared.system(), &prepared.journal()).unwrap();
    assert!(see().is_empty());
    prepared.apply(&["vm.swappiness=10"]);
    let _busy = prepared.begin();
    let seen = see();
    assert_eq!((seen.len(), seen[0].1.as_deref()), (1, Some("10")));
    assert_eq!(seen[0].0.old.as_deref(), Some("60\n"));
}

/// A thread of this process stands for one of the kernel: its line says so. The line is of the moment at which it was
/// made, so what is read back is the policy of then.
#[test]
fn an_undo_gives_a_thread_its_old_policy() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        // The thread ends with the sender, also if an assertion fails.
        let (_stop, stopped) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let link = fs::read_link("/proc/thread-self").unwrap();
            tell.send(link.file_name().unwrap().to_str().unwrap().parse::<i32>().unwrap()).unwrap();
            let _ = stopped.recv();
        });
        let pid = told.recv().unwrap();
        let prepared = Prepared::new();
        let own = || fs::read_to_string(format!("/proc/self/task/{pid}/stat")).unwrap();
        let nice = || own().rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().to_owned();
        let line = "(ksoftirqd/3) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20";
        let stat = format!("/proc/{pid}/stat");
        let show = || {
            prepared.put(&stat, &format!("{pid} {line} {} 1 0 11{} 0 0\n", nice(), " 0".repeat(19)))
        };
        show();
        let before = nice();
        fs::remove_file(prepared.path("/proc/33/stat")).unwrap();
        let Fate::Refused(why) = prepared.fate("priority.ksoftirqd=other:19") else { panic!() };
        assert!(why.contains("reads back \"other"), "{why}");
        assert_eq!(nice(), "19");
        show();
        let place = prepared.system().threads("ksoftirqd/3").remove(0);
        let text = || prepared.system().read(&place).unwrap();
        assert_eq!(text().as_deref(), Some("other:19"));
        // Whoever may not lower a nice value cannot go on.
        if rt::give(pid, rt::Policy::Other(before.parse().unwrap())).is_err() {
            return;
        }
        rt::give(pid, rt::Policy::Other(19)).unwrap();
        // The refused change, as a kill in the middle of it leaves it: not settled.
        let mut journal = Journal::open(&prepared.journal()).unwrap();
        let made = |record: &Record| match record {
            Record::Change(change) => Some(change.clone()),
            _ => None,
        };
        let mut change = journal.records().iter().find_map(made).unwrap();
        change.number += 1;
        journal.add(Record::Change(change)).unwrap();
        drop(journal);
        let undone = ends(&prepared.undo());
        assert_eq!(nice(), before);
        let [End::Failed(why)] = &undone[..] else { panic!("{undone:?}") };
        assert!(why.contains("reads back another value"), "{why}");
        show();
        assert_eq!(ends(&prepared.undo()), [End::Already]);
    });
}
