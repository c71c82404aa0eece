// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of series: `[A-Za-z0-9_.+-]{1,64}`. They never change, so that runs can be compared by these names.

use sample::Nanos;

/// A duration, written exactly, in the largest unit in which it is at least 1: `3.25ms`.
pub fn duration(time: Nanos) -> String {
    let (scale, unit) = match time.0 {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (time.0 / scale, time.0 % scale);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// `name` once for each CPU. If there are several CPUs, each name gets the number of its CPU.
pub(crate) fn per_cpu(name: &str, cpus: &[u32]) -> Vec<String> {
    match cpus {
        [_] => vec![name.to_owned()],
        _ => cpus.iter().map(|cpu| format!("{name}-cpu{cpu}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_and_exact() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_500, "1.5us"),
            (50_000, "50us"),
            (3_250_000, "3.25ms"),
            (53_350_000, "53.35ms"),
            (1_000_000_000, "1s"),
            (1_000_000_001, "1.000000001s"),
        ] {
            assert_eq!(duration(Nanos(ns)), text);
            assert_eq!(text.parse(), Ok(Nanos(ns)));
        }
    }

    #[test]
    fn only_several_cpus_are_told_apart() {
        assert_eq!(per_cpu("noise", &[3]), ["noise"]);
        assert_eq!(per_cpu("noise", &[0, 2]), ["noise-cpu0", "noise-cpu2"]);
    }
}
