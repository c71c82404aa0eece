// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes the guest's image: an initramfs with our init, the driver, and what the load and the experiment need.
//!
//! The image has one directory of programs and libraries (`/bin`, `/sbin`, `/lib` … lead into `/usr`). The modules with
//! their dependencies are unpacked under `/onset/modules`. The plan and the load's script are there, too. The same
//! inputs give the same bytes.

mod archive;
mod modules;
mod programs;

use crate::error::At;
use crate::kernel::Kernel;
use crate::{Error, Result};
use agent::{LOAD_SCRIPT, Load, Module, PLAN_PATH, PLAY_PATH, Plan, REPEAT_PATH, TaskProcess};
use archive::Archive;
use std::fs;
use std::path::{Path, PathBuf};
use wire::ports::CHIP;

/// The parts of the image, besides the kernel's own.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Our init, a static program.
    pub agent: PathBuf,
    /// The load that the guest runs.
    pub load: Load,
    /// The parameters of the driver, as on insmod's command line. `None` for a guest without the driver, which needs no
    /// headers of its kernel.
    pub driver: Option<String>,
    /// The `task` responder of the guest, if it has one. A program has to be among `programs`.
    pub task: Option<TaskProcess>,
    /// The time under load before measuring, in guest nanoseconds.
    pub warm_up_ns: u64,
    /// How long after the beginning of measuring the guest ends by itself. If absent, it ends when the host tells it
    /// to.
    pub ends_after_ns: Option<u64>,
    /// Modules (host paths) that are loaded after the driver.
    pub modules: Vec<PathBuf>,
    /// Programs of the host (names or paths) that are put into the guest's /usr/bin.
    pub programs: Vec<String>,
    /// The host path and the guest path of each further file.
    pub files: Vec<(PathBuf, String)>,
}

/// Writes the image for a kernel to a new file. Returns the hash of its bytes.
pub fn build(kernel: &Kernel, contents: &Contents, path: &Path) -> Result<blake3::Hash> {
    let mut archive = Archive::create(path)?;
    lay_out(&mut archive)?;
    archive.copy("init", 0o755, &contents.agent)?;
    for worker in [REPEAT_PATH, PLAY_PATH] {
        archive.link(&format!("usr{worker}"), "/init")?;
    }
    let modules = put_modules(&mut archive, kernel, contents)?;
    put_programs(&mut archive, contents)?;
    for (host, guest) in &contents.files {
        put_file(&mut archive, host, guest)?;
    }
    if contents.load != Load::Idle {
        archive.file(LOAD_SCRIPT, 0o644, "the load", contents.load.script().as_bytes())?;
    }
    let plan = Plan {
        modules,
        task: contents.task.clone(),
        warm_up_ns: contents.warm_up_ns,
        ends_after_ns: contents.ends_after_ns,
    };
    let plan = serde_json::to_vec_pretty(&plan).expect("a plan serialises");
    archive.file(PLAN_PATH, 0o644, "the plan", &plan)?;
    archive.finish()
}

/// The directories of the image over which the guest mounts something.
const MOUNTED: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

fn lay_out(archive: &mut Archive) -> Result<()> {
    for directory in ["mnt", "etc", "var", "root", "usr/bin", "usr/lib", "usr/lib64"] {
        archive.directory(directory)?;
    }
    MOUNTED.iter().try_for_each(|directory| archive.directory(directory))?;
    for directory in ["bin", "sbin"] {
        archive.link(directory, "usr/bin")?;
    }
    for directory in ["lib", "lib64"] {
        archive.link(directory, &format!("usr/{directory}"))?;
    }
    archive.link("usr/sbin", "bin")?;
    archive.link("var/run", "/run")?;
    // ip-netns and similar programs look names up here.
    archive.file("etc/passwd", 0o644, "onset", b"root:x:0:0:root:/root:/bin/sh\n")?;
    archive.file("etc/group", 0o644, "onset", b"root:x:0:\n")?;
    // The kernel opens this before init has mounted anything.
    archive.console()
}

