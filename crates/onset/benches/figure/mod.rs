// SPDX-License-Identifier: GPL-2.0-or-later
//! How benches print what was promised beside what was measured.

use std::fmt::Display;

/// The heading of the lines that [`print`] writes.
pub fn heading() {
    print("figure", "promised", "measured");
}

/// One figure.
pub fn print(figure: &str, promised: &str, measured: impl Display) {
    println!("{figure:<66} {promised:>8}  {measured}");
}

/// Median, and the extremes.
pub fn spread(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    match &*values {
        [first, .., last] => {
            let median = values[values.len() / 2];
            format!("{median:.digits$} ({first:.digits$} … {last:.digits$}, n = {})", values.len())
        }
        [one] => format!("{one:.digits$}"),
        [] => "nothing measured".into(),
    }
}
