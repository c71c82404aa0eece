// SPDX-License-Identifier: GPL-2.0-or-later
//! SIGKILL at random moments of `tune apply` and `tune undo`, below a directory of prepared files: the next undo gives
//! back every byte. The process that is killed is this test itself, started anew.

use crate::{Chance, table, times};
use machine::{Cpus, End, Plan, System, Tuning};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Says below which directory the started process applies and undoes.
const BELOW: &str = "ONSET_TUNE_BELOW";
/// A value that neither the machine has nor the plan writes.
const FOREIGN: &str = "77\n";

/// The files that the plan changes, with their contents.
const CHANGED: [(&str, &str); 12] = [
    ("proc/sys/vm/stat_interval", "1\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/dirty_ratio", "20\n"),
    ("proc/sys/kernel/timer_migration", "1\n"),
    ("proc/sys/kernel/printk", "4\t4\t1\t7\n"),
    ("sys/kernel/rcu_normal", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n"),
    ("proc/irq/default_smp_affinity", "3\n"),
    ("proc/irq/1/smp_affinity_list", "0-1\n"),
    ("proc/irq/24/smp_affinity_list", "1\n"),
    ("proc/sys/kernel/watchdog_cpumask", "0-1\n"),
];
/// What else of the machine is read.
const READ: [(&str, &str); 10] = [
    ("etc/machine-id", "4d1c2b7e0f6a4a6f9b0e1c2d3e4f5a6b\n"),
    ("proc/sys/kernel/random/boot_id", "8f14e45f-ceea-467f-a0e6-2ac1d8e5b3c1\n"),
    ("proc/sys/kernel/osrelease", "7.3.0-amd64\n"),
    ("proc/cmdline", "ro quiet\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("etc/grub.d/10_linux", "#!/bin/sh\necho \"menuentry 'onset GNU/Linux' {}\"\n"),
    ("etc/default/grub.d/other.cfg", "# somebody else's\n"),
    ("usr/sbin/update-grub", UPDATE_GRUB),
    ("usr/sbin/grub-reboot", "#!/bin/sh\n"),
    ("boot/grub/grub.cfg", MENU),
];
const MENU: &str = "menuentry 'Debian GNU/Linux' {}\n";
/// Makes the menu of what is there, by one rename.
const UPDATE_GRUB: &str = "#!/bin/sh
cd \"$(dirname \"$0\")/../..\" || exit 1
echo \"menuentry 'Debian GNU/Linux' {}\" > boot/grub/new
[ -e etc/grub.d/42_onset ] && echo \"menuentry 'onset GNU/Linux' {}\" >> boot/grub/new
mv boot/grub/new boot/grub/grub.cfg
";
const KNOBS: [&str; 11] = [
    "vm.stat_interval=120",
    "vm.swappiness=10",
    "vm.dirty_ratio=5",
    "kernel.timer_migration=0",
    "kernel.printk=3 4 1 7",
    "rcu_normal=1",
    "scaling_governor=performance",
    "irq.default_smp_affinity=1",
    "irq.smp_affinity=0",
    "kernel.watchdog_cpumask=0",
    "threadirqs",
];

fn prepare(root: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for (path, text) in CHANGED.iter().chain(&READ) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
        fs::write(&path, text).expect("writable");
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
    }
}

/// Every file below the root, with its bytes. The menu, which GRUB's own program makes, is among them.
fn tree(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        match entry.path() {
            path if path.is_dir() => tree(&path, files),
            path => drop(files.insert(path.clone(), fs::read(&path).expect("a file"))),
        }
    }
}

fn bytes(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    tree(root, &mut files);
    files
}

fn begin(at: &Path) -> Tuning {
    let system = System::below(at.join("root"));
    Tuning::begin(system, &at.join("journal")).unwrap_or_else(|e| panic!("{e}"))
}

fn apply(at: &Path, knobs: &[&str]) {
    let cpus = Cpus { measured: vec![1], housekeeping: vec![0] };
    let knobs: Vec<String> = knobs.iter().map(|knob| knob.to_string()).collect();
    let plan = Plan::default().with(&knobs, &cpus).expect("a plan");
    begin(at).apply(&plan, &cpus).expect("a plan that contradicts nothing");
}