fn put_file(archive: &mut Archive, host: &Path, guest: &str) -> Result<()> {
    let top = guest.trim_start_matches('/').split('/').next().unwrap_or_default();
    if MOUNTED.contains(&top) {
        let why = format!(
            "would be hidden as {guest}: the guest mounts over /{top}; choose another place"
        );
        return Err(unusable(host, &why));
    }
    let metadata = fs::metadata(host).at(host)?;
    if !metadata.is_file() {
        return Err(unusable(host, "is no file; name files one by one"));
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    archive.copy(&merged(guest), mode, host)
}

/// A guest path, with the links at the top of the image followed.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches('/');
    match path.split_once('/') {
        Some(("bin" | "sbin", rest)) => programs::program(rest),
        Some((lib @ ("lib" | "lib64"), rest)) => format!("usr/{lib}/{rest}"),
        _ => path.strip_prefix("usr/sbin/").map_or(path.into(), programs::program),
    }
}

fn put_modules(archive: &mut Archive, kernel: &Kernel, contents: &Contents) -> Result<Vec<Module>> {
    let index = modules::Index::read(kernel)?;
    let mut plan: Vec<Module> = Vec::new();
    for (name, parameters) in contents.load.modules() {
        for path in index.closure(name)? {
            let guest = guest_module(&path);
            if plan.iter().any(|m| m.path == guest) {
                continue;
            }
            kernel.check(&path)?;
            archive.file(&guest, 0o644, &path.to_string_lossy(), &modules::unpack(&path)?)?;
            let own = modules::name_of(&path) == name;
            let parameters = if own { parameters.clone() } else { String::new() };
            plan.push(Module { path: guest, parameters });
        }
    }
    if let Some(parameters) = contents.driver.clone() {
        // A driver that is told of lines of the rig's chip needs the chip.
        let needs_chip = parameters.split(' ').any(|p| p.strip_prefix("chip=") == Some(CHIP));
        let chip = needs_chip.then(|| kernel.chip()).transpose()?;
        let own = chip.map(|chip| (chip, String::new())).into_iter();
        for (module, parameters) in own.chain([(kernel.driver()?, parameters)]) {
            archive.copy(&guest_module(&module), 0o644, &module)?;
            plan.push(Module { path: guest_module(&module), parameters });
        }
    }
    for path in &module_files(kernel, contents)? {
        let guest = guest_module(path);
        if plan.iter().any(|m| m.path == guest) {
            return Err(unusable(path, "has the name of another module of this guest; rename it"));
        }
        archive.file(&guest, 0o644, &path.to_string_lossy(), &modules::unpack(path)?)?;
        plan.push(Module { path: guest, parameters: String::new() });
    }
    Ok(plan)
}

/// The files of the experiment's own modules. Modules that are given as sources are built.
fn module_files(kernel: &Kernel, contents: &Contents) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in &contents.modules {
        if path.is_dir() {
            files.extend(kernel.modules_of(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn guest_module(path: &Path) -> String {
    format!("/onset/modules/{}.ko", modules::name_of(path))
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
        archive.copy(&merged(&program.guest_path()), 0o755, &program.host)?;
        for library in program.libraries()? {
            let host = library.canonicalize().at(&library)?;
            archive.copy(&programs::guest_library(&library), 0o755, &host)?;
        }
    }
    Ok(())
}

/// Checks that the machine has every program that a guest under this load gets.
///
/// # Errors
/// [`Error::NoProgram`] with the package of the first missing program.
pub fn check_programs(load: Load) -> Result<()> {
    load.programs().into_iter().try_for_each(|name| programs::Program::find(name).map(drop))
}

/// The error that onset cannot use one of the experiment's own additions to the guest.
fn unusable(path: &Path, why: &str) -> Error {
    Error::Guest { phase: "being put together", why: format!("{}: {why}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_path_follows_the_links_of_the_image() {
        assert_eq!(merged("/bin/x"), "usr/bin/x");
        assert_eq!(merged("/usr/sbin/x"), "usr/bin/x");
        assert_eq!(merged("/lib64/ld.so"), "usr/lib64/ld.so");
        assert_eq!(merged("/etc/x"), "etc/x");
    }

    #[test]
    fn a_file_that_the_guest_would_mount_over_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut archive = Archive::create(&directory.path().join("image")).unwrap();
        let host = directory.path().join("data");
        fs::write(&host, b"x").unwrap();
        let error = put_file(&mut archive, &host, "/tmp/data").unwrap_err().to_string();
        assert!(error.contains("/tmp/data") && error.contains("mounts over"), "{error}");
        put_file(&mut archive, &host, "/data").unwrap();
    }
}
