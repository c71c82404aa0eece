// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong words, wrong experiments, missing and foreign programs: what failed, why, what to do next.

use serde_json::json;
use testbench::{Finished, Lab, experiment};

/// Runs an experiment with a QEMU that is only asked for its version.
fn run(lab: &Lab, text: &str, words: &[&str]) -> Finished {
    lab.qemu("10.0.2");
    let path = lab.experiment(text);
    let words = [&["run", &path], words].concat();
    Finished::of(lab.command(&words).env("PATH", lab.with_bin()))
}

const SOUND: (&[&str], &[&str]) = (&["6.12"], &["idle"]);

#[test]
fn help_names_every_command_and_every_exit_status() {
    let lab = Lab::bare();
    let help = lab.onset(&["--help"]).exits(0).stdout;
    let listed = crate::listed(&help);
    let known = "doctor kernels run measure hunt breed generator live respond serve list show compare \
                 report export import explain blame replay windows atlas patch bound census merge \
                 minimise tune";
    for command in known.split(' ') {
        assert!(listed.contains(&command), "{command} in {help}");
    }
    for command in listed {
        lab.onset(&[command, "--help"]).exits(0);
    }
    for status in ["0 ", "1 ", "2 ", "3 ", "69 ", "130 "] {
        assert!(help.contains(&format!("\n  {status}")), "{status:?} in {help}");
    }
}

#[test]
fn help_names_every_probe() {
    let lab = Lab::bare();
    let help = lab.onset(&["measure", "--help"]).exits(0).stdout;
    assert_eq!(crate::listed(&help), probes::PROBES.map(|probe| probe.name), "{help}");
    for probe in crate::listed(&help) {
        lab.onset(&["measure", probe, "--help"]).exits(0);
    }
}

#[test]
fn wrong_words_are_usage_errors() {
    let lab = Lab::bare();
    lab.onset(&[]).exits(2);
    lab.onset(&["measure"]).exits(2).says(&["measure"]);
    lab.onset(&["run"]).exits(2);
    lab.onset(&["run", "x.toml", "--jobs", "0"]).exits(2).says(&["--jobs"]);
    lab.onset(&["run", "x.toml", "--set", "seed"]).exits(2).says(&["KEY=VALUE"]);
    lab.onset(&["run", "missing.toml"]).exits(2).says(&["missing.toml", "No such file"]);
}

#[test]
fn an_atlas_of_what_stress_ng_does_not_have_is_answered_with_what_it_has() {
    let lab = Lab::bare();
    lab.script("stress-ng", "echo fork mmap pipe");
    let atlas = |words: &[&str], path: String| {
        Finished::of(lab.command(&[&["atlas"], words].concat()).env("PATH", path)).exits(2)
    };
    let unknown = atlas(&["--stressor", "nmap"], lab.with_bin());
    unknown.says(&["no stressor \"nmap\"", "did you mean \"mmap\"?", "fork, mmap, pipe"]);
    atlas(&["--duration", "2min"], lab.with_bin()).says(&["--duration", "from 10ms to 60s"]);
    atlas(&["--flavour", "6.12 a\"b"], lab.with_bin()).says(&["--flavour"]);
    assert_eq!(lab.bundles(), [""; 0]);
}

#[test]
fn an_atlas_without_stress_ng_says_what_to_install() {
    let lab = Lab::bare();
    let nothing = lab.path().join("nothing");
    let finished = Finished::of(lab.command(&["atlas"]).env("PATH", nothing)).exits(69);
    finished.says(&["stress-ng", "apt-get install stress-ng"]);
}

#[test]
fn a_hunt_without_a_budget_is_refused_with_some_that_would_do() {
    let lab = Lab::bare();
    let words = ["hunt", "--flavour", "6.12", "--load", "mixed", "--budget"];
    for none in ["0s", "0trials", "0min"] {
        let finished = lab.onset(&[&words[..], &[none]].concat()).exits(2);
        finished.says(&["--budget", "a hunt needs some budget", "5min, 30s or 200trials"]);
    }
    for wrong in ["200", "trials", "-1trials", "soon"] {
        let budget = format!("--budget={wrong}");
        lab.onset(&[&words[..5], &[&budget]].concat()).exits(2).says(&["5min, 30s or 200trials"]);
    }
    assert_eq!(lab.bundles(), [""; 0]);
}

