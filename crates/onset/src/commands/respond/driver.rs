// SPDX-License-Identifier: GPL-2.0-or-later
//! The driver on this machine: which lines it gets, loading it, and unloading it.

use crate::arguments::{Port, Respond};
use crate::failure::Failure;
use probes::Chip;
use rustix::fs::OFlags;
use sample::Responder;
use std::ffi::CString;
use std::fs::{File, OpenOptions, read_to_string};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use view::visible::tell;
use wire::ports;

/// The driver while it is loaded. It is unloaded when this value goes.
pub struct Loaded(());

impl Drop for Loaded {
    fn drop(&mut self) {
        let name = CString::new(ports::MODULE).expect("a name without NUL");
        // Without waiting: a process that still has the device open keeps the module.
        let flags = OFlags::NONBLOCK.bits() as i32;
        if let Err(e) = rustix::system::delete_module(&name, flags) {
            tell!("the driver stays loaded: {e}; rmmod {}", ports::MODULE);
        }
    }
}

/// Loads the driver for a port.
///
/// # Errors
/// If what the user named does not fit together, a line is not free, or the driver refuses. The text has what the
/// driver says in the kernel's log.
pub fn load(port: Port, how: &Respond) -> Result<Loaded, Failure> {
    let (responders, parameters) = match port {
        Port::Gpio { chip, line } => on_lines(chip, line, how)?,
        Port::Parallel(number) => on_port(parallel(number)?, how)?,
        Port::ParallelAt { address, irq } => on_port((address, irq), how)?,
    };
    if Path::new("/sys/module").join(ports::MODULE).exists() {
        return Err(Failure::unavailable(format!(
            "the driver is loaded already: leave --port out to answer with it as it is, or rmmod {} first",
            ports::MODULE
        )));
    }
    let mut command = match &how.module {
        Some(file) => {
            let mut insmod = Command::new("insmod");
            insmod.arg(file);
            insmod
        }
        None => {
            let mut modprobe = Command::new("modprobe");
            modprobe.arg(ports::MODULE);
            modprobe
        }
    };
    command.args(&parameters);
    if !responders.is_empty() {
        let names: Vec<&str> = responders.iter().map(|r| r.name()).collect();
        command.arg(format!("responders={}", names.join(",")));
    }
    insert(&mut command)?;
    tell!("the driver answers on {port}");
    Ok(Loaded(()))
}

/// Runs what loads the module. If that fails, the driver says in the kernel's log why.
fn insert(command: &mut Command) -> Result<(), Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut log = KernelLog::from_now();
    let output = command.output().map_err(|e| {
        Failure::unavailable(format!("{program}: {e}; install kmod, and run as root"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let why = log.as_mut().map(KernelLog::of_the_driver).unwrap_or_default();
    let why = if why.is_empty() {
        "the kernel's log (dmesg) may say more; build and install the driver with make -C driver \
         modules modules_install, or name its file with --module"
            .to_owned()
    } else {
        why.join("; ")
    };
    Err(Failure::unavailable(format!("the driver is not loaded: {why} ({said})")))
}

/// The kernel's log from an instant on.
struct KernelLog(File);

impl KernelLog {
    /// `None` where the user may not read it.
    fn from_now() -> Option<KernelLog> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut log = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
        log.seek(SeekFrom::End(0)).ok()?;
        Some(KernelLog(log))
    }

    /// What the driver has said since. Each read gives one message, until there is none.
    fn of_the_driver(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        let mut record = [0; 8192];
        while let Ok(bytes @ 1..) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..bytes]).into_owned();
            messages.extend(message_of_the_driver(&text));
        }
        messages
    }
}

/// The message of a record of the log (Documentation/ABI/testing/dev-kmsg), if it is the driver's.
fn message_of_the_driver(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let line = text.lines().next()?;
    Some(line.strip_prefix(ports::MODULE)?.strip_prefix(": ")?.to_owned())
}

/// The parameters for a parallel port.
fn on_port(
    (address, irq): (u16, u32),
    how: &Respond,
) -> Result<(Vec<Responder>, Vec<String>), Failure> {
    if !how.answers.is_empty() {
        return Err(Failure::usage(
            "--answer names GPIO lines; on a parallel port each responder has its own pin (docs/wiring.md)",
        ));
    }
    if !how.responders.is_empty() {
        check_task(&how.responders)?;
    }
    let parameters = vec!["trigger=port".into(), format!("io={address:#x}"), format!("irq={irq}")];
    Ok((how.responders.clone(), parameters))
}

/// The I/O port and the interrupt of a parallel port with this number.
fn parallel(number: u32) -> Result<(u16, u32), Failure> {
    let told = PathBuf::from(format!("/proc/sys/dev/parport/parport{number}"));
    let of = |file: &str| {
        let text = read_to_string(told.join(file)).ok()?;
        text.split_whitespace().next()?.parse::<u32>().ok()
    };
    // Linux's own driver tells of the port, and has it.
    if let Some(address) = of("base-addr") {
        let again = match of("irq") {
            Some(irq) => format!("onset respond --port parport:{address:#x}:{irq}"),
            None => format!("onset respond --port parport:{address:#x}:IRQ with its interrupt"),
        };
        return Err(Failure::unavailable(format!(
            "parport{number} belongs to parport_pc: rmmod lp ppdev parport_pc, and then {again}"
        )));
    }
    match number {
        0 => Ok((ports::PARALLEL, ports::PARALLEL_IRQ.into())),
        _ => Err(Failure::unavailable(format!(
            "nothing says where parport{number} is: name its I/O port and interrupt, as in parport:{:#x}:{}",
            ports::PARALLEL,
            ports::PARALLEL_IRQ
        ))),
    }
}

