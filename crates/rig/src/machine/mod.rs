// SPDX-License-Identifier: GPL-2.0-or-later
//! The virtual machine: QEMU without an accelerator, in deterministic virtual time, with our plugin.

mod emulator;
mod qmp;

pub use emulator::{CHOICE, Emulator, is_tried, versions_tried};

use crate::error::At;
use crate::tool;
use crate::x86_64::{CONSOLE, CPU, KIND};
use crate::{Error, Result, console};
use agent::Work;
use qmp::Qmp;
use sample::Nanos;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use wire::ports::WIRE;
use wire::{Arguments, Channel, Forking, FunctionStarts, Plan, Start};
use work::Reaped;

/// What the plugin is to trigger. An aim needs a follower ([`Following`](crate::Following)). Disturbances need a driver
/// that was loaded with `disturbance_irq`.
pub use wire::Triggers as Generator;

/// The date at which the guest's clock starts. It does not depend on the host's date.
const RTC_BASE: &str = "2026-01-01T00:00:00";
/// One thread, and a code cache of fixed size. By default the size follows the host's memory, and it decides when QEMU
/// starts the cache afresh.
const TCG: &str = "tcg,thread=single,tb-size=512";
/// These words are always on the guest's command line. A panic or an oops ends the machine (QEMU runs with -no-reboot).
/// Nothing is placed at random.
const COMMAND_LINE: &str =
    "loglevel=5 panic=-1 oops=panic reboot=t nokaslr norandmaps cryptomgr.notests=1";

/// QEMU's message when it ends because of a signal (system/runstate.c).
const TOLD_TO_END: &str = "terminating on signal";

/// How long to wait for QEMU's end once it has closed its control connection. It writes the reason in no time.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// The guest's machine, as far as experiments may differ in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The compressed kernel.
    pub kernel: PathBuf,
    /// The words that are added to the kernel's command line.
    pub parameters: Vec<String>,
    /// The memory in MiB.
    pub memory_mib: u32,
    /// The virtual nanoseconds for each instruction, as a power of two: 0 … 10.
    pub shift: u8,
    /// The seed of QEMU's own random numbers. The guest's kernel takes its entropy from them.
    pub seed: u32,
}

impl Machine {
    /// The whole command line of the kernel.
    pub fn command_line(&self) -> String {
        let mut line = format!("{CONSOLE} {COMMAND_LINE}");
        for word in &self.parameters {
            line.push(' ');
            line.push_str(word);
        }
        line
    }

    /// QEMU's arguments that make the machine. Together with `-kernel` and `-initrd`, a snapshot depends on
    /// them.
    pub fn arguments(&self) -> Vec<String> {
        let icount = format!("shift={},sleep=off", self.shift);
        let rtc = format!("base={RTC_BASE},clock=vm");
        [
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            "-machine",
            KIND,
            "-cpu",
            CPU,
            "-smp",
            "1",
            "-accel",
            TCG,
            "-icount",
            &icount,
            "-rtc",
            &rtc,
            "-seed",
            &self.seed.to_string(),
            "-nic",
            "none",
            "-m",
            &self.memory_mib.to_string(),
            "-append",
            &self.command_line(),
        ]
        .map(String::from)
        .into()
    }
}

/// The way in which a machine starts.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// It boots the image, and is to be stopped at the instant where measuring begins.
    Boot {
        /// The initramfs.
        image: &'a Path,
    },
    /// It starts from a saved state, with these port registers.
    Restore {
        /// The initramfs from which it was booted (QEMU loads it again).
        image: &'a Path,
        /// The saved state.
        state: &'a Path,
        /// The values of the data pins and of the control register.
        registers: (u16, u8),
        /// The machine is not measured. It runs on for this virtual time, is stopped and is saved there.
        advance: Option<Nanos>,
    },
}