#[test]
fn a_result_that_nobody_gets_is_a_failure_and_one_that_somebody_has_enough_of_is_none() {
    let lab = Lab::bare();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = lab.command(&["list"]).stdout(full).output().expect("it starts");
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write the result to stdout: No space left on device"), "{said}");

    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = lab.command(&["list"]).stdout(writer).output().expect("it starts");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn windows_of_what_an_experiment_does_not_have_are_answered_with_what_it_has() {
    let lab = Lab::bare();
    lab.qemu("10.0.2");
    let path = lab.experiment(&experiment(&["6.12 preempt=none"], &["idle"], 5, ""));
    let windows = |words: &[&str]| {
        let words = [&["windows", &path], words].concat();
        Finished::of(lab.command(&words).env("PATH", lab.with_bin())).exits(2)
    };
    windows(&["--flavour", "6.13"]).says(&["6.13", "\"6.12 preempt=none\""]);
    windows(&["--load", "mixed"]).says(&["mixed", "idle"]);
    windows(&["--load", "busy"]).says(&["unknown load", "mixed"]);
    windows(&["--kind", "irqs"]).says(&["irqs_off", "preempt_off"]);
    lab.onset(&["windows", "latest"]).exits(2);
}

/// A kernel that is nothing but its record, older than some responders.
fn fake_kernel(lab: &Lab) {
    let image = "an image";
    lab.write("cache/onset/kernels/6.1/vmlinuz", image);
    let record = json!({
        "name": "6.1", "release": "6.1.0-9-amd64", "source": "a test", "headers": null,
        "image_blake3": blake3::hash(image.as_bytes()).to_hex().as_str(),
    });
    lab.write("cache/onset/kernels/6.1/kernel.json", &record.to_string());
    testbench::write_hashes(&lab.cache().join("kernels/6.1"));
}

#[test]
fn a_responder_that_the_kernel_lacks_is_told_before_anything_is_followed_or_hunted() {
    let lab = Lab::bare();
    lab.qemu("10.0.2");
    fake_kernel(&lab);
    let command = |words: &[&str]| Finished::of(lab.command(words).env("PATH", lab.with_bin()));
    let told = "! Linux 6.1.0-9-amd64 does not have the responder bh_work: a later kernel introduced this mechanism; before you compare with a kernel that has this responder, remove it";
    let path = lab.experiment(&experiment(&["6.1"], &["idle", "mixed"], 5, ""));
    let hunt = ["hunt", &path, "--flavour", "6.1", "--budget", "1trials", "--load", "idle"];
    for words in [&["windows", &path][..], &["bound", &path], &hunt] {
        // There is nothing to boot.
        let finished = command(words).exits(69);
        assert_eq!(finished.stderr.matches(told).count(), 1, "{words:?}: {}", finished.stderr);
    }
    let without = "responders = [\"hardirq\", \"work\"]";
    let path = lab.experiment(&experiment(&["6.1"], &["idle"], 5, without));
    for words in [["windows", &path], ["bound", &path]] {
        let finished = command(&words).exits(69);
        assert!(!finished.stderr.contains("bh_work"), "{}", finished.stderr);
    }
    let asked = command(&[&hunt[..], &["--responder", "bh_work"]].concat()).exits(2);
    asked.says(&["6.1 has no responder bh_work here", "work_highpri", "docs/experiments.md"]);
}

#[test]
fn an_unknown_key_is_shown_in_its_place_with_the_nearest() {
    let lab = Lab::bare();
    let text = experiment(SOUND.0, SOUND.1, 5, "gest.memory = \"256MiB\"");
    let line = text.lines().position(|l| l.starts_with("gest")).expect("written") + 1;
    run(&lab, &text, &[]).exits(2).says(&[&format!(".toml:{line}"), "gest", "guest"]);
    let sound = experiment(SOUND.0, SOUND.1, 5, "");
    run(&lab, &sound, &["--set", "trigger.cont=5"]).exits(2).says(&["trigger.cont", "count"]);
}

#[test]
fn unknown_flavour_load_and_responder_are_answered_with_those_that_exist() {
    let lab = Lab::bare();
    let text = experiment(SOUND.0, &["busy"], 5, "");
    run(&lab, &text, &[]).exits(2).says(&["unknown load \"busy\"", "idle", "mixed", "compile"]);
    let text = experiment(SOUND.0, SOUND.1, 5, "").replacen(
        "loads",
        "responders = [\"softirq\"]\nloads",
        1,
    );
    run(&lab, &text, &[]).exits(2).says(&["unknown responder \"softirq\"", "tasklet", "bh_work"]);
    let text = experiment(&[""], SOUND.1, 5, "");
    run(&lab, &text, &[]).exits(2).says(&["flavours"]);
    let text = experiment(SOUND.0, SOUND.1, 5, "limits.\"6.13\".task.max = \"1ms\"");
    run(&lab, &text, &[]).exits(2).says(&["6.13", "6.12"]);
}

#[test]
fn an_unknown_kernel_is_answered_with_those_in_the_cache_and_how_to_get_it() {
    let lab = Lab::bare();
    let text = experiment(&["9.9 preempt=none"], SOUND.1, 5, "");
    let finished = run(&lab, &text, &["--json"]).exits(2);
    let finished = finished.says(&["\"9.9\"", "is empty", "onset kernels fetch 9.9"]);
    assert_eq!(finished.stdout, "");
    lab.write("cache/onset/kernels/7.7/kernel.json", "{}");
    run(&lab, &text, &[]).exits(2).says(&["there are 7.7"]);
    assert!(lab.bundles().is_empty());
}

#[test]
fn a_missing_qemu_is_named_with_its_package() {
    let lab = Lab::bare();
    let path = lab.experiment(&experiment(SOUND.0, SOUND.1, 5, ""));
    std::fs::create_dir(lab.path().join("bin")).expect("ours");
    let mut command = lab.command(&["run", &path]);
    let finished = Finished::of(command.env("PATH", lab.path().join("bin"))).exits(69);
    finished.says(&["qemu-system-x86_64", "apt-get install qemu-system-x86"]);
    let doctor =
        Finished::of(lab.command(&["doctor"]).env("PATH", lab.path().join("bin"))).exits(69);
    assert!(doctor.stdout.contains("qemu-system-x86"), "{}", doctor.stdout);
}

#[test]
fn a_qemu_that_the_plugin_does_not_get_on_with_is_refused_with_its_version_and_those_that_were_tried()
 {
    let lab = Lab::bare();
    let path = lab.experiment(&experiment(SOUND.0, SOUND.1, 5, ""));
    for version in ["7.2.22 (Debian 1:7.2+dfsg-7)", "10.1.0", "99.0.0"] {
        lab.script("qemu-system-x86_64", &format!("echo 'QEMU emulator version {version}'"));
        let mut command = lab.command(&["run", &path]);
        Finished::of(command.env("PATH", lab.with_bin())).exits(69).says(&[version, "10.0"]);
        let mut doctor = lab.command(&["doctor", "--json"]);
        let doctor = Finished::of(doctor.env("PATH", lab.with_bin())).exits(69).json();
        assert_eq!(doctor["rig"], false);
        let remedy = doctor["checks"][0]["remedy"].as_str().expect("a remedy");
        assert!(remedy.contains("make prepare-run"), "{remedy}");
    }
}

#[test]
fn a_broken_package_and_a_foreign_image_are_refused_and_leave_nothing() {
    let lab = Lab::bare();
    let deb = lab.write("linux-image-9.9.deb", "!<arch>\ndebian-binary   0");
    let deb = deb.to_string_lossy();
    lab.onset(&["kernels", "add-deb", &deb]).exits(69).says(&["linux-image-9.9.deb", "damaged"]);
    lab.onset(&["kernels", "add-deb", "none.deb"]).exits(69).says(&["none.deb", "No such file"]);

    std::fs::create_dir_all(lab.path().join("lib/modules/9.9/kernel")).expect("ours");
    lab.write("elf", "\x7fELF and no bzImage");
    let words =
        ["kernels", "add", "--name", "mine", "--image", "elf", "--modules", "lib/modules/9.9"];
    lab.onset(&words).exits(69).says(&["mine", "not a bzImage", "vmlinuz"]);
    let listed = lab.onset(&["kernels", "list", "--json"]).exits(0).json();
    assert_eq!(listed["kernels"], serde_json::Value::Array(Vec::new()));
    assert_eq!(Lab::names(&lab.cache().join("kernels")), [""; 0]);
}

/// Words that add a kernel which a user might have built: the smallest image that passes, and no modules.
fn adding<'a>(lab: &Lab, name: &'a str) -> Vec<&'a str> {
    std::fs::create_dir_all(lab.path().join("lib/modules/9.9/kernel")).expect("ours");
    let mut image = vec![b'\0'; 5 * 512];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    lab.write("bzImage", std::str::from_utf8(&image).expect("ASCII"));
    vec!["kernels", "add", "--name", name, "--image", "bzImage", "--modules", "lib/modules/9.9"]
}

