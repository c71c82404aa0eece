// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset kernels` with archives that have nothing, packages that do not fit, and names that are not there. What it
//! fetches from a real archive is fetched by `tests/run.sh` before any test.

use std::fs;
use std::process::Command;
use testbench::{Finished, Lab};

/// The command on a machine whose apt takes packages from these sources alone, and has never got their lists.
fn with_sources(lab: &Lab, sources: &str, words: &[&str]) -> Finished {
    let list = lab.write("sources.list", sources);
    let lists = lab.path().join("lists");
    fs::create_dir_all(lists.join("partial")).expect("writable");
    let settings = format!(
        "Dir::Etc::SourceList \"{}\";\nDir::Etc::SourceParts \"/dev/null\";\nDir::State::Lists \"{}\";\nDir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\n",
        list.display(),
        lists.display()
    );
    let settings = lab.write("apt.conf", &settings);
    Finished::of(lab.command(words).env("APT_CONFIG", settings))
}

fn left_in_cache(lab: &Lab) -> Vec<String> {
    let names = Lab::names(&lab.cache().join("kernels")).into_iter();
    names.filter(|name| name.starts_with(".draft") || !name.starts_with('.')).collect()
}

#[test]
fn a_machine_without_a_mirror_of_debian_is_told_of_packages_from_elsewhere() {
    let lab = Lab::bare();
    let other = "deb [trusted=yes] file:/nonexistent/other noble main\n";
    let said = with_sources(&lab, other, &["kernels", "fetch", "newest"]).exits(69).stderr;
    assert!(said.contains("the machine uses no mirror of Debian"), "{said}");
    assert!(said.contains("onset kernels add-deb"), "{said}");
    assert!(left_in_cache(&lab).is_empty());
}

#[test]
fn a_mirror_without_any_suite_that_has_kernels_is_named_and_nothing_half_made_stays() {
    let lab = Lab::bare();
    let mirror = lab.path().join("mirror");
    fs::create_dir(&mirror).expect("writable");
    let at = mirror.display();
    let sources = format!("deb file:{at} trixie main\ndeb file:{at} trixie-updates main\n");
    for words in [&["kernels", "list", "--available"][..], &["kernels", "fetch", "7.3"]] {
        let said = with_sources(&lab, &sources, words).exits(69).stderr;
        assert!(said.contains("onset cannot get the package lists"), "{said}");
        assert!(said.contains("apt-get update") && said.contains(&at.to_string()), "{said}");
        assert!(left_in_cache(&lab).is_empty());
    }
}

/// A package with these files, for this architecture.
fn package(lab: &Lab, name: &str, architecture: &str, files: &[&str]) -> String {
    let root = format!("{name}-root");
    for file in files {
        lab.write(&format!("{root}/{file}"), "x");
    }
    let control = format!(
        "Package: {name}\nVersion: 1\nArchitecture: {architecture}\nMaintainer: nobody <nobody@example.org>\nDescription: a test\n"
    );
    lab.write(&format!("{root}/DEBIAN/control"), &control);
    let deb = lab.path().join(format!("{name}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(lab.path().join(root)).arg(&deb);
    Finished::of(&mut build).exits(0);
    deb.display().to_string()
}

#[test]
fn packages_that_make_no_kernel_are_refused_with_what_to_give() {
    let lab = Lab::bare();
    let release = "7.3.4-amd64";
    let image = format!("usr/lib/modules/{release}/vmlinuz");
    let module = format!("usr/lib/modules/{release}/kernel/a.ko");
    let foreign = package(&lab, "foreign", "arm64", &[&image, &module]);
    let image_alone = package(&lab, "image", "amd64", &[&image]);
    let modules_alone = package(&lab, "modules", "amd64", &[&module]);
    for (debs, words) in [
        (&[&foreign][..], ["arm64", "amd64"]),
        (&[&image_alone], [release, "linux-modules-*"]),
        (&[&modules_alone], ["no kernel image", "linux-binary-*"]),
        // Whole, but for what the image has in it.
        (&[&image_alone, &modules_alone], ["bzImage", "7.3"]),
    ] {
        let debs: Vec<&str> = debs.iter().map(|deb| deb.as_str()).collect();
        let said = lab.onset(&[&["kernels", "add-deb"][..], &debs].concat()).exits(69).stderr;
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        assert!(left_in_cache(&lab).is_empty(), "{words:?}");
    }
}

#[test]
fn kernels_are_removed_by_name_and_others_stay() {
    let lab = Lab::bare();
    for name in ["a", "b"] {
        lab.write(&format!("cache/onset/kernels/{name}/kernel.json"), "{}");
    }
    let said = lab.onset(&["kernels", "remove", "c"]).exits(2).stderr;
    assert!(said.contains("there are a, b"), "{said}");
    // One that is damaged goes, too.
    lab.onset(&["kernels", "remove", "a"]).exits(0);
    assert_eq!(left_in_cache(&lab), ["b"]);
    lab.onset(&["kernels", "remove"]).exits(2);
    lab.onset(&["kernels", "remove", "--build-roots"]).exits(0);
    assert_eq!(left_in_cache(&lab), ["b"]);
}
