// SPDX-License-Identifier: GPL-2.0-or-later
//! The next steps after a run that failed.

use bundle::{Bundle, Experiment, Manifest};
use lab::followed::{option, shell_word};
use probes::Sampled;
use stats::Verdict;
use std::path::Path;

/// The next command for each run that failed, each command once.
pub fn next_steps(bundles: &[Bundle]) -> String {
    let failed = bundles.iter().filter(|b| b.manifest().conclusion.verdict == Verdict::Fail);
    let mut steps: Vec<String> = Vec::new();
    for step in failed.flat_map(|bundle| of_run(bundle.manifest(), bundle.path())) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    match steps.is_empty() {
        true => String::new(),
        false => format!("Next:\n  {}\n", steps.join("\n  ")),
    }
}

fn of_run(manifest: &Manifest, path: &Path) -> Vec<String> {
    let mut findings = manifest.conclusion.findings.iter();
    let Some(worst) = findings.find(|finding| finding.verdict() == Verdict::Fail) else {
        return Vec::new();
    };
    let Experiment { trigger, probe, .. } = &manifest.about.experiment;
    match (trigger, probe) {
        // Only in the rig can onset see where time went.
        (Some(_), _) => vec![explain(path, worst.responder().as_str())],
        (None, Some(plan)) if manifest.about.target == "local" => {
            let cpus: Vec<String> = plan.cpus.iter().map(u32::to_string).collect();
            vec![
                "onset doctor".into(),
                format!("onset measure noise --cpus {} --duration 10s", cpus.join(",")),
            ]
        }
        (None, Some(plan))
            if !matches!(plan.probe.sampled(worst.responder().as_str()), Sampled::Other(_)) =>
        {
            vec![explain(path, worst.responder().as_str())]
        }
        _ => vec![format!("onset report {}", shell_word(path))],
    }
}

fn explain(path: &Path, series: &str) -> String {
    format!("onset explain {} {} {series}", shell_word(path), option(series))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::Conclusion;
    use bundle::examples::manifest_of;
    use sample::{Nanos, Responder};
    use stats::{Limit, Statistic};

    #[test]
    fn a_run_that_failed_names_the_next_command_and_one_that_passed_does_not() {
        let mut manifest = manifest_of("6.12", &["task"]);
        let mut judged = |bound: Nanos| {
            let limit = Limit::at_most(Responder::Task.into(), Statistic::Max, bound);
            manifest.conclusion = Conclusion::of(&manifest.series, &[], vec![limit], Vec::new());
            of_run(&manifest, Path::new("onset-runs/a run"))
        };
        assert_eq!(judged(Nanos(1)), ["onset explain 'onset-runs/a run' --responder task"]);
        assert!(judged(Nanos::from_millis(1_000)).is_empty());
        manifest.about.target = "local".into();
        manifest.about.experiment.trigger = None;
        let limit = Limit::at_most(Responder::Task.into(), Statistic::Max, Nanos(1));
        manifest.conclusion = Conclusion::of(&manifest.series, &[], vec![limit], Vec::new());
        assert_eq!(of_run(&manifest, Path::new("x")), ["onset report x"]);
    }
}
