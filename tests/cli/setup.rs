// SPDX-License-Identifier: GPL-2.0-or-later
//! Which QEMU `setup/debian.sh` takes: where there is none, the oldest that the plugin gets on with; a newer one that
//! is there stays. The machine's package tools are replaced by scripts; nothing is installed.

use std::path::Path;
use std::process::Command;
use testbench::{Finished, Lab};

/// Runs the stage that installs QEMU where `installed` is (empty: none) and apt offers `offered`. What apt-get was
/// asked to do stands in its output.
fn setup(installed: &str, offered: &[&str]) -> Finished {
    let lab = Lab::bare();
    let lines: Vec<String> =
        offered.iter().map(|v| format!("qemu-system-x86 | {v} | mirror main")).collect();
    lab.script("apt-cache", &format!("cat <<'END'\n{}\nEND", lines.join("\n")));
    let backports = ". /etc/os-release; echo \"$VERSION_CODENAME-backports x main mirror\"";
    lab.script(
        "apt-get",
        &format!("[ \"$1\" = indextargets ] && {{ {backports}; }}; echo \"apt-get $*\" >&2"),
    );
    lab.script("dpkg", "[ \"$1\" = --compare-versions ] && exec /usr/bin/dpkg \"$@\"; echo amd64");
    let version = if installed.is_empty() { "exit 1" } else { &format!("echo '{installed}'") };
    // Every other package is installed.
    lab.script(
        "dpkg-query",
        &format!("case $* in *Version*) {version} ;; *Status*qemu*) {version} >/dev/null; echo installed ;; *) echo installed ;; esac"),
    );
    lab.script("id", "echo 0");
    // The stamp of the package lists.
    lab.script("find", "echo fresh");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../setup/debian.sh");
    let mut command = Command::new("sh");
    Finished::of(command.arg(script).arg("run").env("PATH", lab.with_bin()))
}

#[test]
fn a_qemu_that_is_new_enough_is_left_as_it_is_and_one_of_another_series_is_told() {
    let newer = ["1:11.1.3+ds-1~bpo13+1", "1:10.2.1+ds-1", "1:12.0.0+ds-1"];
    for installed in ["1:10.0.2+ds-2+deb13u1"].iter().chain(&newer) {
        let finished = setup(installed, &["1:11.1.3+ds-1~bpo13+1", "1:10.0.2+ds-2"]).exits(0);
        assert!(!finished.stderr.contains("apt-get install"), "{}", finished.stderr);
        let told = format!("QEMU {installed} is installed and stays");
        assert_eq!(finished.stdout.contains(&told), newer.contains(installed), "{told}");
    }
}

#[test]
fn an_older_qemu_or_none_is_replaced_by_the_oldest_that_the_plugin_gets_on_with() {
    let offered = ["1:11.1.3+ds-1~bpo13+1", "1:10.2.1+ds-1", "1:10.0.2+ds-2", "1:7.2+dfsg-7"];
    for installed in ["", "1:7.2+dfsg-7", "1:9.2.4+ds-1"] {
        setup(installed, &offered).exits(0).says(&["qemu-system-x86=1:10.0.2+ds-2"]);
    }
}

#[test]
fn a_release_without_that_series_gives_the_newest_that_it_has_if_that_is_newer() {
    setup("", &["1:11.1.3+ds-2", "1:10.2.1+ds-1"])
        .exits(0)
        .says(&["qemu-system-x86=1:11.1.3+ds-2"]);
    let refused = setup("", &["1:7.2+dfsg-7"]).exits(1);
    refused.says(&["needs QEMU 10.0 or later", "7.2", "installed: none"]);
}

