// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of `onset census`.

use super::count::several;
use super::table::{Align, Table};
use crate::results::Census;
use lab::census::{Counted, Estimate, ExactQuantiles, Luck, OffShare};
use sample::Nanos;

/// How many rows say what was off. JSON has all.
const ROWS: usize = 8;

/// The distribution, and what follows from it.
pub fn census(census: &Census) -> String {
    let Census { title, responder, counted, .. } = census;
    let Counted { from_ns, until_ns, every_ns, triggers, unanswered, .. } = counted;
    let mut text = format!(
        "{responder} · {title}   a trigger every {every_ns} of {}, from {from_ns} on: {}\n",
        *until_ns - *from_ns,
        several(*triggers, "trial"),
    );
    if *unanswered > 0 {
        text +=
            &format!("  ! {} without an answer of their own\n", several(*unanswered, "trigger"));
    }
    let Some(latency) = counted.latency else { return text };
    text += &quantiles(latency).text();
    text += "\n  what was off when the trigger came\n";
    text += &off(&counted.off).text();
    if let Some(luck) = counted.luck {
        text += &lucky(luck);
    }
    for estimate in &counted.estimates {
        text += &estimated(estimate);
    }
    text
}

fn quantiles(latency: ExactQuantiles) -> Table {
    let ExactQuantiles { min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns } = latency;
    let names = ["min", "p50", "p90", "p99", "p99.9", "max"].map(|name| (name, Align::Right));
    let mut table = Table::new(&names).indented(2);
    table.row([min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns].map(|ns| ns.to_string()));
    table
}

fn off(shares: &[OffShare]) -> Table {
    let columns = [
        ("share", Align::Right),
        ("latency", Align::Right),
        ("to", Align::Right),
        ("off", Align::Left),
        ("by", Align::Left),
    ];
    let mut table = Table::new(&columns).indented(2).sparing(&["by"]);
    let time = |ns: Option<Nanos>| ns.map_or("none".into(), |ns| ns.to_string());
    for share in shares.iter().take(ROWS) {
        table.row([
            format!("{:.2} %", 100.0 * share.share),
            time(share.min_ns),
            time(share.max_ns),
            share.kind.clone(),
            share.by.join(" < "),
        ]);
    }
    table
}

fn lucky(luck: Luck) -> String {
    format!(
        "\n  one random trigger in {:.0} is answered after {} or later; such an answer has come with even chance after {}\n",
        1.0 / luck.share,
        luck.from_ns,
        several(luck.even_after, "random trigger"),
    )
}

fn estimated(estimate: &Estimate) -> String {
    let Estimate { off, drawn, refused, once_in, estimated_ns, true_ns } = estimate;
    let of = off.as_ref().map_or(String::new(), |off| format!(" with {off}"));
    let drawn = several(*drawn, "random trigger");
    match (estimated_ns, refused) {
        (Some(ns), _) => format!(
            "  an extreme-value estimate from {drawn}{of}: one answer in {once_in} is later than {ns}; the latest of {once_in} takes {true_ns}\n"
        ),
        (None, why) => {
            let why = why.as_deref().unwrap_or_default();
            format!("  no extreme-value estimate from {drawn}{of}: {why}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_is_told_with_its_causes_its_luck_and_its_estimates() {
        let ns = |us: u64| Nanos(us * 1_000);
        let counted = Counted {
            from_ns: ns(950),
            until_ns: ns(1_050),
            every_ns: Nanos(10),
            triggers: 10_001,
            unanswered: 1,
            latency: Some(ExactQuantiles {
                min_ns: ns(4),
                p50_ns: ns(5),
                p90_ns: ns(6),
                p99_ns: ns(9),
                p999_ns: ns(11),
                max_ns: ns(12),
            }),
            off: vec![OffShare {
                kind: "irqs_off".into(),
                by: vec!["lock".into(), "queue".into()],
                triggers: 100,
                share: 0.01,
                min_ns: Some(ns(5)),
                max_ns: Some(ns(12)),
            }],
            luck: Some(Luck { from_ns: ns(12), share: 0.002, even_after: 347 }),
            estimates: vec![
                Estimate {
                    off: None,
                    drawn: 1_000,
                    refused: Some("the causes mix".into()),
                    once_in: 10_000,
                    estimated_ns: None,
                    true_ns: ns(12),
                },
                Estimate {
                    off: Some("irqs_off lock".into()),
                    drawn: 600,
                    refused: None,
                    once_in: 6_000,
                    estimated_ns: Some(ns(14)),
                    true_ns: ns(12),
                },
            ],
        };
        let title = "6.12-rt · mixed".to_string();
        let text =
            super::census(&Census { schema: Census::SCHEMA, title, responder: "task", counted });
        for said in [
            "a trigger every 10 ns of 100 µs, from 950 µs on: 10001 trials",
            "! 1 trigger without an answer",
            "1.00 %",
            "lock < queue",
            "one random trigger in 500 is answered after 12.0 µs or later",
            "after 347 random triggers",
            "no extreme-value estimate from 1000 random triggers: the causes mix",
            "with irqs_off lock: one answer in 6000 is later than 14.0 µs; the latest of 6000 takes 12.0 µs",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
    }
}
