// SPDX-License-Identifier: GPL-2.0-or-later
//! Two runs side by side: per responder and statistic, before, after, and the difference.

use super::company::company;
use super::table::{Align, Table};
use crate::bundle::Manifest;
use crate::company::unequal;
use sample::Nanos;
use stats::{Mismatch, compare};

/// The comparison as text.
///
/// # Errors
/// Runs of different clocks are refused.
pub fn comparison(before: &Manifest, after: &Manifest) -> Result<String, Mismatch> {
    let name = |m: &Manifest| {
        format!("{} · {} · seed {} ({})", m.about.flavour, m.about.load, m.about.seed, m.run)
    };
    let mut text = format!("before  {}\nafter   {}\n\n", name(before), name(after));
    let columns = [
        ("responder", Align::Left),
        ("statistic", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("difference", Align::Right),
        ("", Align::Right),
    ];
    let mut table = Table::new(&columns);
    let mut only = Vec::new();
    for one in &before.series {
        let Some(other) = after.series.iter().find(|s| s.responder == one.responder) else {
            only.push(format!("{} is only in the run before", one.responder));
            continue;
        };
        let comparison = compare(one, other)?;
        let losses = (comparison.losses.0.total(), comparison.losses.1.total());
        for (row, difference) in comparison.differences.iter().enumerate() {
            let responder = if row == 0 { one.responder.to_string() } else { String::new() };
            table.row([
                responder,
                difference.statistic.to_string(),
                time(difference.before_ns),
                time(difference.after_ns),
                difference.absolute_ns().map_or_else(|| "–".into(), signed),
                difference
                    .relative()
                    .map_or_else(|| "–".into(), |r| format!("{:+.1} %", r * 100.0)),
            ]);
        }
        let lost = losses.1 as i128 - losses.0 as i128;
        table.row([
            "".into(),
            "lost".into(),
            losses.0.to_string(),
            losses.1.to_string(),
            format!("{lost:+}"),
            "".into(),
        ]);
    }
    let missing =
        after.series.iter().filter(|s| !before.series.iter().any(|b| b.responder == s.responder));
    only.extend(missing.map(|s| format!("{} is only in the run after", s.responder)));
    table.lines().iter().for_each(|line| text += &format!("{line}\n"));
    only.iter().for_each(|line| text += &format!("{line}\n"));
    if let Some(unequal) = unequal([before, after]) {
        text += &company(&unequal);
    }
    let same = before.samples.blake3 == after.samples.blake3;
    if same {
        text += "\nThe samples are identical.\n";
    }
    Ok(text)
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| Nanos(ns.round() as u64).to_string())
}

fn signed(ns: f64) -> String {
    let size = Nanos(ns.abs().round() as u64);
    if size.0 == 0 { "0".into() } else { format!("{}{size}", if ns < 0.0 { "−" } else { "+" }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::tests::manifest_of;

    #[test]
    fn runs_in_unequal_company_are_compared_with_a_warning_and_the_way_to_equal_one() {
        let old = manifest_of("6.1", &["hardirq", "task"]);
        let new = manifest_of("6.12", &["hardirq", "bh_work", "task"]);
        let text = comparison(&old, &new).unwrap();
        assert!(text.contains("6.1 lacks bh_work"), "{text}");
        assert!(text.contains("--set 'responders=[\"hardirq\", \"task\"]'"), "{text}");
        assert!(!comparison(&new, &new).unwrap().contains("lacks"));
    }
}