/// The responders and the parameters for GPIO lines. Each responder gets the line at its place among those that the
/// user named; the driver wants them in the order of the responders' numbers.
fn on_lines(
    chip: u32,
    trigger: u16,
    how: &Respond,
) -> Result<(Vec<Responder>, Vec<String>), Failure> {
    let mut pairs = paired(how)?;
    pairs.sort();
    let path = PathBuf::from(format!("/dev/gpiochip{chip}"));
    let opened = Chip::open(&path).map_err(Failure::unavailable)?;
    check_label(&opened.label, &path)?;
    let mut seen = Vec::new();
    for line in std::iter::once(trigger).chain(pairs.iter().map(|(_, line)| *line)) {
        if seen.contains(&line) {
            return Err(Failure::usage(format!("line {line} is named twice")));
        }
        seen.push(line);
        if let Some(user) = opened.user_of(line.into()).map_err(Failure::unavailable)? {
            return Err(Failure::unavailable(format!(
                "line {line} of gpiochip{chip} is in use by {user:?}: take another line, or end what uses it"
            )));
        }
    }
    let answers: Vec<String> = pairs.iter().map(|(_, line)| line.to_string()).collect();
    let parameters = vec![
        "trigger=gpio".into(),
        // In quotes for the kernel, because a label may have spaces.
        format!("chip=\"{}\"", opened.label),
        format!("trigger_line={trigger}"),
        format!("answer_lines={}", answers.join(",")),
    ];
    Ok((pairs.into_iter().map(|(responder, _)| responder).collect(), parameters))
}

/// The responders with their lines, as the user put them beside each other.
fn paired(how: &Respond) -> Result<Vec<(Responder, u16)>, Failure> {
    let responders = match how.responders[..] {
        [] => &[Responder::Task][..],
        ref named => named,
    };
    check_task(responders)?;
    if responders.len() != how.answers.len() {
        return Err(Failure::usage(format!(
            "{} responders ({}) and {} lines to answer on: name a line for each with --answer, and each responder with --responder",
            responders.len(),
            responders.iter().map(|r| r.name()).collect::<Vec<_>>().join(", "),
            how.answers.len()
        )));
    }
    let twice = |(i, r): (usize, &Responder)| responders[..i].contains(r).then_some(*r);
    if let Some(twice) = responders.iter().enumerate().find_map(twice) {
        return Err(Failure::usage(format!("the responder {twice} is named twice")));
    }
    Ok(responders.iter().copied().zip(how.answers.iter().copied()).collect())
}

/// This command is the responder `task`.
fn check_task(responders: &[Responder]) -> Result<(), Failure> {
    if responders.contains(&Responder::Task) {
        return Ok(());
    }
    Err(Failure::usage("onset respond is the responder task: add --responder task"))
}

/// The driver finds a chip by its label, and a label that two chips have would be the other one's, too.
fn check_label(label: &str, path: &Path) -> Result<(), Failure> {
    let unfit = |why: String| Err(Failure::unavailable(format!("{}: {why}", path.display())));
    let help =
        "name the lines in the device tree, in ACPI or in a software node (driver/README.md)";
    if label.is_empty() || label.contains(['"', '\n']) {
        return unfit(format!("the driver cannot find the chip by its label {label:?}: {help}"));
    }
    let others = std::fs::read_dir("/dev").into_iter().flatten().flatten().map(|e| e.path());
    let is_chip = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"gpiochip"))
    };
    for other in others.filter(|other| is_chip(other) && other != path) {
        if Chip::open(&other).is_ok_and(|chip| chip.label == label) {
            return unfit(format!("{} has the same label {label:?}: {help}", other.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::Policy;

    fn respond(responders: &[Responder], answers: &[u16]) -> Respond {
        Respond {
            port: None,
            answers: answers.to_vec(),
            responders: responders.to_vec(),
            module: None,
            policy: Policy::Other(0),
            cpu: 0,
            program: Vec::new(),
        }
    }

    #[test]
    fn each_responder_has_the_line_at_its_place_and_task_alone_needs_no_name() {
        assert_eq!(paired(&respond(&[], &[27])).ok(), Some(vec![(Responder::Task, 27)]));
        let named = respond(&[Responder::Task, Responder::Hardirq], &[27, 22]);
        assert_eq!(
            paired(&named).ok(),
            Some(vec![(Responder::Task, 27), (Responder::Hardirq, 22)])
        );
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_the_remedy() {
        use Responder::{Hardirq, Task};
        for (responders, answers, says) in [
            (&[][..], &[27, 22][..], "1 responders (task) and 2 lines"),
            (&[], &[], "and 0 lines"),
            (&[Hardirq], &[27], "--responder task"),
            (&[Task, Task], &[27, 22], "the responder task is named twice"),
        ] {
            let refused = paired(&respond(responders, answers)).unwrap_err().message;
            assert!(refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn of_the_kernels_log_only_the_drivers_messages_count() {
        let record = "3,339,5140900,-;onset_port: line 7 is named twice\n SUBSYSTEM=platform\n";
        assert_eq!(message_of_the_driver(record).as_deref(), Some("line 7 is named twice"));
        for other in ["6,1,2,-;onset_port_x: a", "6,1,2,-;usb 1-1: onset_port: a", "no record"] {
            assert_eq!(message_of_the_driver(other), None, "{other}");
        }
    }
}
