// SPDX-License-Identifier: GPL-2.0-or-later
//! The energy that the processors of this machine take, as the kernel counts it (Documentation/power/powercap).

use std::path::Path;

/// The counter's name, in µJ.
pub const COUNTER: &str = "machine.energy_uj";
/// Where the kernel shows the zones of energy.
pub const ZONES: &str = "/sys/class/powercap";

/// The energy of all processor packages, in µJ: the zones `intel-rapl:N`, which AMD's processors have, too. The zones
/// within them are parts of the same energy. `None` where there is none, or where it cannot be read. The kernel's
/// number begins anew after some hours.
pub fn of_packages(zones: &Path) -> Option<u64> {
    let names =
        std::fs::read_dir(zones).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok());
    let is_package = |name: &String| {
        let number = name.strip_prefix("intel-rapl:");
        number
            .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
    };
    let read = |name: String| -> Option<u64> {
        std::fs::read_to_string(zones.join(name).join("energy_uj")).ok()?.trim().parse().ok()
    };
    let packages: Vec<u64> = names.filter(is_package).map(read).collect::<Option<_>>()?;
    (!packages.is_empty()).then(|| packages.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_added_up_and_their_parts_are_not() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(of_packages(root.path()), None);
        assert_eq!(of_packages(&root.path().join("missing")), None);
        for (zone, energy) in
            [("intel-rapl:0", "70\n"), ("intel-rapl:1", "5\n"), ("intel-rapl:0:0", "9\n")]
        {
            std::fs::create_dir(root.path().join(zone)).unwrap();
            std::fs::write(root.path().join(zone).join("energy_uj"), energy).unwrap();
        }
        std::fs::create_dir(root.path().join("intel-rapl")).unwrap();
        assert_eq!(of_packages(root.path()), Some(75));
        // Half of the machine would look like the whole.
        std::fs::remove_file(root.path().join("intel-rapl:1/energy_uj")).unwrap();
        assert_eq!(of_packages(root.path()), None);
    }
}
