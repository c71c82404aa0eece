// SPDX-License-Identifier: GPL-2.0-or-later
//! What real time costs: Morgan: Real-Time in Linux (2002), LMbench's system calls and context switches; Arthur, Emde,
//! Mc Guire: Assessment of the Realtime Preemption Patches (2007), figures 2 to 8.
//!
//! Each claim is a relation within one clock: of two costs on one kernel, or of one cost on two kernels.

use super::claim::{Claim, Expects, Said, Scale};
use super::delay::ratio;
use super::runs::{Mode, Repetition, Run, Runs, basis, summary};
use super::{
    ABSENT, Cell, Column, Printed, Row, Statistic, Table, Unit, Whose, figure, printed, time_cell,
};
use probes::{Counts, Figures};
use std::rc::Rc;

const US: Unit = Unit::Micros;
const LOAD: &str = "idle";

/// The columns of the slide “System Call Tests”, and the rows that they are.
const CALLS: [(&str, &str); 10] = [
    ("null call", "null_call"),
    ("null I/O", "null_io"),
    ("stat", "stat"),
    ("open/close", "open_close"),
    ("select TCP", "select_tcp_100"),
    ("sig inst", "signal_install"),
    ("sig hndl", "signal_delivery"),
    ("fork proc", "fork_exit"),
    ("exec proc", "fork_exec"),
    ("sh proc", "fork_sh"),
];
const CALLS_2002: [Printed; 3] = [
    (
        "Pica, 300 MHz Celeron",
        &["1.0", "1.6", "5.9", "9.0", ABSENT, "3.0", "9.5", "580", "3500", "12000"],
    ),
    (
        "ZT5550, 266 MHz Pentium III",
        &["1.15", "1.74", "7.17", "14", "52", "3.24", "9.7", "542", "3300", "14000"],
    ),
    (
        "EP405, 200 MHz PowerPC",
        &["1.56", "3.88", "29", "53", ABSENT, "6.06", "27", "1700", "16000", "67000"],
    ),
];

/// The columns of the slide “Context Switch Test”: programs and data of each.
const SWITCHES: [(&str, &str); 7] = [
    ("2, 0 K", "context_2p_0k"),
    ("2, 16 K", "context_2p_16k"),
    ("2, 64 K", "context_2p_64k"),
    ("8, 16 K", "context_8p_16k"),
    ("8, 64 K", "context_8p_64k"),
    ("16, 16 K", "context_16p_16k"),
    ("16, 64 K", "context_16p_64k"),
];
const SWITCHES_2002: [Printed; 3] = [
    ("Pica, 300 MHz Celeron", &["3.0", "20", ABSENT, "46", ABSENT, "66", ABSENT]),
    ("ZT5550, 266 MHz Pentium III", &["1.97", "25", "77", "26", "134", "28", "228"]),
    ("EP405, 200 MHz PowerPC", &["21", "110", "307", "123", "305", "122", "304"]),
];

/// The figures of 2007 in their order. The text names no numbers of their bars.
const FIGURES: [(&str, &str); 7] = [
    ("2: TCP", "tcp_round_trip"),
    ("3: 100fd select", "select_100"),
    ("4: page fault", "page_fault"),
    ("5: context switch", "context_2p_0k"),
    ("6: mem read", "memory_read"),
    ("7: sh proc", "fork_sh"),
    ("8: null I/O", "null_io"),
];

/// The time of one operation of a row, in ns.
pub(super) fn cost(run: &Run, series: &str) -> Option<f64> {
    let counters = &run.manifest().about.probe_counters;
    Some(Figures(counters).of(series)?.ns_per_operation()).filter(|ns| *ns > 0.0)
}

/// The costs of a kernel that has no RT: the first that was measured, in the order of the experiment.
fn plain<'r, 'a>(r: &Repetition<'r, 'a>) -> Option<&'r Run<'a>> {
    r.all(false, LOAD).find(|run| run.mode != Mode::Rt)
}

/// One cost divided by another, on the kernel without RT.
fn against(r: &Repetition, one: &str, other: &str) -> Option<f64> {
    let run = plain(r)?;
    ratio(cost(run, one), cost(run, other))
}

/// The cost with RT divided by the cost of the same release without it.
fn of_rt(r: &Repetition, series: &str) -> Option<f64> {
    let rt = r.run(Mode::Rt, false, LOAD)?;
    ratio(cost(rt, series), cost(plain(r)?, series))
}

