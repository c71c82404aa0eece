// SPDX-License-Identifier: GPL-2.0-or-later
//! What `make install` puts where, and that the installed command finds its parts.

use std::path::Path;
use std::process::Command;
use testbench::{Finished, Lab};

#[test]
fn an_installed_command_finds_its_parts_and_its_documentation_is_there() {
    let lab = Lab::bare();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = root.join("target/release/onset").canonicalize().ok();
    if built != Some(testbench::onset()) {
        return testbench::skip("make install installs target/release/onset, and ONSET is another");
    }
    let to = lab.path().join("to");
    let mut make = Command::new("make");
    make.arg("-C").arg(&root).args(["install", "PREFIX=/opt/onset"]);
    make.arg(format!("DESTDIR={}", to.display()));
    // As with sudo, which has neither cargo nor npm in its PATH.
    make.env("PATH", "/usr/bin:/bin").arg("CARGO=false");
    Finished::of(&mut make).exits(0);
    let prefix = to.join("opt/onset");
    for file in [
        "bin/onset",
        "lib/onset/onset-agent",
        "lib/onset/libonset_plugin.so",
        "lib/onset/report.html",
        "share/man/man1/onset.1",
        "share/man/man1/onset-run.1",
        "share/bash-completion/completions/onset",
        "share/zsh/site-functions/_onset",
        "share/fish/vendor_completions.d/onset.fish",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    let mut doctor = Command::new(prefix.join("bin/onset"));
    doctor.args(["doctor", "--json"]).env("XDG_CACHE_HOME", lab.path().join("cache"));
    let doctor = Finished::of(&mut doctor).json();
    let checks = doctor["checks"].as_array().expect("checks");
    let parts = checks.iter().find(|c| c["what"] == "plugin and agent").expect("a check");
    assert_eq!(parts["state"], "good");
    let lib = prefix.join("lib/onset").canonicalize().expect("installed");
    assert_eq!(parts["found"], lib.to_string_lossy().as_ref());
}

#[test]
fn the_guest_and_the_plugin_name_no_directory_of_the_machine_that_built_them() {
    let lib = testbench::onset().with_file_name("").join("../lib/onset");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("it is here");
    let cargo =
        std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|h| h + "/.cargo"));
    let named = [root.display().to_string(), cargo.expect("tests have a home")];
    for part in ["onset-agent", "libonset_plugin.so"] {
        let bytes = std::fs::read(lib.join(part)).expect("make build makes it");
        for name in &named {
            let has = bytes.windows(name.len()).any(|window| window == name.as_bytes());
            assert!(!has, "{part} has {name} in it: built elsewhere it is another");
        }
        let kept = b"/cargo/registry";
        assert!(bytes.windows(kept.len()).any(|window| window == kept), "{part} names its sources");
    }
}

#[test]
fn what_is_not_built_is_not_installed_and_says_how_to_build_it() {
    let lab = Lab::bare();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut make = Command::new("make");
    make.arg("-C").arg(&root).args(["install", "ONSET=target/release/no-such-command"]);
    make.arg(format!("DESTDIR={}", lab.path().join("to").display()));
    Finished::of(&mut make).exits(2).says(&["no-such-command", "make build"]);
    assert!(!lab.path().join("to").exists());
}
