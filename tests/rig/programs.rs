// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the programs for tests, and boots guests that have one of them as their process 1.

use cpio::newc::{Builder, trailer};
use rig::{Cache, Emulator, Kernel, Machine};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use testbench::{Finished, Lab, compiled, repository};

/// The program of this source, built with `more` options of the compiler in the lab's directory.
pub fn program(lab: &Lab, source: &str, more: &[&str]) -> PathBuf {
    compiled(lab, &repository().join("tests/rig/programs").join(source), more)
}

/// A kernel of the tests' cache.
pub fn kernel_of_tests(lab: &Lab, name: &str) -> Kernel {
    let cache = Cache::at(&lab.cache()).expect("the tests' cache");
    cache.kernels().and_then(|kernels| kernels.get(name)).expect("the caller asked for it")
}

/// Runs a guest without the plugin and without the agent to its end, whose root has these files. One of them is `init`.
/// Returns the console, and the bytes that the guest wrote to QEMU's debug port.
pub fn boot(lab: &Lab, kernel: &Kernel, files: &[(&str, PathBuf)]) -> (String, Vec<u8>) {
    let image = lab.path().join("image");
    fs::write(&image, archive(files)).expect("writable");
    let (console, debug) = (lab.path().join("console"), lab.path().join("debug"));
    let machine = Machine {
        kernel: kernel.image(),
        parameters: Vec::new(),
        memory_mib: 256,
        shift: 0,
        seed: 1,
    };
    let mut qemu = Emulator::find().expect("a QEMU").command();
    qemu.args(machine.arguments()).arg("-kernel").arg(&machine.kernel);
    qemu.arg("-initrd").arg(&image);
    qemu.arg("-serial").arg(format!("file:{}", console.display()));
    qemu.arg("-debugcon").arg(format!("file:{}", debug.display()));
    Finished::of(&mut qemu).exits(0);
    let read = |path: &Path| fs::read(path).expect("QEMU wrote it");
    let console = String::from_utf8_lossy(&read(&console)).into_owned();
    assert!(console.contains("all done"), "{console}");
    (console, read(&debug))
}

/// The initramfs.
fn archive(files: &[(&str, PathBuf)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, path) in files {
        let content = fs::read(path).expect("just built");
        let mut entry =
            Builder::new(name).mode(0o100_755).write(&mut archive, content.len() as u32);
        entry.write_all(&content).expect("memory");
        entry.finish().expect("memory");
    }
    trailer(&mut archive).expect("memory");
    archive
}
