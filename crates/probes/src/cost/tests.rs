// SPDX-License-Identifier: GPL-2.0-or-later
//! The pure parts: the list of rows, their order, and what a batch says.

use super::bench::per_operation;
use super::*;
use std::collections::BTreeSet;

#[test]
fn rows_have_names_of_their_own_and_each_suite_has_some() {
    let rows: Vec<&Row> = ROWS.iter().copied().flatten().collect();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len());
    for row in &rows {
        assert!(row.name.parse::<sample::SeriesName>().is_ok() && row.ops > 0, "{}", row.name);
        assert!(super::row(row.name).is_some_and(|found| std::ptr::eq(found, *row)));
        // The unit of a bandwidth is in its row, and that of a time too.
        assert_eq!(row.more_is_better(), row.bandwidth(1_000).is_some(), "{}", row.name);
    }
    for suite in Suite::ALL {
        assert!(rows.iter().any(|row| row.suite == suite), "{suite}");
    }
}

#[test]
fn a_ring_of_processes_goes_round_whole_times_in_a_batch() {
    for row in &super::context::ROWS {
        let of = row.name.trim_start_matches("context_").split('p').next();
        let processes: u32 = of.and_then(|n| n.parse().ok()).expect("a number of processes");
        assert_eq!(row.ops % processes, 0, "{}", row.name);
    }
}

#[test]
fn tasks_that_yield_have_whole_rounds_in_a_batch() {
    let yields = super::scheduler::ROWS.iter().filter(|row| !row.name.contains("deadline"));
    let mut rows = 0;
    for row in yields {
        let tasks: u32 = row.name.rsplit('_').next().and_then(|n| n.parse().ok()).expect("tasks");
        assert_eq!(row.ops % tasks, 0, "{}", row.name);
        rows += 1;
    }
    assert_eq!(rows, 8);
}

#[test]
fn the_order_is_a_permutation_that_the_seed_and_the_repetition_decide() {
    let orders: Vec<Vec<usize>> =
        [(1, 0), (1, 1), (2, 0)].map(|(seed, repetition)| order(50, seed, repetition)).into();
    for one in &orders {
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
    assert_eq!(orders[0], order(50, 1, 0));
    assert!(orders[0] != orders[1] && orders[0] != orders[2] && orders[1] != orders[2]);
    assert!(order(0, 1, 0).is_empty());
}

#[test]
fn the_cost_of_an_operation_is_rounded_to_the_nearest_picosecond_and_never_below_zero() {
    assert_eq!(per_operation(1_000, 3), Some(333_333));
    assert_eq!(per_operation(2, 3), Some(667));
    assert_eq!(per_operation(0, 3), Some(0));
    assert_eq!(per_operation(-1, 3), None);
}

#[test]
fn a_bandwidth_is_bytes_by_the_time_of_an_operation() {
    let row = super::row("pipe_bandwidth").expect("a row");
    // 1 MiB in 1 ms.
    assert_eq!(row.bandwidth(1_000_000_000), Some(sample::BytesPerSecond(1_048_576_000)));
    assert!(row.more_is_better() && !super::row("null_call").expect("a row").more_is_better());
}
