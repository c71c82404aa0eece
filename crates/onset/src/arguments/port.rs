// SPDX-License-Identifier: GPL-2.0-or-later
//! The port of a machine on which the driver answers, as a user names it.

use std::fmt;
use std::str::FromStr;

/// Where the driver gets its triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A parallel port by the number that the kernel gives it: `parport0`.
    Parallel(u32),
    /// A parallel port by its first I/O port and its interrupt.
    ParallelAt {
        /// The first I/O port.
        address: u16,
        /// The interrupt.
        irq: u32,
    },
    /// A line of a GPIO chip: `gpiochip0:17`.
    Gpio {
        /// The number in the name of the chip's device.
        chip: u32,
        /// The line's number on the chip.
        line: u16,
    },
}

/// The text names no port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPort;

impl fmt::Display for NoPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a port is parport0, parport:ADDRESS:IRQ with the address in hexadecimal, or a line of a GPIO chip as in gpiochip0:17",
        )
    }
}

impl std::error::Error for NoPort {}

impl FromStr for Port {
    type Err = NoPort;

    fn from_str(text: &str) -> Result<Port, NoPort> {
        let name = text.strip_prefix("/dev/").unwrap_or(text);
        let port = match name.split(':').collect::<Vec<_>>()[..] {
            ["parport", address, irq] => address
                .strip_prefix("0x")
                .and_then(|digits| u16::from_str_radix(digits, 16).ok())
                .zip(number(irq))
                .map(|(address, irq)| Port::ParallelAt { address, irq }),
            [chip, line] => chip
                .strip_prefix("gpiochip")
                .and_then(number)
                .zip(number(line))
                .map(|(chip, line)| Port::Gpio { chip, line }),
            [name] => name.strip_prefix("parport").and_then(number).map(Port::Parallel),
            _ => None,
        };
        port.ok_or(NoPort)
    }
}

/// A number in digits alone: `parse` takes a sign, too.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Port::Parallel(number) => write!(f, "parport{number}"),
            Port::ParallelAt { address, irq } => write!(f, "parport:{address:#x}:{irq}"),
            Port::Gpio { chip, line } => write!(f, "gpiochip{chip}:{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_as_the_kernel_names_it_and_shows_so() {
        let gpio = Port::Gpio { chip: 0, line: 17 };
        let at = Port::ParallelAt { address: 0xe010, irq: 16 };
        for (text, port) in
            [("gpiochip0:17", gpio), ("parport1", Port::Parallel(1)), ("parport:0xe010:16", at)]
        {
            assert_eq!(text.parse(), Ok(port));
            assert_eq!(port.to_string(), text);
        }
        assert_eq!("/dev/gpiochip0:17".parse(), Ok(gpio));
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for text in [
            "",
            "gpiochip0",
            "gpiochip:3",
            "gpiochip0:",
            "gpiochip0:+1",
            "gpiochip0:65536",
            "gpiochip0:1:2",
            "parport",
            "parport:378:7",
            "parport:0x378",
            "parport:0x12345:7",
            "com1",
        ] {
            assert_eq!(text.parse::<Port>(), Err(NoPort), "{text}");
        }
    }
}
