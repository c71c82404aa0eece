// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads the samples of the driver from its device, in the format of `wire`.

use crate::{RunError, failure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::time::Timespec;
use sample::{Nanos, Responder, ResponderSet};
use std::fs::{File, read_to_string};
use std::io;
use std::os::fd::AsRawFd;
use wire::ports::{self, SAMPLES as DEVICE};
use wire::{Event, Reading};

/// `ONSET_STOP` of driver/onset_wire.h.
const STOP: libc::Ioctl = ports::request(ports::STOP) as libc::Ioctl;
const PARAMETERS: &str = "/sys/module/onset_port/parameters";
/// The longest wait of one look for records. It is short, so that the probe notices a stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The responders of the loaded module, or those of its default if that cannot be read.
pub(super) fn responders() -> ResponderSet {
    let named = parameter("responders").and_then(|names| responders_of(&names));
    named.unwrap_or(ResponderSet::OF_PORT)
}

/// The responders with these names. `None` if a name is unknown, as with a module of another version.
fn responders_of(names: &str) -> Option<ResponderSet> {
    names.split(',').map(|name| name.trim().parse::<Responder>().ok()).collect()
}

/// The CPU of the driver's timer.
pub(super) fn cpu() -> u32 {
    parameter("cpu").and_then(|cpu| cpu.parse().ok()).unwrap_or(0)
}

/// The period that the module was given. If it cannot be read, the module's default of 1 ms.
pub(crate) fn period() -> Nanos {
    let given = parameter("period_ns").and_then(|ns| ns.parse().ok());
    given.map_or(Nanos::from_millis(1), Nanos)
}

fn parameter(name: &str) -> Option<String> {
    let value = read_to_string(format!("{PARAMETERS}/{name}")).ok()?;
    Some(value.trim().to_string()).filter(|value| !value.is_empty())
}

/// Checks that the module is there and triggers with this period. It starts no trigger.
///
/// # Errors
/// The errors of [`Samples::open`].
pub(super) fn check(period: Nanos) -> Result<(), RunError> {
    if let Some(found) = parameter("period_ns").filter(|found| *found != period.0.to_string()) {
        return Err(failure::unavailable(
            "such trigger",
            format!(
                "the module's timer has a period of {found} ns, but the plan asks for {} ns: write that to \
                 {PARAMETERS}/period_ns",
                period.0
            ),
        ));
    }
    std::fs::metadata(DEVICE).map(drop).map_err(|e| refused(&e, period))
}

/// The device with the driver's samples. The timer runs while the device is open.
pub(super) struct Samples {
    device: File,
    buffer: Box<[[u8; Event::BYTES]]>,
}

impl Samples {
    /// Opens the device. The first trigger comes one period later.
    ///
    /// # Errors
    /// If the module is not there, has another period, or is in use. The text says what to do.
    pub(super) fn open(period: Nanos) -> Result<Samples, RunError> {
        check(period)?;
        let device = File::open(DEVICE).map_err(|e| refused(&e, period))?;
        Ok(Samples { device, buffer: vec![[0; Event::BYTES]; 1024].into_boxed_slice() })
    }

    /// Stops the timer. Records that nobody has read yet can still be read.
    pub(super) fn stop(&self) -> Result<(), RunError> {
        // SAFETY: this request takes no argument.
        match unsafe { libc::ioctl(self.device.as_raw_fd(), STOP) } {
            -1 => Err(failure::system("stopping the module's timer")(io::Error::last_os_error())),
            _ => Ok(()),
        }
    }

    /// Waits a moment for records and hands each one to `each`. In a sample the series is the pin, and `at` is the time
    /// on CLOCK_MONOTONIC. Returns false after the last record.
    pub(super) fn look(&mut self, mut each: impl FnMut(Reading)) -> Result<bool, RunError> {
        let failed = |e: Errno| failure::system(DEVICE)(e.into());
        let mut waiting = [PollFd::new(&self.device, PollFlags::IN)];
        match poll(&mut waiting, Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => return Ok(true),
            other => other.map_err(failed)?,
        };
        let bytes = match read(&self.device, self.buffer.as_flattened_mut()) {
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(Errno::IO) => {
                return Err(failure::unavailable(
                    "further trigger",
                    "the CPU of the module's timer went offline; load the module with cpu= and a CPU that stays online",
                ));
            }
            other => other.map_err(failed)?,
        };
        for encoded in &self.buffer[..bytes / Event::BYTES] {
            let Ok(Event::Reading(reading)) = Event::decode(encoded) else {
                return Err(failure::unavailable(
                    "samples",
                    format!(
                        "{DEVICE} gives records that onset cannot read; build the driver and onset from the same source"
                    ),
                ));
            };
            each(reading);
        }
        Ok(bytes > 0)
    }
}

fn refused(error: &io::Error, period: Nanos) -> RunError {
    let remedy = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NXIO | Errno::NODEV) => format!(
            "the driver is not loaded with its own timer as trigger: make -C driver && sudo insmod \
             driver/onset_port.ko trigger=timer period_ns={} (in use with trigger=port: rmmod onset_port first)",
            period.0
        ),
        Some(Errno::BUSY) => {
            "another program reads the device (fuser /dev/onset-samples shows which); end it".into()
        }
        Some(Errno::ACCESS | Errno::PERM) => "the device belongs to root: run with sudo".into(),
        _ => "read the reason in the kernel's log (dmesg)".into(),
    };
    failure::unavailable("trigger", format!("{DEVICE}: {error}: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_responders_of_a_module_are_read_by_name_and_foreign_ones_are_not_guessed() {
        let two = responders_of("hardirq,task\n").map(|set| set.mask());
        assert_eq!(two, Some(0x81));
        assert!(responders_of("hardirq,laser").is_none());
    }

    #[test]
    fn a_missing_module_is_an_error_that_says_how_to_build_and_load_it() {
        let missing = io::Error::from_raw_os_error(libc::ENOENT);
        let text = refused(&missing, Nanos::from_millis(1)).to_string();
        assert!(
            text.contains("make -C driver") && text.contains("trigger=timer period_ns=1000000")
        );
    }
}
