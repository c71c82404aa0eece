// SPDX-License-Identifier: GPL-2.0-or-later
//! Draws a census as a picture: the latency over the instant of the trigger, coloured by what was off then.

use lab::census::{Stretches, Window};
use sample::Nanos;
use std::fmt::Write;
use trace::WindowKind;

/// The size of the picture and of its margins, in pixels.
const SIZE: (f64, f64) = (1_000.0, 420.0);
const LEFT: f64 = 78.0;
const RIGHT: f64 = 34.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 46.0;
/// The colours of interrupts off, of preemption off, and of nothing off. People who do not see red and green alike
/// can tell them apart.
const COLOURS: [(&str, &str); 3] =
    [("#d55e00", "interrupts off"), ("#0072b2", "preemption off"), ("#7f7f7f", "nothing off")];
/// About how many lines an axis has.
const LINES: f64 = 8.0;

/// The picture, as SVG. The latencies are in the order of the window's instants.
pub fn census_picture(
    title: &str,
    window: Window,
    latencies: &[Option<Nanos>],
    stretches: &Stretches,
) -> String {
    let most = latencies.iter().flatten().max().map_or(1.0, |most| most.0 as f64 * 1.05);
    let length = (window.until - window.from).0.max(1) as f64;
    let (width, height) = SIZE;
    let x = |at: Nanos| LEFT + (at - window.from).0 as f64 / length * (width - LEFT - RIGHT);
    let y = |ns: f64| height - BOTTOM - ns / most * (height - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    let mut line = |text: String| {
        let _ = writeln!(svg, "{text}");
    };
    for ns in ticks(most) {
        let (at, label) = (y(ns), Nanos(ns as u64).to_string());
        line(format!("<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/>", width - RIGHT));
        line(format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            at + 4.0
        ));
    }
    for ns in ticks(length) {
        let (at, label) = (x(window.from + Nanos(ns as u64)), Nanos(ns as u64).to_string());
        let below = height - BOTTOM;
        line(format!("<path d=\"M{at:.1} {TOP}V{below}\" stroke=\"#eee\"/>"));
        line(format!(
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            below + 18.0
        ));
    }
    let mut paths = COLOURS.map(|_| String::new());
    for (at, latency) in window.instants().zip(latencies) {
        let kind = stretches.at(at).map_or(2, |off| usize::from(off.kind != WindowKind::IrqsOff));
        if let Some(latency) = latency {
            // Each answer is a short stroke.
            let _ = write!(paths[kind], "M{:.1} {:.1}h1", x(at), y(latency.0 as f64));
        }
    }
    for (number, ((colour, name), path)) in COLOURS.iter().zip(paths).enumerate() {
        let at = LEFT + 150.0 * number as f64;
        line(format!("<rect x=\"{at}\" y=\"29\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"));
        line(format!("<text x=\"{}\" y=\"38\">{name}</text>", at + 15.0));
        line(format!("<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
    }
    line(format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">instant of the trigger, since {}</text>",
        width - RIGHT,
        height - 8.0,
        window.from
    ));
    svg + "</svg>\n"
}

/// Round values from 0 to `most`.
fn ticks(most: f64) -> Vec<f64> {
    let rough = most / LINES;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * decade).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough).max(1.0);
    (0..).map(|n| f64::from(n) * step).take_while(|value| *value <= most).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_a_point_and_the_axes_have_round_values() {
        let window = Window { from: Nanos(1_000), until: Nanos(1_030), every: Nanos(10) };
        let latencies = [Some(Nanos(700)), None, Some(Nanos(900)), Some(Nanos(1_000))];
        let svg = census_picture("a < b", window, &latencies, &Stretches::default());
        assert_eq!(svg.matches("h1").count(), 3, "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("1.00 µs"), "{svg}");
        assert_eq!(ticks(1_050.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]);
        assert_eq!(ticks(3.0), [0.0, 1.0, 2.0, 3.0]);
    }
}
