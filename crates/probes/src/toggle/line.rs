// SPDX-License-Identifier: GPL-2.0-or-later
//! The lines that the probe `toggle` can use: a variable, a line of a GPIO chip, and elsewhere a pin of the parallel
//! port ([`parallel_port`](crate::x86_64::parallel_port)).

use crate::report::RunError;
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A line with two levels.
pub(crate) trait Level {
    /// Sets the level, and returns when the level is set as far as the processor knows.
    fn set(&mut self, high: bool) -> Result<(), RunError>;
}

/// A variable that nobody else looks at. Only the program's own jitter remains in the results.
pub(super) struct Memory(AtomicBool);

impl Memory {
    pub(super) fn new() -> Memory {
        Memory(AtomicBool::new(false))
    }
}

impl Level for Memory {
    #[inline]
    fn set(&mut self, high: bool) -> Result<(), RunError> {
        std::hint::black_box(&self.0).store(high, Ordering::Release);
        Ok(())
    }
}

/// A line of a GPIO chip through its character device (linux/gpio.h, version 2 of the interface).
pub(super) struct Gpio(OwnedFd);

const LINES_MAX: usize = 64;
const GET_LINE: libc::Ioctl = iowr(0x07, size_of::<LineRequest>());
const SET_VALUES: libc::Ioctl = iowr(0x0f, size_of::<LineValues>());
/// `GPIO_V2_LINE_FLAG_OUTPUT`.
const OUTPUT: u64 = 1 << 3;

/// `_IOWR(0xB4, number, …)` (asm-generic/ioctl.h).
pub(crate) const fn iowr(number: u32, bytes: usize) -> libc::Ioctl {
    (3 << 30 | (bytes as u32) << 16 | 0xb4 << 8 | number) as libc::Ioctl
}

/// `struct gpio_v2_line_request`, with the fields of its `config` in place of `config`.
#[repr(C)]
struct LineRequest {
    offsets: [u32; LINES_MAX],
    consumer: [u8; 32],
    flags: u64,
    attributes: u32,
    _padding: [u32; 5],
    _attributes: [[u64; 3]; 10],
    lines: u32,
    _event_buffer: u32,
    _reserved: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

impl Gpio {
    /// Takes the line as an output with a low level. The kernel gets the line back when the value is dropped.
    pub(super) fn open(chip: &str, offset: u32) -> Result<Gpio, RunError> {
        let none = |reason: String| RunError::Unavailable {
            what: format!("line {offset} of {chip}"),
            reason,
        };
        let device = OpenOptions::new().read(true).write(true).open(chip).map_err(|e| {
            none(format!(
                "{e}; ls -l /dev/gpiochip* shows the chips, and the group that may use each"
            ))
        })?;
        let mut request = LineRequest {
            offsets: [0; LINES_MAX],
            consumer: [0; 32],
            flags: OUTPUT,
            attributes: 0,
            _padding: [0; 5],
            _attributes: [[0; 3]; 10],
            lines: 1,
            _event_buffer: 0,
            _reserved: [0; 5],
            fd: -1,
        };
        request.offsets[0] = offset;
        request.consumer[..5].copy_from_slice(b"onset");
        // SAFETY: this request takes such a structure, which lives through the call.
        if unsafe { libc::ioctl(device.as_raw_fd(), GET_LINE, &raw mut request) } != 0 {
            return Err(none(match last_errno() {
                Errno::BUSY => "another program uses the line (gpioinfo shows which); end it, or take another line".to_owned(),
                Errno::INVAL => "the chip has no such line, or the line is no output".to_owned(),
                Errno::NOTTY => "that file is no GPIO chip, or the kernel is older than 5.10".to_owned(),
                errno => errno.to_string(),
            }));
        }
        // SAFETY: the kernel made this descriptor for this process.
        Ok(Gpio(unsafe { OwnedFd::from_raw_fd(request.fd) }))
    }
}

impl Level for Gpio {
    #[inline]
    fn set(&mut self, high: bool) -> Result<(), RunError> {
        let mut values = LineValues { bits: high.into(), mask: 1 };
        // SAFETY: this request takes such a structure, which lives through the call.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), SET_VALUES, &raw mut values) } {
            0 => Ok(()),
            _ => {
                Err(RunError::System { call: "GPIO_V2_LINE_SET_VALUES_IOCTL", errno: last_errno() })
            }
        }
    }
}

pub(crate) fn last_errno() -> Errno {
    // SAFETY: the pointer is to the errno of this thread.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_numbers_and_sizes_of_the_kernels_header() {
        // The values that linux/gpio.h of 6.12 gives to a C compiler.
        assert_eq!(size_of::<LineRequest>(), 592);
        assert_eq!((GET_LINE as u32, SET_VALUES as u32), (0xc250_b407, 0xc010_b40f));
    }

    #[test]
    fn a_file_that_is_no_chip_is_refused_by_name() {
        for chip in ["/dev/null", "/nowhere"] {
            let Err(RunError::Unavailable { what, .. }) = Gpio::open(chip, 3) else {
                panic!("{chip} has lines")
            };
            assert_eq!(what, format!("line 3 of {chip}"));
        }
    }
}