const CALL: Said = Said {
    paper: "A call that reads or writes a byte takes longer than one that does nothing: 1.6 µs against 1.0 µs (Pica), × 1.60; × 1.51 and × 2.49 on the others.",
    what: "null I/O divided by null call, on the first kernel without RT",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.1,
    needs: "a sound run of a kernel without RT with both rows",
};
const SIGNALS: Said = Said {
    paper: "A signal takes longer to catch than its handler to install: 9.5 µs against 3.0 µs (Pica), × 3.17; × 2.99 and × 4.46 on the others.",
    what: "sig hndl divided by sig inst, on the first kernel without RT",
    ..CALL
};
const EXEC: Said = Said {
    paper: "A new program takes much longer than a new process: 3.5 ms against 580 µs (Pica), × 6.03; × 6.09 and × 9.41 on the others.",
    what: "exec proc divided by fork proc, on the first kernel without RT",
    effect: 1.5,
    ..CALL
};
const SHELL: Said = Said {
    paper: "A shell that starts the program takes longer again: 12 ms against 3.5 ms (Pica), × 3.43; × 4.24 and × 4.19 on the others.",
    what: "sh proc divided by exec proc, on the first kernel without RT",
    ..CALL
};
const DATA: Said = Said {
    paper: "A switch to a process with data takes longer than one without: 20 µs with 16 KiB against 3.0 µs with none (2 programs, Pica), × 6.67; × 12.7 and × 5.24 on the others.",
    what: "2 programs with 16 KiB divided by 2 programs with none, on the first kernel without RT",
    effect: 1.5,
    ..CALL
};
const MANY: Said = Said {
    paper: "A switch among more programs takes longer: 66 µs among 16 against 20 µs among 2 (16 KiB, Pica), × 3.30; × 1.12 and × 1.11 on the others.",
    what: "16 programs divided by 2 programs, each with 16 KiB, on the first kernel without RT",
    ..CALL
};

/// The slide of system calls.
pub(super) fn calls(runs: &Runs) -> Table {
    let seeds = runs.repetitions();
    let told = |said: &Said, one, other| said.told(&runs.each(|r| against(r, one, other)), seeds);
    let claims = vec![
        told(&CALL, "null_io", "null_call"),
        told(&SIGNALS, "signal_delivery", "signal_install"),
        told(&EXEC, "fork_exec", "fork_exit"),
        told(&SHELL, "fork_sh", "fork_exec"),
    ];
    let labels = ("2002-calls", "LMbench: system calls", "Morgan 2002, System Call Tests");
    table(runs, labels, &CALLS, &CALLS_2002, claims)
}

/// The slide of context switches.
pub(super) fn switches(runs: &Runs) -> Table {
    const NO_CACHES: &str = "The paper's difference is made of caches, and virtual time has none: in the rig, adding up an array costs as much after a switch as before \
        it, and is taken away. Measure on a machine: --set target=local.";
    let seeds = runs.repetitions();
    let told = |said: &Said, one, other| match runs.is_rig() {
        true => said.untold(NO_CACHES),
        false => said.told(&runs.each(|r| against(r, one, other)), seeds),
    };
    let claims = vec![
        told(&DATA, "context_2p_16k", "context_2p_0k"),
        told(&MANY, "context_16p_16k", "context_2p_16k"),
    ];
    let labels = ("2002-switches", "LMbench: context switches", "Morgan 2002, Context Switch Test");
    table(runs, labels, &SWITCHES, &SWITCHES_2002, claims)
}

const CLEARLY: Said = Said {
    paper: "PREEMPT_RT costs most, clearly so for TCP (figure 2).",
    what: "The cost with RT divided by that of the first kernel without it",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.1,
    needs: "sound runs of PREEMPT_RT and of a kernel without it",
};
const FAULTS: Said =
    Said { paper: "PREEMPT_RT costs most, clearly so for a page fault (figure 4).", ..CLEARLY };
const SELECT: Said = Said {
    paper: "Less clearly, PREEMPT_RT costs more for select on 100 files (figure 3).",
    ..CLEARLY
};
const NULL_IO: Said = Said {
    paper: "Less clearly, PREEMPT_RT costs more for reading and writing a byte (figure 8).",
    ..CLEARLY
};
const MEMORY: Said = Said {
    paper: "Of reading memory (figure 6) nobody can say what PREEMPT_RT costs: there is no significant difference.",
    expects: Expects::Same,
    ..CLEARLY
};
const SH: Said = Said {
    paper: "Of starting a shell (figure 7) nobody can say what PREEMPT_RT costs: there is no significant difference.",
    ..MEMORY
};
const SWITCH: Said = Said {
    paper: "PREEMPT_RT has no significant impact on the general performance, switches of processes (figure 5) among it.",
    ..MEMORY
};

