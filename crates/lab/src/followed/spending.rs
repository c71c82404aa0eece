// SPDX-License-Identifier: GPL-2.0-or-later
//! Shows where the instructions of a cost went, by function. The run of the probe `cost` is made once more. The witness
//! then counts what each function of the kernel executes itself, in the stretches that make the figure.
//!
//! A function's share is what it executed in the stretches that count, less what it executed in those that are to be
//! taken away, as the figure itself is made ([`crate::costs`]). The counters of the functions have to add up to QEMU's
//! own count of the same stretches, which the figure is made of.

use super::named::check_series;
use super::ready::plan;
use super::{Named, Ready};
use crate::costs::Figure;
use crate::{Error, costs};
use probes::Probe;
use rig::{Bench, Functions, Outcome, ProbeRun, Stimulus};
use sample::SeriesName;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use vmlinux::Map;
use wire::FunctionStarts;
use work::Progress;

/// The instructions of a cost by function.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spending {
    /// The series of the probe `cost`.
    pub series: String,
    /// How many operations all the numbers below are of.
    pub operations: u64,
    /// The instructions of these operations.
    pub insns: u64,
    /// Those that each function of the kernel executed itself, without those of the functions that it calls. The
    /// function that executed most is the first.
    pub functions: Vec<Share>,
    /// Those of programs.
    pub programs_insns: i64,
    /// Those of code that no function is known of.
    pub unnamed_insns: i64,
}

/// What a function executed itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The function; with its module in brackets where it has one.
    pub function: String,
    /// The instructions. Less than 0 if the function executed more in what is taken away.
    pub insns: i64,
}

impl Spending {
    /// The instructions of one operation.
    pub fn per_operation(&self, insns: i64) -> f64 {
        insns as f64 / self.operations as f64
    }

    /// What was executed by whom, of one operation. Programs and unnamed code have names that no function has.
    pub fn by_name(&self) -> BTreeMap<&str, f64> {
        let functions = self.functions.iter().map(|share| (share.function.as_str(), share.insns));
        let others = [(PROGRAMS, self.programs_insns), (UNNAMED, self.unnamed_insns)];
        functions.chain(others).map(|(name, n)| (name, self.per_operation(n))).collect()
    }
}

/// The name of all programs in a list of functions.
pub const PROGRAMS: &str = "(programs)";
/// The name of code that no function is known of.
pub const UNNAMED: &str = "(unnamed)";

/// Makes the named run once more, and counts the instructions of these series by function. Without `series`, of all.
///
/// # Errors
/// If the run is not one of the probe `cost` in the rig, or has no such series. If another figure than then comes out.
/// Also the errors of running it again.
pub fn spend(
    bench: &Bench,
    named: &Named,
    series: Option<&SeriesName>,
    progress: &dyn Fn(Progress),
) -> Result<Vec<Spending>, Error> {
    let ready = Ready::new(bench, named.subject(bench)?, progress)?;
    let Some((run, Named::Run(bundle))) = is_cost(&ready)?.zip(Some(named)) else {
        return Err(Error::Unfit(
            "only the costs of a run of the probe cost have instructions by function".into(),
        ));
    };
    let manifest = bundle.manifest();
    let names: Vec<&SeriesName> = ready.series().iter().collect();
    check_series(&names, series, manifest.run.as_str())?;
    let chosen = (0..).zip(names).filter(|(_, name)| series.is_none_or(|asked| asked == *name));
    let (map, _) = ready.map()?;
    let functions = rig::function_starts(&map).ok_or_else(|| {
        Error::KernelUnseen("the kernel does not tell where it enters after a page fault".into())
    })?;
    let run = ProbeRun { functions: Some(functions), ..run.clone() };
    let outcome = ready.probe(&run, &mut |_| ControlFlow::Continue(()), progress)?;
    let again = costs::counters(&plan(&run)?, &outcome.witness);
    let mut all = Vec::new();
    for (index, name) in chosen {
        let key = format!("insns_{name}");
        let (then, now) = (manifest.about.probe_counters.get(&key), again.get(&key));
        if then != now {
            let told = |n: Option<&u64>| n.map_or("no number".into(), u64::to_string);
            let how = format!("{name} took {} and not {} instructions", told(now), told(then));
            return Err(Error::CameOutOtherwise { how });
        }
        // A row that was not measured has no instructions.
        let Some(figure) = Figure::of(&outcome.witness, index).filter(|_| now.is_some()) else {
            continue;
        };
        // The number of a batch's operations is fixed.
        let row = probes::row(name.as_str());
        let ops = row.map(|row| u64::from(row.ops)).filter(|ops| *ops > 0);
        let then = manifest.about.probe_counters.get(&format!("ops_{name}")).copied();
        let Some(ops) = ops.filter(|ops| then == Some(*ops)) else {
            return Err(Error::MadeOtherwise(format!(
                "{}: its batches of {name} had another number of operations than those of this onset; measure again",
                manifest.run
            )));
        };
        all.extend(spending(name.as_str(), ops, figure, &outcome, &map)?);
    }
    Ok(all)
}

