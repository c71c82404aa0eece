// SPDX-License-Identifier: GPL-2.0-or-later
//! `[limits]`: how long a latency may be, and how often a deadline may be missed. A limit holds everywhere, for one
//! flavour, or for one flavour under one load. If several are for the same statistic or deadline of the same responder,
//! the narrowest counts.

use super::Flavour;
use super::diagnostic::{known_words, nearest};
use super::document::{Entry, Table, Value};
use super::read::{Reader, Section};
use super::root::Lists;
use agent::Load;
use sample::{Nanos, Responder, SeriesName};
use stats::{Constraint, Deadline, Demand, Limit, NotASubject, Quantile, Subject};
use std::collections::HashSet;

/// Where a limit holds, widest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In every cell.
    Everywhere,
    /// For a flavour under every load.
    Flavour(Flavour),
    /// In one cell.
    Cell(Flavour, Load),
}

impl Scope {
    /// Whether the cell lies in it.
    pub fn covers(&self, flavour: &Flavour, load: Load) -> bool {
        match self {
            Scope::Everywhere => true,
            Scope::Flavour(f) => f == flavour,
            Scope::Cell(f, l) => f == flavour && *l == load,
        }
    }
}

/// A limit as the file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedLimit {
    /// Where it holds.
    pub scope: Scope,
    /// What it demands; the bound is above 0.
    pub limit: Limit,
}

/// The limits that hold in a cell: for each responder and statistic or deadline the narrowest.
pub(super) fn narrowest(limits: &[ScopedLimit], flavour: &Flavour, load: Load) -> Vec<Limit> {
    let mut chosen: Vec<&ScopedLimit> = Vec::new();
    for limit in limits.iter().filter(|l| l.scope.covers(flavour, load)) {
        let of = |l: &Limit| (l.responder.clone(), l.demand.subject());
        let same = |l: &Limit| of(l) == of(&limit.limit);
        match chosen.iter_mut().find(|l| same(&l.limit)) {
            Some(wider) if wider.scope < limit.scope => *wider = limit,
            Some(_) => {}
            None => chosen.push(limit),
        }
    }
    chosen.into_iter().map(|l| l.limit.clone()).collect()
}

/// Reads `[limits]`. `lists` are the flavours, loads and responders that a limit may name.
pub(super) fn read(reader: &mut Reader, root: &Section, lists: &Lists) -> Vec<ScopedLimit> {
    let Some(entry) = root.entry("limits") else { return Vec::new() };
    let Some(table) = reader.table(entry) else { return Vec::new() };
    let mut found = Limits { reader, lists, limits: Vec::new(), seen: HashSet::new() };
    for entry in &table.0 {
        if lists.names_series(&entry.key) {
            found.responder(Scope::Everywhere, entry);
        } else if let Some(scope) = lists.scope(&entry.key) {
            found.scope(&scope, entry);
        } else {
            found.unknown_scope(entry);
        }
    }
    found.limits
}

/// In a limit's place of a responder: all of them.
const ALL: &str = "all";

impl Lists {
    /// Whether `text` may have limits: a series of this experiment, [`ALL`], or a responder that could be one.
    fn names_series(&self, text: &str) -> bool {
        text == ALL
            || self.series.iter().any(|s| s.as_str() == text)
            || text.parse::<Responder>().is_ok()
    }

    /// The series that a limit under `text` holds for.
    fn series(&self, text: &str) -> Vec<SeriesName> {
        let named = |s: &&SeriesName| text == ALL || s.as_str() == text;
        self.series.iter().filter(named).cloned().collect()
    }

    fn series_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.series.iter().map(SeriesName::as_str).chain([ALL])
    }

    /// The scope that `text` names: a flavour, or a flavour, a slash and a load.
    fn scope(&self, text: &str) -> Option<Scope> {
        let flavour = |text: &str| {
            let flavour: Flavour = text.parse().ok()?;
            self.flavours.contains(&flavour).then_some(flavour)
        };
        if let Some(flavour) = flavour(text) {
            return Some(Scope::Flavour(flavour));
        }
        let (left, right) = text.rsplit_once('/')?;
        let load = right.trim().parse().ok().filter(|load| self.loads.contains(load))?;
        Some(Scope::Cell(flavour(left)?, load))
    }

    fn scope_names(&self) -> Vec<String> {
        let flavours = self.flavours.iter().map(Flavour::to_string);
        let cells = self.flavours.iter().flat_map(|flavour| {
            self.loads.iter().map(move |load| format!("{flavour}/{}", load.name()))
        });
        flavours.chain(cells).collect()
    }
}

struct Limits<'r> {
    reader: &'r mut Reader,
    lists: &'r Lists,
    limits: Vec<ScopedLimit>,
    seen: HashSet<(Scope, SeriesName, Subject)>,
}