/// What is measured in a restored machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stimulus {
    /// The plugin triggers, and the driver's responders answer.
    Triggers(Generator),
    /// The guest runs a probe.
    Probe(ProbeRun),
    /// The guest does a piece of work, and nothing is measured but what a follower sees.
    Work(Work),
}

/// A probe inside the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRun {
    /// The probe's plan, as JSON (crates/probes).
    pub plan: Vec<u8>,
    /// The virtual time that the probe is expected to take. The guest sends nothing until the probe has ended.
    pub expected: Nanos,
    /// Whether to watch from outside when the probe's threads wait and wake ([`Witness`](crate::Witness)).
    pub witness: bool,
    /// The functions by which the witness counts the instructions of the probe `cost`. `None` if it does not count.
    pub functions: Option<FunctionStarts>,
}

/// The plugin that is loaded into QEMU, with what it is told.
#[derive(Clone, Copy)]
pub(crate) struct Plugin<'a> {
    /// The file of the plugin.
    pub(crate) library: &'a Path,
    /// What is measured.
    pub(crate) stimulus: &'a Stimulus,
    /// What is followed in the guest's kernel.
    pub(crate) follow: Option<&'a Plan>,
    /// The channel for the plugin's events.
    pub(crate) channel: &'a Channel,
    /// The source of commands, if triggers are commanded.
    pub(crate) commands: Option<RawFd>,
    /// The descriptors of a QEMU that forks: the socket of its own requests, and all that its children need.
    pub(crate) walk: Option<(RawFd, &'a [RawFd])>,
}

/// A running QEMU. It is killed and reaped when this is dropped.
pub(crate) struct Running {
    process: Reaped,
    qmp: Qmp,
    files: Files,
}

/// The files that a machine writes while it runs, in its scratch directory.
struct Files {
    console: PathBuf,
    wire: PathBuf,
    complaints: PathBuf,
}

impl Running {
    /// Starts QEMU. Its output goes to `scratch`, which outlives it.
    pub(crate) fn start(
        emulator: &Emulator,
        machine: &Machine,
        origin: Origin,
        plugin: Option<Plugin<'_>>,
        scratch: &Path,
    ) -> Result<Running> {
        let files = Files {
            console: scratch.join("console"),
            wire: scratch.join("wire"),
            complaints: scratch.join("qemu"),
        };
        let (ours, theirs) = qmp::pair()?;
        let mut command = emulator.command();
        command.args(machine.arguments()).arg("-kernel").arg(&machine.kernel);
        command
            .args(["-chardev", &format!("file,id=console,path={}", option_value(&files.console))]);
        command.args(["-serial", "chardev:console"]);
        command.args(["-chardev", &format!("file,id={WIRE},path={}", option_value(&files.wire))]);
        command.args(["-serial", &format!("chardev:{WIRE}")]);
        command.args(["-chardev", &format!("socket,id=qmp,fd={}", theirs.as_raw_fd())]);
        command.args(["-mon", "chardev=qmp,mode=control"]);
        let image = match origin {
            Origin::Boot { image } => image,
            Origin::Restore { image, state, .. } => {
                command.arg("-incoming").arg(format!("file:{}", state.display()));
                image
            }
        };
        command.arg("-initrd").arg(image);
        let mut inherited = vec![theirs.as_raw_fd()];
        if let Some(plugin) = plugin {
            command.arg("-plugin").arg(plugin_option(plugin, origin, scratch)?);
            inherited.push(plugin.channel.fd());
            inherited.extend(plugin.commands);
            inherited.extend(plugin.walk.iter().flat_map(|(_, inherited)| *inherited));
        }
        work::inherit(&mut command, inherited);
        let complaints = File::create(&files.complaints).at(&files.complaints)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        let process = Reaped::spawn(&mut command).map_err(|e| Error::Qemu(e.to_string()))?;
        drop(theirs);
        Ok(Running { process, qmp: Qmp::new(ours), files })
    }

