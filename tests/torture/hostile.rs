// SPDX-License-Identifier: GPL-2.0-or-later
//! Stores, hunts, experiments and finds that somebody prepared: nothing outside is written, nothing is waited for
//! without end, and no more memory is taken than a sound one needs.

use crate::kills::{MEASURE, journaled};
use crate::table;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::{Duration, Instant};
use testbench::{Finished, Lab, Started};

/// Memory that a command may take, in bytes.
const MEMORY_MAX: u64 = 512 << 20;
/// What is a hang. Five seconds on a machine at rest; tests share one.
const HANG: Duration = Duration::from_secs(60);

/// Runs a command that may take so much memory and time; what is wrong with how it ended.
pub fn ends(lab: &Lab, words: &[&str]) -> Option<String> {
    ended(lab, words).err()
}

/// The same; how it ended, if nothing is wrong with that. The command takes the lab's QEMU, if there is one: a real one
/// needs more memory.
fn ended(lab: &Lab, words: &[&str]) -> Result<Finished, String> {
    let mut command = lab.command(words);
    command.env("PATH", lab.with_bin());
    // SAFETY: one async-signal-safe call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: MEMORY_MAX, rlim_max: MEMORY_MAX };
            match libc::setrlimit(libc::RLIMIT_DATA, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let begun = Instant::now();
    let started = Started::of(&mut command);
    while testbench::is_alive(started.id()) {
        if begun.elapsed() > HANG {
            return Err(format!("{words:?} hangs"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let finished = started.wait();
    match finished.status {
        Some(101) | None => Err(format!("{words:?}: {:?} {}", finished.status, finished.stderr)),
        _ if finished.stdout.contains('\u{1b}') || finished.stderr.contains('\u{1b}') => {
            Err(format!("{words:?} hands an escape to the terminal"))
        }
        _ => Ok(finished),
    }
}

/// What is wrong with how a list of the store ended: it has this run, be it damaged, or names the place that is wrong.
fn lists(lab: &Lab, run: &str) -> Option<String> {
    let listed = match ended(lab, &["list"]) {
        Ok(listed) => listed,
        Err(wrong) => return Some(wrong),
    };
    let is_whole = listed.status == Some(0) && listed.stdout.contains(run);
    let place = lab.store().to_string_lossy().into_owned();
    let is_named = listed.status == Some(69) && listed.stderr.contains(&place);
    let said = || format!("list: {:?} {}{}", listed.status, listed.stdout, listed.stderr);
    (!is_whole && !is_named).then(said)
}

/// What is wrong with how a command ended that has to refuse this file, after it has looked at it.
fn refuses(lab: &Lab, words: &[&str]) -> Option<String> {
    let Finished { status, stderr, .. } = match ended(lab, words) {
        Ok(finished) => finished,
        Err(wrong) => return Some(wrong),
    };
    // A command that finds fault with QEMU has not looked at the file.
    let is_refused = matches!(status, Some(2 | 69)) && !stderr.contains("QEMU");
    (!is_refused).then(|| format!("{words:?} does not refuse it: {status:?} {stderr}"))
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("coreutils").success());
}

/// What it is, and how it is put to a path.
type Place<'a> = (&'static str, Box<dyn Fn(&Path) + 'a>);

/// What somebody may have put in a file's place.
fn places(victim: &Path) -> Vec<Place<'_>> {
    vec![
        ("a link", Box::new(move |path| symlink(victim, path).expect("a free name"))),
        ("a second name", Box::new(move |path| fs::hard_link(victim, path).expect("a free name"))),
        ("a pipe", Box::new(pipe)),
        ("/dev/zero", Box::new(|path| symlink("/dev/zero", path).expect("a free name"))),
        ("a directory", Box::new(|path| fs::create_dir(path).expect("a free name"))),
        (
            "a gigabyte",
            Box::new(|path| {
                let file = fs::File::create(path).expect("a free name");
                file.set_len(1 << 30).expect("a sparse file");
            }),
        ),
    ]
}

/// Makes a store with a run that was killed and one that ended.
fn store(lab: &Lab) -> (String, String) {
    lab.onset(&MEASURE);
    let whole = lab.bundles()[0].clone();
    let started = Started::of(&mut lab.command(&MEASURE));
    testbench::wait_for("answers", || {
        journaled(&lab.store()).first().filter(|(_, n)| *n > 20).map(drop)
    });
    started.signal(libc::SIGKILL);
    started.wait();
    let partial = lab.bundles().into_iter().find(|name| name.starts_with(".partial-"));
    (whole, partial.expect("it was killed"))
}

#[test]
fn a_hostile_store_leads_nowhere() {
    let lab = Lab::bare();
    let (whole, partial) = store(&lab);
    let template = lab.path().join("template");
    fs::rename(lab.store(), &template).expect("writable");
    let outside = lab.path().join("outside");
    fs::create_dir(&outside).expect("writable");
    let victim = outside.join("victim");
    let files = [
        format!("{partial}/samples.parquet"),
        format!("{partial}/journal"),
        format!("{partial}/begun.json"),
        partial.clone(),
        format!("{whole}/manifest.json"),
        format!("{whole}/samples.parquet"),
        format!("{whole}/histograms"),
        whole.clone(),
        ".lock".into(),
        "index.sqlite".into(),
        "index.sqlite-journal".into(),
    ];
    let (mut tried, mut unclean) = (0, Vec::new());
    for file in &files {
        fs::write(&victim, "precious\n").expect("writable");
        for (what, put) in places(&victim) {
            let _ = fs::remove_dir_all(lab.store());
            let copied =
                std::process::Command::new("cp").arg("-r").arg(&template).arg(lab.store()).status();
            assert!(copied.expect("coreutils").success());
            let path = lab.store().join(file);
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            put(&path);
            tried += 1;
            let mut wrong: Vec<String> = lists(&lab, &whole).into_iter().collect();
            let show = ["show", &whole, "--verify"];
            wrong.extend([&show[..], &MEASURE].iter().filter_map(|words| ends(&lab, words)));
            if fs::read_to_string(&victim).ok().as_deref() != Some("precious\n")
                || Lab::names(&outside).len() != 1
            {
                wrong.push("something outside was written".into());
            }
            unclean.extend(wrong.into_iter().map(|w| format!("{what} as {file}: {w}")));
        }
    }
    table("hostile stores", tried, &unclean);
}

#[test]
fn a_hostile_experiment_or_find_is_refused_in_time() {
    let lab = Lab::bare();
    lab.qemu("10.0.2");
    let victim = lab.write("victim", "precious\n");
    let head = "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12\"]\nloads = [\"idle\"]\n";
    let trigger = |text: &str| format!("{head}[trigger]\nperiod = \"1ms\"\n{text}\n");
    let find = |times: &str, warm_up: &str, more: &str| {
        format!(
            "{{\"schema\":2,\"kernel\":\"6.12\",\"release\":\"\\u001b[2J\",\"parameters\":[],\"load\":\"idle\",\"warm_up_ns\":{warm_up},\
             \"memory_mib\":256,\"icount_shift\":0,\"driver\":null,\"modules\":[],\"programs\":[],\"files\":[],\"snapshot\":\"00\",\
             \"qemu\":\"\\u001b]0;x\\u0007\",\"plugin\":\"0\",\"times_ns\":{times},\"high_ns\":1,\"grace_ns\":1,\"responders\":[\"task\"],\
             \"answer\":{{\"responder\":\"task\",\"trigger\":1,\"latency_ns\":7,\"insns\":7}}{more}}}"
        )
    };
    let texts = [
        ("deep", "x = ".to_owned() + &"[".repeat(200_000)),
        ("deep tables", "[".to_owned() + &"a.".repeat(100_000) + "a]"),
        ("many triggers", trigger("count = 1000000000000")),
        ("late", trigger("count = 5\nphase = \"18446744073709551615ns\"")),
        ("long warm-up", format!("warm_up = \"18446744073709551615ns\"\n{}", trigger("count = 5"))),
        ("escapes", trigger("count = 5").replace("\"t\"", "\"\\u001b[2J\"")),
        ("raw escapes", trigger("count = 5").replace("\"t\"", "\"\u{1b}[2J\"")),
        ("a foreign path", trigger("count = 5").replace("6.12", "../../etc")),
        (
            "many flavours",
            trigger("count = 5")
                .replace("[\"6.12\"]", &format!("[{}]", "\"6.12\",".repeat(100_000))),
        ),
        ("no text", "\u{0}".repeat(1 << 20)),
        ("late times", find("[5,18446744073709551615]", "1", "")),
        ("a late beginning", find("[5,9]", "18446744073709551615", "")),
        ("escapes of a find", find("[5,9]", "1", "")),
        ("a deep find", find(&"[".repeat(200_000), "1", "")),
        ("a twice named key", find("[5,9]", "1", ",\"qemu\":\"x\"")),
        ("many times", find(&format!("[{}9]", "5,".repeat(4 << 20)), "1", "")),
    ];
    let mut files: Vec<(String, String)> = texts
        .into_iter()
        .map(|(what, text)| {
            (
                what.to_owned(),
                lab.write(&format!("{what}.file"), &text).to_string_lossy().into_owned(),
            )
        })
        .collect();
    for (what, put) in places(&victim) {
        let path = lab.path().join(format!("{what}.file").replace('/', "-"));
        put(&path);
        files.push((what.to_owned(), path.to_string_lossy().into_owned()));
    }
    let (mut tried, mut unclean) = (0, Vec::new());
    for (what, file) in &files {
        for words in [&["run", file][..], &["windows", file], &["replay", file]] {
            tried += 1;
            unclean.extend(refuses(&lab, words).map(|wrong| format!("{what}: {wrong}")));
        }
    }
    if fs::read_to_string(&victim).ok().as_deref() != Some("precious\n") {
        unclean.push("the victim was written".into());
    }
    table("hostile experiments and finds", tried, &unclean);
}
