// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest's image: an initramfs with our init, the driver, and what the load and the experiment need.
//!
//! One directory of programs and libraries (`/bin`, `/sbin`, `/lib` … lead into `/usr`), the modules
//! with their dependencies, unpacked, under `/onset/modules`, the plan and the load's script. The same inputs give the same bytes.

mod archive;
mod modules;
mod programs;

use crate::error::At;
use crate::kernel::Kernel;
use crate::{Error, Result};
use agent::{LOAD_SCRIPT, Load, Module, PLAN_PATH, Plan, REPEAT_PATH};
use archive::Archive;
use std::fs;
use std::path::{Path, PathBuf};

/// What the image is made of, besides the kernel's own parts.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Our init, static.
    pub agent: PathBuf,
    /// The load that the guest runs.
    pub load: Load,
    /// Parameters of the driver, as on insmod's command line.
    pub driver_parameters: String,
    /// Whether the guest runs the `task` responder.
    pub task: bool,
    /// Time under load before measuring, in guest nanoseconds.
    pub warm_up_ns: u64,
    /// The guest ends by itself this long after measuring began; where absent, when it is told to.
    pub ends_after_ns: Option<u64>,
    /// Modules (host paths) loaded after the driver.
    pub modules: Vec<PathBuf>,
    /// Programs of the host (names or paths) put into the guest's /usr/bin.
    pub programs: Vec<String>,
    /// Host path and guest path of further files.
    pub files: Vec<(PathBuf, String)>,
}

/// Makes the image for a kernel; returns the archive's bytes.
pub fn build(kernel: &Kernel, contents: &Contents) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    lay_out(&mut archive);
    archive.file("init", 0o755, &read(&contents.agent)?);
    archive.link(REPEAT_PATH.trim_start_matches("/bin/"), "usr/bin", "/init");
    let modules = put_modules(&mut archive, kernel, contents)?;
    put_programs(&mut archive, contents)?;
    for (host, guest) in &contents.files {
        let mode = fs::metadata(host).at(host)?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777;
        archive.file(guest, mode, &read(host)?);
    }
    if contents.load != Load::Idle {
        archive.file(LOAD_SCRIPT, 0o644, contents.load.script().as_bytes());
    }
    let plan = Plan {
        modules,
        task: contents.task,
        warm_up_ns: contents.warm_up_ns,
        ends_after_ns: contents.ends_after_ns,
    };
    let plan = serde_json::to_vec_pretty(&plan).expect("a plan serialises");
    archive.file(PLAN_PATH, 0o644, &plan);
    Ok(archive.finish())
}

fn lay_out(archive: &mut Archive) {
    for directory in [
        "proc",
        "sys",
        "dev",
        "tmp",
        "run",
        "mnt",
        "etc",
        "var",
        "root",
        "usr/bin",
        "usr/lib",
        "usr/lib64",
    ] {
        archive.directory(directory);
    }
    for (name, target) in
        [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")]
    {
        archive.link(name, "", target);
    }
    archive.link("sbin", "usr", "bin");
    archive.link("run", "var", "/run");
    // ip-netns and friends look names up here.
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n");
    archive.file("etc/group", 0o644, b"root:x:0:\n");
    // The kernel opens this before init has mounted anything.
    archive.console();
}

fn put_modules(archive: &mut Archive, kernel: &Kernel, contents: &Contents) -> Result<Vec<Module>> {
    let index = modules::Index::read(kernel)?;
    let mut plan: Vec<Module> = Vec::new();
    for (name, parameters) in contents.load.modules() {
        for path in index.closure(name)? {
            let guest = format!("/onset/modules/{}.ko", modules::name_of(&path));
            if plan.iter().any(|m| m.path == guest) {
                continue;
            }
            archive.file(&guest, 0o644, &modules::unpack(&path)?);
            let own = modules::name_of(&path) == name;
            let parameters = if own { parameters.clone() } else { String::new() };
            plan.push(Module { path: guest, parameters });
        }
    }
    let driver = "/onset/modules/onset_port.ko".to_string();
    archive.file(&driver, 0o644, &read(&kernel.driver()?)?);
    plan.push(Module { path: driver, parameters: contents.driver_parameters.clone() });
    for path in &contents.modules {
        let guest = format!("/onset/modules/{}.ko", modules::name_of(path));
        archive.file(&guest, 0o644, &modules::unpack(path)?);
        plan.push(Module { path: guest, parameters: String::new() });
    }
    Ok(plan)
}

fn put_programs(archive: &mut Archive, contents: &Contents) -> Result<()> {
    let mut wanted: Vec<String> = contents.load.programs().iter().map(|p| p.to_string()).collect();
    if contents.load != Load::Idle {
        wanted.extend(["sh", "sleep"].map(String::from));
    }
    wanted.extend(contents.programs.iter().cloned());
    wanted.sort();
    wanted.dedup();
    for name in &wanted {
        let program = programs::Program::find(name)?;
        archive.file(&program.guest_path(), 0o755, &read(&program.host)?);
        for library in program.libraries()? {
            archive.file(&programs::guest_library(&library), 0o755, &read(&library)?);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).at(path)
}

/// An error of the experiment's own additions to the guest.
fn unusable(path: &Path, why: &str) -> Error {
    Error::Guest { phase: "being put together", why: format!("{}: {why}", path.display()) }
}