#[test]
fn a_kernels_name_that_leads_out_of_the_cache_is_wrong_usage_and_removes_nothing() {
    let lab = Lab::bare();
    let precious = lab.write("cache/precious/file", "text");
    for name in ["../../precious", "..", "a/b", ""] {
        lab.onset(&adding(&lab, name)).exits(2).says(&["starts with a letter or digit"]);
        let words = ["kernels", "add-deb", "none.deb", "--replace", "--name", name];
        lab.onset(&words).exits(2).says(&["starts with a letter or digit"]);
    }
    assert!(precious.is_file());
    assert_eq!(Lab::names(&lab.cache().join("kernels")), [""; 0]);
}

#[test]
fn a_kernel_that_is_there_is_replaced_only_when_told() {
    let lab = Lab::bare();
    let words = adding(&lab, "mine");
    // An ordinary user's PATH: without depmod.
    let user = |words: &[&str]| Finished::of(lab.command(words).env("PATH", "/usr/bin:/bin"));
    user(&words).exits(0);
    user(&words).exits(2).says(&["\"mine\" already", "--replace"]);
    user(&[&words[..], &["--replace"]].concat()).exits(0);
    let words = ["kernels", "add-deb", "none.deb", "--name", "mine"];
    user(&words).exits(2).says(&["already", "--replace"]);
    assert_eq!(Lab::names(&lab.cache().join("kernels")), ["mine"]);
}

