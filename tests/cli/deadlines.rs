// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits on deadlines as they are typed: what is refused says what to write, and imported loops are counted.

use testbench::Lab;

/// What cyclictest prints: 24 loops in the histogram, and 3 beyond it.
const HISTOGRAM: &str = "# Histogram\n000058 000006\n000059 000018\n# Total: 000000024\n# Min Latencies: 00058\n\
    # Avg Latencies: 00086\n# Max Latencies: 03689\n# Histogram Overflows: 00003\n";

#[test]
fn a_limit_that_is_none_is_wrong_usage_and_says_what_to_write() {
    let lab = Lab::bare();
    for (limit, what, remedy) in [
        ("late(1us)=0", "--limit late(1us)=0", "consecutive(100us)=2"),
        ("miss=0", "unknown limit \"miss\"", "write \"miss(100us)\""),
        ("miss(100)=0", "unknown limit \"miss(100)\"", "needs a unit"),
        ("miss(1us)=9 of 10", "no bound of miss", "1 in 10000"),
        ("firm(1us)=10 of 9", "demands 10 of 9", "not above the second"),
        ("consecutive(1us)=-1", "no bound of consecutive", "one after the other"),
    ] {
        let words = ["measure", "periodic", "--count", "1", "--limit", limit];
        lab.onset(&words).exits(2).says(&[what, remedy]);
    }
    assert_eq!(lab.bundles(), [""; 0]);
}

#[test]
fn imported_loops_are_counted_and_what_a_histogram_does_not_say_is_refused() {
    let lab = Lab::bare();
    let file = lab.write("histogram.txt", HISTOGRAM);
    let file = file.to_string_lossy();
    for (limit, status, missed) in [
        ("miss(58999ns)=21", 0, 21),
        ("miss(58999ns)=20", 1, 21),
        ("miss(57us)=1 in 2", 1, 27),
        // At least 21 loops took longer than 58 µs, whatever the others did.
        ("miss(58us)=5", 1, 21),
        ("miss(4ms)=0", 0, 0),
    ] {
        let finished = lab.onset(&["import", &file, "--limit", limit, "--json"]).exits(status);
        let run = finished.run();
        let finding = &run.0["findings"][0];
        assert_eq!(
            (finding["events"].as_u64(), finding["missed"].as_u64()),
            (Some(27), Some(missed))
        );
        lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
    }
    for (limit, why) in [
        ("consecutive(1ms)=3", "does not say in which order the loops were"),
        ("firm(1ms)=9 of 10", "limit the misses, as miss(1000000ns)=0"),
        // Three loops were beyond the histogram, and a row has all loops up to the next one.
        ("miss(1ms)=2", "between 59999 and 3689999 ns"),
        ("miss(58us)=23", "between 58000 and 58999 ns"),
        ("max=3689us", "between 3689000 and 3689999 ns"),
        ("p90=1ms", "give 3689999ns"),
        ("miss(1us)=x", "as 0"),
    ] {
        lab.onset(&["import", &file, "--limit", limit]).exits(2).says(&[why]);
    }
}
