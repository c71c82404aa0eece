// SPDX-License-Identifier: GPL-2.0-or-later
//! What the kernel says of a GPIO chip and of its lines, through the chip's character device (linux/gpio.h, version 2
//! of the interface). Nothing is taken here: a line that is free now may be in use a moment later.

use crate::report::RunError;
use crate::toggle::line::{iowr, last_errno};
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const CHIP_INFO: libc::Ioctl =
    (2 << 30 | (size_of::<ChipInfo>() as u32) << 16 | 0xb4 << 8 | 0x01) as libc::Ioctl;
const LINE_INFO: libc::Ioctl = iowr(0x05, size_of::<LineInfo>());
/// `GPIO_V2_LINE_FLAG_USED`.
const USED: u64 = 1 << 0;

/// `struct gpiochip_info`.
#[repr(C)]
struct ChipInfo {
    name: [u8; 32],
    label: [u8; 32],
    lines: u32,
}

/// `struct gpio_v2_line_info`.
#[repr(C)]
struct LineInfo {
    name: [u8; 32],
    consumer: [u8; 32],
    offset: u32,
    _attributes: u32,
    flags: u64,
    _attribute: [[u64; 2]; 10],
    _padding: [u32; 4],
}

/// A GPIO chip.
pub struct Chip {
    device: std::fs::File,
    path: PathBuf,
    /// By this label drivers find the chip. Another chip may have the same one.
    pub label: String,
    /// The number of its lines.
    pub lines: u32,
}

impl Chip {
    /// Opens the chip's device, for example `/dev/gpiochip0`.
    ///
    /// # Errors
    /// If there is no such device, the user may not open it, or it is no GPIO chip. The text says what to do.
    pub fn open(path: &Path) -> Result<Chip, RunError> {
        let none = |reason| RunError::Unavailable { what: path.display().to_string(), reason };
        let device = OpenOptions::new().read(true).write(true).open(path).map_err(|e| {
            none(format!(
                "{e}; ls -l /dev/gpiochip* shows the chips, and the group that may use each"
            ))
        })?;
        let mut info = ChipInfo { name: [0; 32], label: [0; 32], lines: 0 };
        // SAFETY: this request fills such a structure, which lives through the call.
        if unsafe { libc::ioctl(device.as_raw_fd(), CHIP_INFO, &raw mut info) } != 0 {
            return Err(none(match last_errno() {
                Errno::NOTTY => "that file is no GPIO chip".to_owned(),
                errno => errno.to_string(),
            }));
        }
        Ok(Chip { device, path: path.into(), label: text(&info.label), lines: info.lines })
    }

    /// Who uses a line: the name that the user of the line gave. `None` if the line is free.
    ///
    /// # Errors
    /// If the chip has no such line.
    pub fn user_of(&self, line: u32) -> Result<Option<String>, RunError> {
        let mut info = LineInfo {
            name: [0; 32],
            consumer: [0; 32],
            offset: line,
            _attributes: 0,
            flags: 0,
            _attribute: [[0; 2]; 10],
            _padding: [0; 4],
        };
        if line >= self.lines {
            return Err(RunError::Unavailable {
                what: format!("line {line} of {}", self.path.display()),
                reason: format!("the chip {} has the lines 0 to {}", self.label, self.lines - 1),
            });
        }
        // SAFETY: this request reads and fills such a structure, which lives through the call.
        match unsafe { libc::ioctl(self.device.as_raw_fd(), LINE_INFO, &raw mut info) } {
            0 => Ok((info.flags & USED != 0).then(|| text(&info.consumer))),
            _ => Err(RunError::System { call: "GPIO_V2_GET_LINEINFO_IOCTL", errno: last_errno() }),
        }
    }
}

/// A name of the kernel, which ends with a NUL.
fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_numbers_and_sizes_of_the_kernels_header() {
        // The values that linux/gpio.h of 6.12 gives to a C compiler.
        assert_eq!((size_of::<ChipInfo>(), size_of::<LineInfo>()), (68, 256));
        assert_eq!((CHIP_INFO as u32, LINE_INFO as u32), (0x8044_b401, 0xc100_b405));
    }

    #[test]
    fn a_file_that_is_no_chip_is_refused_by_name() {
        for path in ["/dev/null", "/nowhere"] {
            let Err(RunError::Unavailable { what, .. }) = Chip::open(Path::new(path)) else {
                panic!("{path} has lines")
            };
            assert_eq!(what, path);
        }
    }

    #[test]
    fn a_name_ends_at_its_nul_or_fills_its_place() {
        assert_eq!(text(b"pinctrl\0\0x"), "pinctrl");
        assert_eq!(text(b"full"), "full");
    }
}
