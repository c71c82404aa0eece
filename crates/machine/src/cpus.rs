// SPDX-License-Identifier: GPL-2.0-or-later
//! Which CPUs are measured, and which do all other work (*keep house*).

use probes::context::{cpu_list, show_cpu_list};

/// The CPUs of a machine by their purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Those on which somebody waits for an answer. They rise.
    pub measured: Vec<u32>,
    /// All others. They rise. None on a machine of one CPU.
    pub housekeeping: Vec<u32>,
}

impl Cpus {
    /// The parts of `online`: those that the user named, or the last one.
    ///
    /// # Errors
    /// If the user's text is no list of CPUs, or names one that is not online; with the remedy.
    pub fn of(online: &[u32], named: Option<&str>) -> Result<Cpus, String> {
        let measured = match named {
            None => online.last().copied().into_iter().collect(),
            Some(text) => cpu_list(text).filter(|cpus| !cpus.is_empty()).ok_or_else(|| {
                format!(
                    "{text:?} is no list of CPUs; write it as the kernel does, for example 1-2,5"
                )
            })?,
        };
        let (there, online_list) = (|cpu: &u32| online.contains(cpu), show_cpu_list(online));
        if let Some(missing) = measured.iter().find(|cpu| !there(cpu)) {
            return Err(format!("CPU {missing} is not online; online are {online_list}"));
        }
        let housekeeping = online.iter().copied().filter(|cpu| !measured.contains(cpu)).collect();
        Ok(Cpus { measured, housekeeping })
    }

    /// A proposed value, with the CPUs of this machine in the place of `{measured}`, `{housekeeping}` and
    /// `{housekeeping_mask}`. `None` if no CPU is left to keep house.
    pub fn fill(&self, value: &str) -> Option<String> {
        if value.contains('{') && self.housekeeping.is_empty() {
            return None;
        }
        let value = value.replace("{measured}", &show_cpu_list(&self.measured));
        let value = value.replace("{housekeeping_mask}", &mask(&self.housekeeping));
        Some(value.replace("{housekeeping}", &show_cpu_list(&self.housekeeping)))
    }
}

/// CPUs as a mask (cpuset(7), "Mask format").
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |cpu| cpu / 32 + 1);
    let word =
        |n: u32| cpus.iter().filter(|cpu| *cpu / 32 == n).fold(0u32, |m, cpu| m | 1 << (cpu % 32));
    let parts: Vec<String> = (0..words).rev().map(|n| format!("{:08x}", word(n))).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cpu_is_measured_unless_the_user_names_others() {
        let cpus = Cpus::of(&[0, 1, 2, 3], None).unwrap();
        assert_eq!((cpus.measured, cpus.housekeeping), (vec![3], vec![0, 1, 2]));
        let cpus = Cpus::of(&[0, 1, 2, 3], Some("1-2")).unwrap();
        assert_eq!((cpus.measured, cpus.housekeeping), (vec![1, 2], vec![0, 3]));
        assert!(Cpus::of(&[0, 1], Some("2")).unwrap_err().contains("online are 0-1"));
        assert!(Cpus::of(&[0, 1], Some("x")).unwrap_err().contains("no list of CPUs"));
        assert!(Cpus::of(&[0, 1], Some("")).is_err());
    }

    #[test]
    fn placeholders_become_cpus_and_a_machine_of_one_cpu_has_none_to_spare() {
        let cpus = Cpus { measured: vec![2, 3], housekeeping: vec![0, 1, 33] };
        assert_eq!(cpus.fill("domain,{measured}").unwrap(), "domain,2-3");
        assert_eq!(cpus.fill("{housekeeping}").unwrap(), "0-1,33");
        assert_eq!(cpus.fill("{housekeeping_mask}").unwrap(), "00000002,00000003");
        let one = Cpus::of(&[0], None).unwrap();
        assert_eq!(one.fill("{measured}"), None);
        assert_eq!(one.fill("120").unwrap(), "120");
    }
}