    /// Ends the negotiation of the control protocol, so that QEMU accepts commands.
    pub(crate) fn greet(&mut self, deadline: Duration) -> Result<()> {
        self.call("qmp_capabilities", json!({}), deadline).map(drop)
    }

    /// Lets QEMU carry out a command, and returns the result.
    ///
    /// # Errors
    /// [`Error::Qemu`] with QEMU's own message if it ended instead, or [`Error::Interrupted`].
    pub(crate) fn call(
        &mut self,
        command: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<Value> {
        let answer = self.qmp.call(command, arguments, deadline);
        if answer.is_err() && self.qmp.is_lost() {
            let begun = Instant::now();
            while begun.elapsed() < LAST_WORDS {
                if self.ended()? {
                    let said = tool::last_lines(&self.complaints(), 6);
                    return Err(Error::Qemu(format!("ended instead of `{command}`. {said}")));
                }
                std::thread::sleep(work::POLL);
            }
        }
        answer
    }

    /// Lets a paused guest go on, and does not wait until it does.
    ///
    /// # Errors
    /// [`Error::Qemu`] if QEMU is gone.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        self.qmp.tell("cont", json!({}))
    }

    /// Asks init to end the probe that it runs, as Ctrl-C does on a machine. This sends a break on init's serial line,
    /// which a raw line reads as a byte (termios(3)).
    ///
    /// # Errors
    /// [`Error::Qemu`] if QEMU is gone.
    pub(crate) fn ask_probe_to_end(&mut self) -> Result<()> {
        self.qmp.tell("chardev-send-break", json!({"id": WIRE}))
    }

