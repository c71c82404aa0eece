// SPDX-License-Identifier: GPL-2.0-or-later
//! `periodic` by the interval timer. Its signal goes to any thread of the process that does not block it, and the
//! threads of the test harness do not; so this is a program of its own.

#[allow(dead_code)] // Not all of what the other tests use.
mod collect;

use collect::{measured, policy};
use probes::plan::{Overrun, Periodic, SleepMethod};
use probes::{Plan, Probe};
use sample::Nanos;

fn main() {
    for (period, overrun) in [
        (Nanos::from_millis(1), Overrun::Skip),
        (Nanos::from_micros(20), Overrun::Skip),
        (Nanos::from_micros(20), Overrun::CatchUp),
    ] {
        let periodic = Periodic {
            methods: vec![SleepMethod::Itimer],
            periods: vec![period],
            count: 500,
            overrun,
            migrate: false,
            slack: Nanos(1),
        };
        let cpus = rt::allowed_cpus().expect("an affinity");
        let plan = Plan {
            probe: Probe::Periodic(periodic),
            policy: policy(),
            cpus,
            pm_qos: false,
            program: None,
        };
        assert_eq!(plan.series().len(), 1, "a process has one interval timer");
        let (all, report) = measured(&plan).expect("measured");
        assert_eq!(all[0].events(), 500, "{:?}", all[0].losses);
        assert_eq!(all[0].losses.tainted, 0);
        println!(
            "{}: {:?}, median {}, {report:?}",
            all[0].name,
            all[0].losses,
            all[0].latency_median()
        );
    }
}