impl Limits<'_> {
    fn scope(&mut self, scope: &Scope, entry: &Entry) {
        let Some(table) = self.reader.table(entry) else { return };
        for entry in &table.0 {
            if self.lists.names_series(&entry.key) {
                self.responder(scope.clone(), entry);
            } else {
                let help = known_words(&entry.key, self.lists.series_names());
                let message = format!("unknown responder {:?}", entry.key);
                self.reader.note(&entry.key_at, message, help);
            }
        }
    }

    fn responder(&mut self, scope: Scope, entry: &Entry) {
        let series = self.lists.series(&entry.key);
        if series.is_empty() {
            let message =
                format!("a limit for {}, which the experiment does not measure", entry.key);
            let measured = &self.lists.series;
            let help = if measured.iter().any(|s| s.as_str().parse::<Responder>().is_ok()) {
                format!("add {:?} to responders, or leave the limit out", entry.key)
            } else {
                let names: Vec<&str> = measured.iter().map(SeriesName::as_str).collect();
                format!("leave the limit out; the experiment measures {}", names.join(", "))
            };
            self.reader.note(&entry.key_at, message, help);
        }
        let Some(table) = self.statistics(entry) else { return };
        for entry in &table.0 {
            let Some(demand) = self.demand(entry) else { continue };
            if self.is_without_deadline(&series, demand, entry) {
                continue;
            }
            for responder in &series {
                let responder = responder.clone();
                self.limit(scope.clone(), Limit { responder, demand }, entry);
            }
        }
    }

    fn limit(&mut self, scope: Scope, limit: Limit, entry: &Entry) {
        let key = (scope.clone(), limit.responder.clone(), limit.demand.subject());
        if self.seen.insert(key) {
            self.limits.push(ScopedLimit { scope, limit });
            return;
        }
        let message = format!("this is a second limit for {}.{}", limit.responder, entry.key);
        self.reader.note(&entry.key_at, message, "leave one of them out");
    }

    /// Notes the first series for which a deadline makes no sense.
    fn is_without_deadline(
        &mut self,
        series: &[SeriesName],
        demand: Demand,
        entry: &Entry,
    ) -> bool {
        let more_is_better =
            |name: &&SeriesName| probes::row(name.as_str()).is_some_and(|row| row.more_is_better());
        let found =
            series.iter().find(more_is_better).filter(|_| matches!(demand, Demand::Deadline(_)));
        if let Some(name) = found {
            let message =
                format!("{name} has no deadline: it is a bandwidth, of which more is better");
            let help = "limit the series whose times have to be short, each by its name";
            self.reader.note(&entry.key_at, message, help);
        }
        found.is_some()
    }

    fn statistics<'a>(&mut self, entry: &'a Entry) -> Option<&'a Table> {
        if let Value::Table(table) = &entry.node.value {
            return Some(table);
        }
        let message = format!("{} has to name the statistic that it limits", entry.key);
        let help = format!("write for example {}.max = \"150us\"", entry.key);
        self.reader.note(&entry.node.at, message, help);
        None
    }

    fn demand(&mut self, entry: &Entry) -> Option<Demand> {
        let subject = match entry.key.parse::<Subject>() {
            Ok(subject) => subject,
            Err(why) => {
                self.unknown_subject(entry, &why);
                return None;
            }
        };
        // p99.9 without quotes is a table below p99, which is a statistic too.
        if let Some(help) = unquoted(entry, |text| text.parse::<Subject>().is_ok()) {
            let message = format!("{} has to be a duration, not a table", entry.key);
            self.reader.note(&entry.key_at, message, help);
            return None;
        }
        match subject {
            Subject::Statistic(statistic) => {
                let least = Nanos(1);
                let (bound, _) =
                    self.reader.duration_from(entry, least, "every answer takes time")?;
                Some(Demand::Statistic { statistic, bound })
            }
            Subject::Deadline(kind, time) => self.tolerance(kind, time, entry),
        }
    }

    /// Reads how often a deadline may be missed.
    fn tolerance(&mut self, kind: Constraint, time: Nanos, entry: &Entry) -> Option<Demand> {
        let text = match &entry.node.value {
            Value::Integer(n) => n.to_string(),
            Value::Text(text) => text.clone(),
            other => other.kind().to_owned(),
        };
        match kind.tolerance(&text) {
            Ok(tolerance) => Some(Demand::Deadline(Deadline { time, tolerance })),
            Err(wrong) => {
                self.reader.note(&entry.node.at, wrong.message, wrong.help);
                None
            }
        }
    }

    fn unknown_subject(&mut self, entry: &Entry, why: &NotASubject) {
        let NotASubject::Unknown = why else {
            self.reader.note(
                &entry.key_at,
                format!("unknown limit {:?}", entry.key),
                why.to_string(),
            );
            return;
        };
        let known = |text: &str| text.parse::<Subject>().is_ok();
        let names = ["max", "mean"].into_iter().chain(Quantile::ALL.iter().map(|q| q.name()));
        let deadlines = ["miss(TIME)", "consecutive(TIME)", "firm(TIME)"];
        let help = unquoted(entry, known)
            .unwrap_or_else(|| known_words(&entry.key, names.chain(deadlines)));
        self.reader.note(&entry.key_at, format!("unknown statistic {:?}", entry.key), help);
    }

    fn unknown_scope(&mut self, entry: &Entry) {
        if !self.lists.complete {
            return;
        }
        let scopes = self.lists.scope_names();
        let known = |text: &str| self.lists.scope(text).is_some() || self.lists.names_series(text);
        let help = unquoted(entry, known).unwrap_or_else(|| {
            let series = self.lists.series_names();
            let near = nearest(&entry.key, series.chain(scopes.iter().map(String::as_str)));
            let mean = near.map(|n| format!("did you mean {n:?}? ")).unwrap_or_default();
            format!(
                "{mean}write a limit under a responder ({}), or under a flavour of this experiment, \
                or under flavour/load ({})",
                self.lists.series_names().collect::<Vec<_>>().join(", "),
                scopes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ")
            )
        });
        let message = format!("{:?} is no responder, and no flavour of this experiment", entry.key);
        self.reader.note(&entry.key_at, message, help);
    }
}

/// A name with a dot, written without quotes, reads as a table in a table: says so, if that is what
/// happened.
fn unquoted(entry: &Entry, known: impl Fn(&str) -> bool) -> Option<String> {
    let mut name = entry.key.clone();
    let mut value = &entry.node.value;
    while let Value::Table(table) = value {
        let inner = table.0.first()?;
        name = format!("{name}.{}", inner.key);
        if known(&name) {
            return Some(format!("a name with a dot needs quotes: {name:?}"));
        }
        value = &inner.node.value;
    }
    None
}