/// The run of the probe, if it is `cost`.
fn is_cost<'a>(ready: &'a Ready) -> Result<Option<&'a ProbeRun>, Error> {
    let Stimulus::Probe(run) = ready.stimulus() else { return Ok(None) };
    Ok(matches!(plan(run)?.probe, Probe::Cost(_)).then_some(run))
}

fn spending(
    series: &str,
    operations: u64,
    figure: Figure,
    outcome: &Outcome,
    map: &Map<Vec<u8>>,
) -> Result<Option<Spending>, Error> {
    let of = |id| outcome.witness.spent.get(&id);
    let both = of(figure.counts.0).zip(of(figure.takes.0)).zip(figure.insns());
    let Some(((counts, takes), insns)) = both else { return Ok(None) };
    let (counts, takes) = (&counts.counts, &takes.takes);
    let (mut programs_insns, mut unnamed_insns) = (0, 0);
    let mut functions: BTreeMap<String, i64> = BTreeMap::new();
    for (address, insns) in differences(counts, takes) {
        match (address, map.resolve(address)) {
            (FunctionStarts::PROGRAMS, _) => programs_insns += insns,
            (_, Some(place)) => {
                let module = place.module.map(|m| format!(" [{m}]")).unwrap_or_default();
                *functions.entry(format!("{}{module}", place.symbol)).or_default() += insns;
            }
            (_, None) => unnamed_insns += insns,
        }
    }
    let mut functions: Vec<Share> = functions
        .into_iter()
        .filter(|(_, insns)| *insns != 0)
        .map(|(function, insns)| Share { function, insns })
        .collect();
    functions.sort_by_key(|share| std::cmp::Reverse(share.insns));
    let named: i64 = functions.iter().map(|share| share.insns).sum();
    let sum = named + programs_insns + unnamed_insns;
    if sum != insns as i64 {
        let how = format!("{series}: its functions executed {sum} and not {insns} instructions");
        return Err(Error::CameOutOtherwise { how });
    }
    let series = series.into();
    Ok(Some(Spending { series, operations, insns, functions, programs_insns, unnamed_insns }))
}

/// What each function executed in the stretches that count, less what it executed in those to be taken away.
fn differences(counts: &Functions, takes: &Functions) -> BTreeMap<u64, i64> {
    let mut all: BTreeMap<u64, i64> = counts.iter().map(|(at, n)| (*at, *n as i64)).collect();
    for (at, n) in takes {
        *all.entry(*at).or_default() -= *n as i64;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_away_is_taken_from_the_function_that_executed_it() {
        let (counts, takes) = ([(5, 30), (9, 4)].into(), [(5, 10), (7, 2)].into());
        assert_eq!(differences(&counts, &takes), [(5, 20), (7, -2), (9, 4)].into());
    }

    #[test]
    fn shares_of_an_operation_add_up_to_its_instructions() {
        let share = |function: &str, insns| Share { function: function.into(), insns };
        let spending = Spending {
            series: "null_call".into(),
            operations: 10,
            insns: 1_325,
            functions: vec![share("do_syscall_64", 900), share("kvm [kvm]", -5)],
            programs_insns: 420,
            unnamed_insns: 10,
        };
        let by_name = spending.by_name();
        assert_eq!((by_name["do_syscall_64"], by_name[PROGRAMS]), (90.0, 42.0));
        assert!((by_name.values().sum::<f64>() - 132.5).abs() < 1e-9);
    }
}
