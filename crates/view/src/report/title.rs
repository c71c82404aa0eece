// SPDX-License-Identifier: GPL-2.0-or-later
//! The title of a report: the experiments. For runs on a machine also its name, its processor, the CPUs and the
//! duration.

use super::Material;
use bundle::{Bundle, Manifest};
use probes::context::{keys, show_cpu_list};
use sample::Nanos;
use std::collections::BTreeSet;

/// The title of the experiment; for several, the first title and how many more there are. For runs on a machine, also
/// the machine.
pub fn title(Material { bundles, hunts, proof, .. }: &Material) -> String {
    let mut titles: Vec<&str> = Vec::new();
    for bundle in *bundles {
        let title = bundle.manifest().about.title.as_str();
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let title = match titles[..] {
        [] if hunts.is_empty() => {
            let kernels = proof.iter().flat_map(|proof| &proof.kernels);
            let kernels: Vec<&str> = kernels.map(|kernel| kernel.flavour.as_str()).collect();
            format!("What each knob does: {}", kernels.join("; "))
        }
        [] => {
            let cells = hunts.iter().map(|h| &h.kept.about);
            let cells = cells.map(|about| format!("{} · {}", about.flavour, about.loads()));
            format!("Hunt: {}", cells.collect::<Vec<_>>().join("; "))
        }
        [title] => title.into(),
        [first, second] => format!("{first}; {second}"),
        [first, ..] => format!("{first}, and {} more experiments", titles.len() - 1),
    };
    let machine = machine(bundles.iter().map(Bundle::manifest));
    machine.map_or_else(|| title.clone(), |machine| format!("{title} · {machine}"))
}

/// `host, processor, CPU 2-3, 10.0 s`, as far as the runs say; `None` if no run was on a machine. Values that differ
/// are named for each run; of the durations, the shortest and the longest.
fn machine<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> Option<String> {
    let local: Vec<&Manifest> = manifests.filter(|m| m.about.target == "local").collect();
    let host = |m: &Manifest| m.about.kernel.as_ref()?.reported.get(keys::HOST).cloned();
    let processor = |m: &Manifest| m.about.machine.as_ref().map(|machine| machine.cpu.clone());
    let cpus = local.iter().filter_map(|m| m.about.experiment.probe.as_ref());
    let cpus: BTreeSet<u32> = cpus.flat_map(|plan| plan.cpus.iter().copied()).collect();
    let cpus: Vec<u32> = cpus.into_iter().collect();
    let times = || local.iter().filter_map(|m| m.samples.until);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(distinct(local.iter().filter_map(|m| host(m))));
    parts.extend(distinct(local.iter().filter_map(|m| processor(m))));
    parts.extend((!cpus.is_empty()).then(|| format!("CPU {}", show_cpu_list(&cpus))));
    parts.extend(times().min().zip(times().max()).map(|(least, most)| span(least, most)));
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn distinct(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: BTreeSet<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.into_iter().collect::<Vec<_>>().join("; "))
}

fn span(least: Nanos, most: Nanos) -> String {
    let (least, most) = (least.to_string(), most.to_string());
    if least == most { most } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::examples::manifest_of;

    fn on_a_machine(until_ms: u64) -> Manifest {
        let mut manifest = manifest_of("6.12.57-amd64", &["clock_nanosleep-1ms"]);
        manifest.about.target = "local".into();
        let kernel = manifest.about.kernel.as_mut().expect("a kernel");
        kernel.reported.insert(keys::HOST.into(), "lathe".into());
        manifest.about.machine.as_mut().expect("a machine").cpu = "A CPU".into();
        manifest.samples.until = Some(Nanos::from_millis(until_ms));
        manifest
    }

    #[test]
    fn runs_of_a_machine_are_titled_by_host_processor_and_duration_and_those_of_the_rig_are_not() {
        let rig = manifest_of("6.12", &["task"]);
        assert_eq!(machine([&rig].into_iter()), None);
        let (short, long) = (on_a_machine(100), on_a_machine(10_000));
        assert_eq!(machine([&rig, &long].into_iter()).as_deref(), Some("lathe, A CPU, 10.0 s"));
        let both = machine([&short, &long].into_iter());
        assert_eq!(both.as_deref(), Some("lathe, A CPU, 100 ms to 10.0 s"));
    }
}