/// Figures 2 to 8 of 2007.
pub(super) fn figures(runs: &Runs) -> Table {
    let seeds = runs.repetitions();
    let told = |said: &Said, series| said.told(&runs.each(|r| of_rt(r, series)), seeds);
    let memory = match runs.is_rig() {
        // The kernel has no part in it, so every kernel would be alike.
        true => MEMORY.untold(
            "The rig counts instructions, and reading memory takes the same instructions on every kernel. A difference could only come from caches, which virtual time does \
            not have.",
        ),
        false => told(&MEMORY, "memory_read"),
    };
    let claims = vec![
        told(&CLEARLY, "tcp_round_trip"),
        told(&SELECT, "select_100"),
        told(&FAULTS, "page_fault"),
        told(&SWITCH, "context_2p_0k"),
        memory,
        told(&SH, "fork_sh"),
        told(&NULL_IO, "null_io"),
    ];
    let labels = (
        "2007-costs",
        "What PREEMPT_RT costs: LMbench",
        "Arthur, Emde, Mc Guire 2007, figures 2 to 8",
    );
    table(runs, labels, &FIGURES, &[], claims)
}

fn table(
    runs: &Runs,
    (id, heading, source): (&'static str, &'static str, &'static str),
    columns: &[(&'static str, &str)],
    theirs: &[Printed],
    claims: Vec<Claim>,
) -> Table {
    let column = |(name, series): &(&'static str, &str)| match is_bandwidth(series) {
        true => Column { name, unit: "MB/s" },
        false => US.column(name),
    };
    let series: Vec<&str> = columns.iter().map(|(_, series)| *series).collect();
    let groups = runs.groups();
    let ours = groups.iter().filter_map(|group| row(group, &series));
    let bars = if theirs.is_empty() { " The paper prints bars without numbers." } else { "" };
    Table {
        id,
        heading,
        source,
        columns: columns.iter().map(column).collect(),
        rows: theirs.iter().map(printed).chain(ours).collect(),
        absent: absent(runs, &series),
        note: format!(
            "{}.{bars} The costs are those of docs/methods/costs.md: the median of the batches on a machine, the batch in the middle in the rig.",
            runs.note().trim_end_matches('.')
        ),
        claims,
        picture: None,
    }
}

fn is_bandwidth(series: &str) -> bool {
    probes::row(series).is_some_and(|row| row.more_is_better())
}

fn row(group: &[Rc<Run>], series: &[&str]) -> Option<Row> {
    let basis = basis(group, series.iter().copied())?;
    let cells = series.iter().map(|name| cell(group, name)).collect();
    Some(Row { label: group[0].flavour().into(), whose: Whose::Ours, cells, basis: Some(basis) })
}

/// A time in µs, or a throughput in MB/s.
fn cell(group: &[Rc<Run>], series: &str) -> Cell {
    let values: Vec<f64> = group.iter().filter_map(|run| cost(run, series)).collect();
    let Some(Counts::Bytes(bytes)) = probes::row(series).map(|row| row.counts) else {
        return time_cell(&values, Statistic::Median, US);
    };
    // Bytes in a nanosecond are GB/s.
    let mut rates: Vec<f64> = values.iter().map(|ns| bytes.0 as f64 / ns * 1e3).collect();
    rates.sort_by(f64::total_cmp);
    let Some(middle) = rates.get(rates.len() / 2) else { return Cell::word(ABSENT) };
    let (least, most) = (figure(rates[0]), figure(rates[rates.len() - 1]));
    let spread = (least != most).then(|| format!("{least} … {most}"));
    Cell { spread, ..Cell::word(figure(*middle)) }
}

fn absent(runs: &Runs, series: &[&str]) -> Vec<String> {
    let mut absent = runs.absent();
    for manifest in runs.manifests() {
        let missing = series.iter().filter(|s| summary(manifest, s).is_none_or(|s| s.count == 0));
        for missing in missing.map(|s| format!("{s} of {}", manifest.about.flavour)) {
            if !absent.contains(&missing) {
                absent.push(missing);
            }
        }
    }
    absent
}
