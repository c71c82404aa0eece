// SPDX-License-Identifier: GPL-2.0-or-later
//! The warnings that follow from the numbers of a run.

use super::Warning;
use stats::{Finding, Quantile, Reason, Statistic, Summary, Tolerance};

impl Warning {
    /// The warnings that follow from the losses of a summary, in the order of the losses. Dropped records belong to the
    /// run ([`Warning::ChannelDropped`]), so they are not repeated for each responder.
    pub fn of_losses(summary: &Summary) -> Vec<Warning> {
        let losses = &summary.losses;
        let responder = || summary.responder.clone();
        let mut warnings = Vec::new();
        if losses.unanswered > 0 {
            warnings
                .push(Warning::Unanswered { responder: responder(), triggers: losses.unanswered });
        }
        if losses.superseded > 0 {
            warnings
                .push(Warning::Superseded { responder: responder(), triggers: losses.superseded });
        }
        if losses.spurious > 0 {
            warnings.push(Warning::Spurious { responder: responder(), edges: losses.spurious });
        }
        if losses.tainted > 0 {
            warnings.push(Warning::Tainted { responder: responder(), edges: losses.tainted });
        }
        if losses.overrun > 0 {
            warnings.push(Warning::Overrun { responder: responder(), periods: losses.overrun });
        }
        warnings
    }

    /// The doubt that a finding raises: too few samples for a quantile with a limit, or few samples for a maximum that
    /// kept its limit, or for a deadline that was missed no more often than it may be. Few samples are those that do
    /// not support p99.9. A limit on a share says itself how many events it takes.
    pub fn of_finding(finding: &Finding, summaries: &[Summary]) -> Option<Warning> {
        let responder = finding.responder().clone();
        let count = summaries.iter().find(|s| s.responder == responder)?.count;
        let is_few = !Quantile::P999.supported_by(count);
        let quantile = match finding {
            Finding::Statistic(finding) => match (finding.statistic, finding.reason) {
                (Statistic::Quantile(quantile), Reason::TooFewSamples) => Some(quantile),
                (Statistic::Max, Reason::Within) if is_few => None,
                _ => return None,
            },
            Finding::Deadline(finding) => match (finding.tolerance, finding.reason) {
                (Tolerance::Share { .. }, _) => return None,
                (_, Reason::Within) if is_few => None,
                _ => return None,
            },
        };
        Some(match quantile.map(|quantile| quantile.name().to_owned()) {
            Some(quantile) => Warning::TooFewSamples { responder, quantile, count },
            None => Warning::MaximumOfFew { responder, count },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Conclusion;
    use crate::examples::manifest_of;
    use sample::Nanos;
    use stats::Limit;

    #[test]
    fn what_a_probe_could_not_hand_over_makes_its_run_invalid_once() {
        let mut series = manifest_of("6.12", &["task", "hardirq"]).series;
        series[0].losses.dropped = 2;
        series[1].losses.dropped = 1;
        let of = |warnings| Conclusion::of(&series, &[], Vec::new(), warnings);
        let dropped = |records| Warning::ChannelDropped { records };
        let conclusion = of(Vec::new());
        assert_eq!(conclusion.warnings, [dropped(3)]);
        assert_eq!(conclusion.verdict, stats::Verdict::Invalid);
        // The channel has counted them already.
        assert_eq!(of(vec![dropped(9)]).warnings, [dropped(9)]);
    }

    #[test]
    fn a_maximum_that_kept_its_limit_is_doubted_where_few_samples_were_made_and_a_failed_one_is_not()
     {
        let mut series = manifest_of("6.12", &["task"]).series;
        let mut codes = |count: u64, bound: Nanos| -> Vec<&'static str> {
            series[0].count = count;
            let limit = Limit::at_most(series[0].responder.clone(), Statistic::Max, bound);
            let conclusion = Conclusion::of(&series, &[], vec![limit], Vec::new());
            conclusion.warnings.iter().map(Warning::code).collect()
        };
        let high = Nanos::from_millis(1);
        assert_eq!(codes(999, high), ["maximum_of_few"]);
        assert!(codes(1_000, high).is_empty());
        assert!(codes(10, Nanos(1)).is_empty());
    }
}
