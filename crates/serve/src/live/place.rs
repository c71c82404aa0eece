// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a page may have a generator. Everybody who reaches the page can name a place, and opening a device writes to
//! it as the user who serves the page. So a place is a serial device or HOST:PORT, and no other file.

/// Directories of serial devices: links that udev makes, by name and by socket.
const LINKS: [&str; 2] = ["/dev/serial/by-id/", "/dev/serial/by-path/"];

/// Why a place is none for a generator of the page.
pub(super) fn check(place: &str) -> Result<(), String> {
    match is_serial(place) || is_address(place) {
        true => Ok(()),
        false => Err(format!(
            "{place:?} is no place of a generator: name HOST:PORT, or a serial device, as in 127.0.0.1:7010 or \
             /dev/ttyACM0"
        )),
    }
}

fn is_serial(place: &str) -> bool {
    // /dev/tty is the terminal of onset itself, and /dev/tty1 a console.
    let device = place.strip_prefix("/dev/tty");
    let device = device.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    let name = device.or_else(|| LINKS.iter().find_map(|links| place.strip_prefix(links)));
    name.is_some_and(|name| !name.is_empty() && !name.contains('/') && name != "." && name != "..")
}

fn is_address(place: &str) -> bool {
    let Some((host, port)) = place.rsplit_once(':') else { return false };
    !host.is_empty() && !place.contains('/') && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_serial_device_or_an_address_and_no_other_file() {
        for place in [
            "127.0.0.1:7010",
            "[::1]:7010",
            "bench.example:1",
            "/dev/ttyACM0",
            "/dev/ttymxc3",
            "/dev/serial/by-id/usb-Raspberry_Pi_Pico-if00",
            "/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0",
        ] {
            assert_eq!(check(place), Ok(()), "{place}");
        }
        for place in [
            "",
            "x",
            ":7010",
            "127.0.0.1:",
            "127.0.0.1:70100",
            "/dev/sda",
            "/dev/tty",
            "/dev/tty1",
            "/dev/ttyS0/../sda",
            "/dev/serial/by-id/",
            "/dev/serial/by-id/..",
            "/dev/serial/by-id/../../sda",
            "/dev/serial/../sda",
            "/etc/hostname:1",
            "./ttyACM0",
        ] {
            let why = check(place).expect_err(place);
            assert!(why.contains("HOST:PORT") && why.contains("/dev/ttyACM0"), "{why}");
        }
    }
}