#[test]
fn without_a_home_the_cache_has_no_place_and_that_is_said() {
    let lab = Lab::bare();
    let mut command = lab.command(&["kernels", "list"]);
    let finished = Finished::of(command.env_remove("XDG_CACHE_HOME").env_remove("HOME")).exits(69);
    let finished = finished.says(&["XDG_CACHE_HOME", "HOME"]);
    assert!(!finished.stderr.contains("QEMU"), "{}", finished.stderr);
}

#[test]
fn commands_that_read_do_not_make_a_store() {
    let lab = Lab::bare();
    let listed = lab.onset(&["list"]).exits(0);
    assert!(listed.stdout.contains("no runs in"), "{}", listed.stdout);
    assert!(listed.stdout.contains("onset run"), "{}", listed.stdout);
    let listed = lab.onset(&["list", "--json"]).exits(0).json();
    assert_eq!(listed["runs"], serde_json::Value::Array(Vec::new()));
    for words in [&["show", "latest"][..], &["compare", "a", "b"], &["report", "latest"]] {
        lab.onset(words).exits(2).says(&["no runs in", "onset run"]);
    }
    assert!(!lab.store().exists());
}

#[test]
fn a_slip_of_the_hand_is_answered_with_what_was_meant() {
    let lab = Lab::bare();
    lab.write("lab/one.toml", "");
    lab.write("lab/two.toml", "");
    lab.write("lab/notes.txt", "");
    let experiment = lab.experiment("title = \"t\"\ntarget = \"lokal\"\n");
    for (words, says) in [
        (&["rnu"][..], &["'run'"][..]),
        (&["mesure", "periodic"], &["'measure'"]),
        (&["run", "lab/"], &["is a directory", "one.toml, two.toml"]),
        (&["run", &experiment, "--seed", "abc"], &["a whole number from 0", "abc"]),
        (&["explain", "latest", "--worst", "0"], &["a whole number from 1 up"]),
        (&["show", "./lab"], &["neither a bundle nor the directory of a hunt", "--store ./lab"]),
    ] {
        let finished = lab.onset(words).exits(2).says(says);
        assert!(!finished.stderr.contains("notes.txt"), "{}", finished.stderr);
    }
    // A mistake in an experiment has a heading of its own.
    let told = lab.onset(&["run", &experiment]).exits(2).stderr;
    assert!(told.starts_with("error: ") && told.contains("did you mean \"local\"?"), "{told}");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let lab = Lab::bare();
    for output in ["nowhere/report.html", "."] {
        let words =
            ["measure", "periodic", "--count", "10", "--policy", "other", "--report", output];
        lab.onset(&words).exits(2).says(&["choose another file"]);
    }
    assert_eq!(lab.bundles(), [""; 0]);
}