    /// Whether QEMU has ended because its guest did. The error says that QEMU ended with a failure of its own, or
    /// because somebody told it to.
    pub(crate) fn ended(&mut self) -> Result<bool> {
        match self.process.ended().map_err(|e| Error::Qemu(e.to_string()))? {
            None => Ok(false),
            // A QEMU that a signal ends (SIGTERM, SIGINT, SIGHUP) exits as if all were well.
            Some(status) if status.success() && !self.complaints().contains(TOLD_TO_END) => {
                Ok(true)
            }
            Some(status) => {
                let said = tool::last_lines(&self.complaints(), 6);
                Err(Error::Qemu(format!("ended with {status}. {said}")))
            }
        }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The text that the kernel printed.
    pub(crate) fn console(&self) -> String {
        console::read(&self.files.console)
    }

    /// The words that init sent.
    pub(crate) fn wire(&self) -> String {
        console::read(&self.files.wire)
    }

    /// The text that QEMU itself printed.
    pub(crate) fn complaints(&self) -> String {
        console::read(&self.files.complaints)
    }
}

/// A path as the value of an option whose parts QEMU separates by commas.
fn option_value(path: &Path) -> String {
    escaped(&path.display().to_string())
}

/// A value in which every comma is written twice (qemu(1), -drive).
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

/// The value of `-plugin`. Long parts go through files in `scratch`.
fn plugin_option(plugin: Plugin<'_>, origin: Origin, scratch: &Path) -> Result<String> {
    let (start, registers) = match origin {
        Origin::Boot { .. } => (Start::Boot, (0, 0)),
        Origin::Restore { registers, advance: Some(time), .. } => (Start::Advance(time), registers),
        Origin::Restore { registers, .. } if plugin.walk.is_some() => (Start::Walk, registers),
        Origin::Restore { registers, .. } => (Start::Restore, registers),
    };
    let words = told(plugin, start, registers, scratch)
        .words(|name, bytes| part(scratch.join(name), bytes))?;
    let mut option = format!("file={}", option_value(plugin.library));
    for word in words {
        option += ",";
        option += &escaped(&word);
    }
    Ok(option)
}

/// Writes a long part of what the plugin is told to a file, and says its path.
pub(crate) fn part(path: PathBuf, bytes: &[u8]) -> Result<String> {
    fs::write(&path, bytes).at(&path)?;
    Ok(path.display().to_string())
}

/// Everything that the plugin is told.
fn told(plugin: Plugin<'_>, start: Start, registers: (u16, u8), scratch: &Path) -> Arguments {
    let (stimulus, witness, functions) = match plugin.stimulus {
        Stimulus::Triggers(triggers) => (wire::Stimulus::Triggers(triggers.clone()), false, None),
        Stimulus::Probe(run) => {
            (wire::Stimulus::Probe(run.plan.clone()), run.witness, run.functions.clone())
        }
        Stimulus::Work(work) => {
            // Init tells it from a probe's plan.
            let order = serde_json::to_vec(work).expect("plain data");
            (wire::Stimulus::Probe(order), false, None)
        }
    };
    let directory = scratch.display().to_string();
    Arguments {
        ring_fd: plugin.channel.fd(),
        commands_fd: plugin.commands,
        start,
        stimulus,
        witness,
        functions,
        follow: plugin.follow.cloned(),
        registers,
        forking: plugin.walk.map(|(requests_fd, _)| Forking { requests_fd, directory }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A machine whose QEMU is a shell script. The script reads one command from the control connection.
    fn running(scratch: &Path, script: &str) -> Running {
        let (ours, theirs) = qmp::pair().unwrap();
        let file = |name: &str| scratch.join(name);
        let files =
            Files { console: file("console"), wire: file("wire"), complaints: file("qemu") };
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(theirs);
        command.stderr(File::create(&files.complaints).unwrap());
        let process = Reaped::spawn(&mut command).unwrap();
        Running { process, qmp: Qmp::new(ours), files }
    }

    #[test]
    fn what_qemu_says_at_its_end_takes_the_place_of_a_broken_connection() {
        let scratch = tempfile::tempdir().unwrap();
        let mut failed = running(scratch.path(), "echo 'no such accelerator' >&2; exit 1");
        let e = failed.greet(LAST_WORDS).unwrap_err().to_string();
        assert!(e.contains("no such accelerator") && e.contains("status: 1"), "{e}");
        let mut ended = running(scratch.path(), "echo 'had enough' >&2");
        let e = ended.call("cont", json!({}), LAST_WORDS).unwrap_err().to_string();
        assert!(e.contains("cont") && e.contains("had enough"), "{e}");
    }

    #[test]
    fn only_an_end_that_the_guest_brought_about_is_one() {
        let scratch = tempfile::tempdir().unwrap();
        let ended = |script: &str| {
            let mut running = running(scratch.path(), script);
            loop {
                match running.ended() {
                    Ok(false) => std::thread::sleep(work::POLL),
                    ended => return ended.map_err(|e| e.to_string()),
                }
            }
        };
        assert_eq!(ended("exit 0"), Ok(true));
        let killed = ended("kill -9 $$").unwrap_err();
        assert!(killed.contains("signal: 9"), "{killed}");
        let told = ended("echo 'qemu: terminating on signal 15 from pid 1' >&2; exit 0");
        assert!(told.as_ref().is_err_and(|e| e.contains("on signal 15")), "{told:?}");
        let failed = ended("echo 'onset plugin: the ring is full' >&2; exit 1").unwrap_err();
        assert!(failed.contains("the ring is full"), "{failed}");
    }

    #[test]
    fn a_command_that_qemu_refuses_is_answered_by_its_own_error() {
        let scratch = tempfile::tempdir().unwrap();
        let script = r#"echo '{"error": {"desc": "not now"}}' >&0; exec sleep 1000"#;
        let mut refusing = running(scratch.path(), script);
        let e = refusing.call("cont", json!({}), LAST_WORDS).unwrap_err().to_string();
        assert!(e.contains("cont") && e.contains("not now"), "{e}");
    }

    #[test]
    fn commas_in_a_path_do_not_end_an_option() {
        assert_eq!(option_value(Path::new("/a,b/c,,d")), "/a,,b/c,,,,d");
    }
}
