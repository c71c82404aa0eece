// SPDX-License-Identifier: GPL-2.0-or-later
//! How long a network card waits before it interrupts: its coalescing, which ethtool(8) reads and changes.

use crate::System;
use std::io;

/// The program.
const ETHTOOL: &str = "/usr/sbin/ethtool";

/// The names of the network interfaces that belong to a device.
pub(crate) fn interfaces(system: &System) -> Vec<String> {
    let devices = system.matching("/sys/class/net/*/device");
    devices.iter().filter_map(|path| path.split('/').nth(4)).map(str::to_owned).collect()
}

/// Whether the program is there.
pub(crate) fn is_readable(system: &System) -> bool {
    system.program(ETHTOOL).is_some()
}

/// The value of a setting (`rx-usecs`, `rx-frames`, `adaptive-rx`). `None` if the card, or its driver, lacks it.
pub(crate) fn read(system: &System, interface: &str, setting: &str) -> Option<String> {
    value(&system.run(ETHTOOL, &["--show-coalesce", interface]).ok()?, setting)
}

/// Gives a setting a value.
///
/// # Errors
/// What the driver says against it, by ethtool.
pub(crate) fn write(
    system: &System,
    interface: &str,
    setting: &str,
    value: &str,
) -> io::Result<()> {
    let given = system.run(ETHTOOL, &["--coalesce", interface, setting, value.trim()]);
    given.map(drop).map_err(io::Error::other)
}

/// A setting in what ethtool prints: lines like `rx-usecs: 3`, and `Adaptive RX: off  TX: off`.
fn value(text: &str, setting: &str) -> Option<String> {
    let label = match setting {
        "adaptive-rx" => "Adaptive RX",
        other => other,
    };
    let is_of = |line: &&str| line.split(':').next().is_some_and(|name| name.trim() == label);
    let after = text.lines().find(is_of)?.split_once(':')?.1;
    let value = after.split_whitespace().next()?;
    (value != "n/a").then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_by_its_name_and_what_the_card_lacks_is_none() {
        let text = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nrx-usecs:\t3\n\
                    rx-usecs-irq:\tn/a\nrx-frames: 32\n";
        let values = ["adaptive-rx", "rx-usecs", "rx-frames", "rx-usecs-irq", "tx-usecs"];
        let values = values.map(|setting| value(text, setting));
        let found = ["off", "3", "32"].map(|value| Some(value.to_owned()));
        assert_eq!(values, [&found[..], &[None, None]].concat()[..]);
    }
}