/// The process that is killed: applies and undoes until then. Without a directory it is a test of its own.
#[test]
fn what_is_applied_again_and_again_is_undone_to_the_byte() {
    if let Some(at) = std::env::var_os(BELOW) {
        let at = PathBuf::from(at);
        loop {
            apply(&at, &KNOBS[..6]);
            apply(&at, &KNOBS[4..]);
            begin(&at).undo().expect("a journal");
        }
    }
    let at = tempfile::tempdir().expect("a directory");
    prepare(&at.path().join("root"));
    let before = bytes(&at.path().join("root"));
    apply(at.path(), &KNOBS);
    let changed = bytes(&at.path().join("root"));
    let differ = CHANGED.iter().filter(|(path, _)| {
        let path = at.path().join("root").join(path);
        before[&path] != changed[&path]
    });
    assert_eq!(differ.count(), CHANGED.len());
    assert!(at.path().join("root/etc/grub.d/42_onset").exists());
    begin(at.path()).undo().expect("a journal");
    assert_eq!(bytes(&at.path().join("root")), before);
}

/// Starts the process, and kills it after this time.
fn kill_after(at: &Path, time: Duration) {
    let mut process = Command::new(std::env::current_exe().expect("this test"));
    let test = "tunes::what_is_applied_again_and_again_is_undone_to_the_byte";
    process.args(["--exact", test, "--test-threads", "1"]).env(BELOW, at);
    process.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = process.spawn().expect("this test starts");
    std::thread::sleep(time);
    child.kill().expect("our child");
    child.wait().expect("our child");
    // A shell that it had started goes on, and ends by itself.
    testbench::wait_for("its children's end", || testbench::users_of(at).is_empty().then_some(()));
}

/// What is wrong after the undo, and how many changes it found. Somebody else may have given a file the foreign value.
fn undone(
    at: &Path,
    before: &BTreeMap<PathBuf, Vec<u8>>,
    foreign: Option<&Path>,
) -> (Vec<String>, usize) {
    let mut wrong = Vec::new();
    let done = match begin(at).undo() {
        Ok(done) => done,
        Err(e) => return (vec![e.to_string()], 0),
    };
    let mut after = bytes(&at.join("root"));
    if let Some(path) = foreign {
        let is_said =
            done.ended.iter().any(|ended| matches!(&ended.end, End::Left(now) if now == "77"));
        let was_changed = done.ended.iter().any(|e| {
            at.join("root").join(e.change.place.to_string().trim_start_matches('/')) == path
        });
        if was_changed && !is_said {
            wrong.push(format!(
                "{} was changed by somebody else, and nobody says so",
                path.display()
            ));
        }
        if after.get(path).map(Vec::as_slice) != Some(FOREIGN.as_bytes()) {
            wrong.push(format!("{} has lost the value of somebody else", path.display()));
        }
        after.insert(path.to_owned(), before[path].clone());
        fs::write(path, &before[path]).expect("writable");
    }
    let differ = before.iter().filter(|(path, text)| after.get(*path) != Some(*text));
    wrong.extend(differ.map(|(path, _)| format!("{} is not as it was", path.display())));
    let more = after.keys().filter(|path| !before.contains_key(*path));
    wrong.extend(more.map(|path| format!("{} is left over", path.display())));
    if !done.is_whole() || at.join("journal/journal").exists() {
        wrong.push(format!("the undo is not whole: {done:?}"));
    }
    (wrong, done.ended.len())
}

#[test]
fn a_tune_that_is_killed_is_undone_to_the_byte() {
    let what = "SIGKILL of tune apply and undo";
    let (mut chance, tried) = (Chance::new(what), times(300, 10_000));
    let (mut unclean, mut met, mut others) = (Vec::new(), 0, 0);
    let at = tempfile::tempdir().expect("a directory");
    let root = at.path().join("root");
    prepare(&root);
    let before = bytes(&root);
    let mut killed = 0;
    while killed < tried {
        // The next process goes on with what the one before left, which is killed in its undo, too.
        for _ in 0..=chance.below(2) {
            kill_after(at.path(), Duration::from_micros(2_000 + chance.below(40_000)));
            killed += 1;
        }
        let foreign = (chance.below(4) == 0).then(|| root.join(chance.of(&CHANGED).0));
        if let Some(path) = &foreign {
            fs::write(path, FOREIGN).expect("writable");
            others += 1;
        }
        let (wrong, found) = undone(at.path(), &before, foreign.as_deref());
        met += u64::from(found > 0);
        if !wrong.is_empty() {
            unclean.push(format!("after {killed} kills: {}", wrong.join("; ")));
        }
    }
    table(what, killed, &unclean);
    // Else nothing could have been left to undo.
    assert!(met > 0, "no kill of {killed} came while there were changes");
    testbench::figure("  undos that found changes", killed, met);
    testbench::figure("  undos after somebody else had changed a file", killed, others);
}