#[test]
fn rust_is_installed_where_there_is_none_and_left_alone_where_there_is_one() {
    let lab = Lab::bare();
    lab.script("dpkg", "echo amd64");
    lab.script("dpkg-query", "case $* in *-web*) exit 1 ;; *) echo installed ;; esac");
    lab.script("apt-get", "echo \"apt-get $*\" >&2");
    lab.script("id", "echo 0");
    lab.script("find", "echo fresh");
    for tool in ["node", "npm"] {
        lab.script(tool, "");
    }
    // Nothing of this machine but what the script itself calls, so that no cargo of its own is found.
    for tool in ["env", "cat", "grep"] {
        lab.script(tool, &format!("exec /usr/bin/{tool} \"$@\""));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../setup/debian.sh");
    let setup = || {
        let mut command = Command::new("/bin/sh");
        let home = lab.with_bin();
        let bin = std::env::split_paths(&home).next().expect("a directory of scripts");
        Finished::of(command.arg(&script).arg("build").env("PATH", bin).env("HOME", "/nonexistent"))
    };
    setup().exits(0).says(&["install", "rustc-web cargo-web"]);
    lab.script("cargo", "");
    let finished = setup().exits(0);
    assert!(!finished.stderr.contains("apt-get install"), "{}", finished.stderr);
}

/// The packages that `setup/debian.sh` installs, of all its stages.
fn installed_by_setup() -> Vec<String> {
    let script = include_str!("../../setup/debian.sh");
    let lists = ["BUILD", "RUST", "VIEWER", "RUN", "TEST", "FIRMWARE"];
    let of = |list: &str| {
        let line = script.lines().find_map(|l| l.strip_prefix(&format!("{list}=\"")));
        line.unwrap_or_else(|| panic!("no {list}")).trim_end_matches('"').to_owned()
    };
    let words = lists.map(of).join(" ");
    words.split(' ').chain(["npm", "qemu-system-x86"]).map(String::from).collect()
}

/// The programs that the sources start by name: onset's own, its loads' and its tests'.
fn started() -> std::collections::BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut programs = std::collections::BTreeSet::new();
    let mut left = vec![root.join("crates"), root.join("tests")];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if path.extension().is_some_and(|e| e == "sh") {
                let lines = text.lines().filter(|l| l.starts_with("# programs"));
                let words =
                    lines.filter_map(|l| l.split_once(": ")).flat_map(|(_, w)| w.split(' '));
                programs.extend(words.map(String::from));
            }
            for call in ["Command::new(\"", "tool::find(\"", "tool::run(\""] {
                let named = text.split(call).skip(1).filter_map(|rest| rest.split('"').next());
                let is_word = |w: &&str| {
                    !w.is_empty()
                        && w.bytes().all(|b| b.is_ascii_lowercase() || b"-0123456789_".contains(&b))
                };
                programs.extend(named.filter(is_word).map(String::from));
            }
        }
    }
    programs
}

/// What dpkg prints, or nothing.
fn dpkg(words: &[&str]) -> String {
    let output = Command::new("dpkg-query").args(words).output().expect("dpkg is essential");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_program_that_is_started_is_in_a_package_that_setup_installs_or_that_every_debian_has() {
    let (listed, started) = (installed_by_setup(), started());
    for expected in ["mount", "cyclictest", "strace", "bwrap", "depmod"] {
        assert!(started.contains(expected), "{expected} is not among {started:?}");
    }
    let mut checked = 0;
    for program in &started {
        let directories = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
        let owners: Vec<String> = directories
            .iter()
            .map(|directory| dpkg(&["-S", &format!("{directory}/{program}")]))
            .flat_map(|said| said.lines().map(String::from).collect::<Vec<_>>())
            // dash diverts sh.
            .filter(|line| !line.starts_with("diversion"))
            .filter_map(|line| Some(line.split([':', ',']).next()?.trim().to_owned()))
            .filter(|package| !package.is_empty())
            .collect();
        // One that no package has here is made by the tests themselves, is a link of update-alternatives, or is not
        // installed.
        let Some(package) = owners.first() else { continue };
        checked += 1;
        let is_listed = listed.contains(package);
        let every_debian = dpkg(&["-W", "-f", "${Essential} ${Priority}", package]);
        let has_it = every_debian.starts_with("yes")
            || every_debian.contains("required")
            || package == "apt"
            // A machine of a cluster has its programs, and no other machine needs them.
            || package == "slurm-client";
        assert!(
            is_listed || has_it,
            "{program} is in {package}, which setup/debian.sh does not install"
        );
    }
    assert!(checked > 15, "{checked} of {started:?}");
}
