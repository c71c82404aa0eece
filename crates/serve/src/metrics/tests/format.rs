// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules of OpenMetrics 1.0 that its text has to keep, for counters, gauges and histograms (the specification's
//! sections "Text format" and "Metric types").

use std::collections::{BTreeMap, BTreeSet};

/// The labels of a sample, in their order.
type Labels<'a> = Vec<(&'a str, &'a str)>;

#[derive(Default)]
struct Family<'a> {
    kind: &'a str,
    said: BTreeSet<&'a str>,
    /// By the labels without `le`: the last bucket's end and count, and what `_count` says.
    histograms: BTreeMap<String, (f64, f64, Option<f64>)>,
}

/// Says what is wrong with a text, if anything is.
pub fn check(text: &str) -> Result<(), String> {
    let body = text.strip_suffix("# EOF\n").ok_or("the end")?;
    let (mut families, mut name) = (BTreeMap::<&str, Family<'_>>::new(), "");
    let mut seen = BTreeSet::new();
    for line in body.lines() {
        let wrong = |why: &str| format!("{why}: {line}");
        if let Some(said) = line.strip_prefix("# ") {
            let (what, rest) = said.split_once(' ').ok_or(wrong("words"))?;
            let (of, value) = rest.split_once(' ').ok_or(wrong("words"))?;
            if of != name && families.contains_key(of) {
                return Err(wrong("the lines of a family stand together"));
            }
            name = of;
            let family = families.entry(of).or_default();
            if !family.said.insert(what) {
                return Err(wrong("said twice"));
            }
            match what {
                "TYPE" if ["counter", "gauge", "histogram"].contains(&value) => family.kind = value,
                "UNIT" if of.ends_with(&format!("_{value}")) => {}
                "HELP" => {}
                _ => return Err(wrong("what is said of a family")),
            }
            continue;
        }
        let family = families.get_mut(name).ok_or(wrong("a sample without a family"))?;
        let (sample, exemplar) = match line.split_once(" # ") {
            Some((sample, exemplar)) => (sample, Some(exemplar)),
            None => (line, None),
        };
        let (full, labels, value) = parts(sample).ok_or(wrong("a sample"))?;
        if !seen.insert(format!("{full} {labels:?}")) {
            return Err(wrong("twice"));
        }
        let suffix = full.strip_prefix(name).ok_or(wrong("of another family"))?;
        take(family, suffix, &labels, value).map_err(wrong)?;
        if let Some(exemplar) = exemplar {
            let (_, labels, value) = parts(exemplar).ok_or(wrong("an exemplar"))?;
            let length: usize =
                labels.iter().map(|(k, v)| k.chars().count() + v.chars().count()).sum();
            let is_bucket = family.kind == "histogram" && suffix == "_bucket";
            if !is_bucket || length > 128 || !value.is_finite() {
                return Err(wrong("an exemplar"));
            }
        }
    }
    let whole = |(_, count, said): &(f64, f64, Option<f64>)| *said == Some(*count);
    match families.values().all(|family| family.histograms.values().all(whole)) {
        true => Ok(()),
        false => Err("the last bucket is the count".into()),
    }
}

fn take(
    family: &mut Family<'_>,
    suffix: &str,
    labels: &Labels<'_>,
    value: f64,
) -> Result<(), &'static str> {
    let of: Vec<_> = labels.iter().filter(|(key, _)| *key != "le").collect();
    let own = family.histograms.entry(format!("{of:?}"));
    match (family.kind, suffix) {
        ("gauge", "") => Ok(()),
        ("counter", "_total") if value >= 0.0 => Ok(()),
        ("histogram", "_bucket") => {
            let end = labels.iter().find(|(key, _)| *key == "le").ok_or("no end")?.1;
            let end: f64 = end.parse().map_err(|_| "an end")?;
            let own = own.or_insert((f64::NEG_INFINITY, 0.0, None));
            if end <= own.0 || value < own.1 {
                return Err("buckets rise");
            }
            (own.0, own.1) = (end, value);
            Ok(())
        }
        ("histogram", "_count") => {
            let own = own.or_insert((0.0, 0.0, None));
            own.2 = (own.0 == f64::INFINITY).then_some(value);
            Ok(())
        }
        ("histogram", "_sum") => Ok(()),
        _ => Err("no such sample in such a family"),
    }
}

/// Name, labels and value: `name{key="value",…} 1`. Of an exemplar the name is empty.
fn parts(sample: &str) -> Option<(&str, Labels<'_>, f64)> {
    let (name, rest) = sample.split_once('{')?;
    let (labels, value) = rest.split_once("} ")?;
    let is_name = |text: &str| {
        !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let pair = |pair: &'_ str| -> Option<(usize, usize)> {
        let (key, value) = pair.split_once("=\"")?;
        let value = value.strip_suffix('"')?;
        let is_plain = !value.contains(['"', '\\', '\n']);
        (!key.is_empty() && is_name(key) && is_plain).then_some((key.len(), value.len()))
    };
    let mut all = Labels::new();
    for text in labels.split(',') {
        let (key, value) = pair(text)?;
        let label = (&text[..key], &text[key + 2..key + 2 + value]);
        if all.iter().any(|(other, _)| *other == label.0) {
            return None;
        }
        all.push(label);
    }
    is_name(name).then_some((name, all, value.parse().ok()?))
}
