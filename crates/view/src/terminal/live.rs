// SPDX-License-Identifier: GPL-2.0-or-later
//! What a generator of triggers measures, while it does: a ladder that moves on a terminal, and lines elsewhere.

use super::axis::{Axis, sparkline};
use super::count::{named, several};
use super::generator::{hertz, lost};
use super::table::{Align, Table};
use crate::visible::tell;
use lab::live::{Channel, Drift, Live, Mark};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table as Grid};
use ratatui::{DefaultTerminal, Frame};
use sample::{Clock, Nanos};
use stats::{COLUMNS_PER_OCTAVE, Quantile};
use std::io::{self, IsTerminal};
use std::time::Duration;
use wire::generator::{Setting, Ticks};

const KEYS: &str = "q stop   space pause   r reset   m mark   + twice as often   - half as often";

/// What the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// End the run.
    Quit,
    /// Stop to draw, or go on. The generator goes on in any case.
    Pause,
    /// Forget all numbers so far.
    Reset,
    /// Keep a mark.
    Mark,
    /// Trigger twice as often.
    Faster,
    /// Trigger half as often.
    Slower,
}

/// Where a conversation is shown.
pub enum Screen {
    /// Not on a terminal: a line now and then, on stderr.
    Lines,
    /// On the whole terminal.
    Drawn(Drawn),
}

/// The terminal. It is as it was before when this is dropped.
pub struct Drawn {
    terminal: DefaultTerminal,
    paused: bool,
    /// What the user is to know.
    note: Option<String>,
}

impl Drop for Drawn {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl Screen {
    /// The terminal, where stdin and stdout are one.
    pub fn open() -> Screen {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Screen::Lines;
        }
        let terminal = ratatui::try_init();
        terminal.map_or(Screen::Lines, |terminal| {
            Screen::Drawn(Drawn { terminal, paused: false, note: None })
        })
    }

    /// Whether it is drawn, and not written.
    pub fn is_drawn(&self) -> bool {
        matches!(self, Screen::Drawn(_))
    }

    /// Shows how things stand; `ending` where the generator has been told to stop.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn show(&mut self, live: &Live, ending: bool) -> io::Result<()> {
        match self {
            Screen::Lines => tell!("{}", line(live)),
            Screen::Drawn(drawn) if drawn.paused && !ending => {}
            Screen::Drawn(drawn) => {
                let foot = match (&drawn.note, ending) {
                    (_, true) => "waiting for the last answers",
                    (Some(note), false) => note,
                    (None, false) => KEYS,
                };
                let page = Page { heading: heading(live), channels: live.channels(), foot };
                drawn.terminal.draw(|frame| page.draw(frame))?;
            }
        }
        Ok(())
    }

    /// Shows this instead of the keys, until the next key.
    pub fn note(&mut self, text: String) {
        if let Screen::Drawn(drawn) = self {
            drawn.note = Some(text);
        }
    }

    /// Stops to draw, or goes on.
    pub fn pause(&mut self) {
        if let Screen::Drawn(drawn) = self {
            drawn.paused = !drawn.paused;
        }
    }

    /// What was pressed since the last call; does not wait.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn key(&mut self) -> io::Result<Option<Key>> {
        let Screen::Drawn(drawn) = self else { return Ok(None) };
        if !event::poll(Duration::ZERO)? {
            return Ok(None);
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => {
                drawn.note = None;
                Ok(meaning(key))
            }
            _ => Ok(None),
        }
    }
}

/// In raw mode Ctrl-C is a key like any other.
fn meaning(key: KeyEvent) -> Option<Key> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char(' ' | 'p') => Some(Key::Pause),
        KeyCode::Char('r') => Some(Key::Reset),
        KeyCode::Char('m') => Some(Key::Mark),
        KeyCode::Char('+') => Some(Key::Faster),
        KeyCode::Char('-') => Some(Key::Slower),
        _ => None,
    }
}

/// Everything that is drawn.
struct Page<'a> {
    heading: [String; 2],
    channels: &'a [Channel],
    foot: &'a str,
}

impl Page<'_> {
    fn draw(&self, frame: &mut Frame<'_>) {
        let rows = self.channels.len() as u16;
        let areas = Layout::vertical([
            Constraint::Length(3),
            Constraint::Length(rows + 2),
            // The courses have what the numbers leave.
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .split(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let [title, state] = &self.heading;
        let heading = vec![Line::styled(title.as_str(), bold), Line::from(state.as_str())];
        frame.render_widget(Paragraph::new(heading), areas[0]);
        self.draw_ladder(frame, areas[1]);
        let over_time = self.over_time(usize::from(frame.area().width));
        frame.render_widget(Paragraph::new(over_time), areas[2]);
        frame.render_widget(Paragraph::new(self.foot).style(Style::new().dim()), areas[3]);
    }

    fn draw_ladder(&self, frame: &mut Frame<'_>, area: ratatui::layout::Rect) {
        let axis = axis(self.channels);
        let heading = axis.heading();
        let names = ["responder", &heading, "min", "mean", "p99", "max", "answers", "lost"];
        let right = |text: String| Cell::from(Line::from(text).right_aligned());
        let rows = self.channels.iter().map(|channel| {
            let [name, bars, numbers @ .., losses] = row(channel, &axis);
            let cells = [Cell::from(name), Cell::from(bars)];
            Row::new(cells.into_iter().chain(numbers.map(right)).chain([Cell::from(losses)]))
        });
        let width = heading.chars().count() as u16;
        let widths = [
            Constraint::Length(13),
            Constraint::Length(width),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(10),
            Constraint::Min(6),
        ];
        let heads = names.into_iter().enumerate().map(|(n, name)| match n {
            2..=6 => right(name.to_owned()),
            _ => Cell::from(name.to_owned()),
        });
        let head = Row::new(heads).style(Style::new().dim());
        frame.render_widget(Grid::new(rows, widths).header(head).column_spacing(1), area);
    }

    /// The longest latency of each stretch of time, the latest on the right.
    fn over_time(&self, columns: usize) -> Vec<Line<'_>> {
        let mut lines = vec![Line::styled("longest latency over time", Style::new().dim())];
        let room = columns.saturating_sub(14);
        for channel in self.channels {
            let name = format!("{:<14}", channel.responder.name());
            let slices = channel.series.timeline().buckets();
            let latest = slices.len().saturating_sub(room);
            let longest = slices[latest..].iter().map(|slice| slice.max.0);
            lines.push(Line::from(vec![Span::raw(name), Span::raw(sparkline(longest))]));
        }
        lines
    }
}

/// An axis for all latencies so far.
fn axis(channels: &[Channel]) -> Axis {
    let summaries: Vec<_> = channels.iter().map(|c| c.series.summary()).collect();
    let min = summaries.iter().filter_map(|s| s.min).min().unwrap_or(Nanos(1_000));
    let max = summaries.iter().filter_map(|s| s.max).max().unwrap_or(Nanos(1_000_000));
    Axis::new(min.0, max.0)
}

/// Name, histogram, min, mean, p99, max, answers, losses.
fn row(channel: &Channel, axis: &Axis) -> [String; 8] {
    let summary = channel.series.summary();
    let time = |time: Option<Nanos>| time.map_or_else(|| "–".into(), |time| time.to_string());
    let mean = summary.mean.map(|mean| Nanos(mean.round() as u64));
    [
        channel.responder.name().into(),
        axis.bars(&channel.series.columns(COLUMNS_PER_OCTAVE)),
        time(summary.min),
        time(mean),
        time(summary.quantile(Quantile::P99)),
        time(summary.max),
        summary.count.to_string(),
        named(&channel.losses).unwrap_or_else(|| "0".into()),
    ]
}

/// Who is measured by which clock, and what it does.
fn heading(live: &Live) -> [String; 2] {
    let tick = live.tick();
    let clock = match live.clock() {
        Clock::Virtual => "virtual time",
        _ => "its own counter",
    };
    let title =
        format!("{} · {clock}, ticks of {}", live.name(), ratio(tick.nanos.get(), tick.per.get()));
    let of = |setting| Ticks(live.settings().get(setting));
    let nanos = |ticks| tick.nanos(ticks).map_or(Nanos(u64::MAX), |(nanos, _)| nanos);
    let mut state = format!(
        "{}, the line is high for {} · {} · {}",
        hertz(nanos(of(Setting::Period))),
        nanos(of(Setting::High)),
        several(live.triggers(), "trigger"),
        live.elapsed(),
    );
    if let Some(drift) = live.drift() {
        state += &format!(" · {}", pace(&drift));
    }
    if live.damaged() > 0 {
        state += &format!(" · {}", several(live.damaged(), "damaged frame"));
    }
    [title, state]
}

/// How the generator's clock goes beside this machine's.
fn pace(drift: &Drift) -> String {
    let doubt = if drift.is_doubtful() { ", more than crystals are off!" } else { "" };
    format!("its clock {drift}{doubt}")
}

fn ratio(nanos: u32, per: u32) -> String {
    if per == 1 { format!("{nanos} ns") } else { format!("{nanos}/{per} ns") }
}

/// Says that a mark was kept.
pub fn marked(mark: &Mark) -> String {
    format!("marked {}, after {}", mark.elapsed, several(mark.triggers, "trigger"))
}

/// One line for a log.
fn line(live: &Live) -> String {
    let mut text = format!("{}, {}", live.elapsed(), several(live.triggers(), "trigger"));
    for channel in live.channels() {
        let summary = channel.series.summary();
        text += &format!("; {}: ", channel.responder);
        text += &match (summary.min, summary.mean, summary.max) {
            (Some(min), Some(mean), Some(max)) => {
                let mean = Nanos(mean.round() as u64);
                format!("min {min}, mean {mean}, max {max}, {}", several(summary.count, "answer"))
            }
            _ => "no answer".into(),
        };
        text += &lost(&channel.losses);
    }
    if let Some(drift) = live.drift() {
        text += &format!("; {}", pace(&drift));
    }
    text
}

/// The numbers at the end, as a table.
pub fn live(live: &Live) -> String {
    let axis = axis(live.channels());
    let heading = axis.heading();
    let right = ["min", "mean", "p99", "max", "answers"].map(|name| (name, Align::Right));
    let mut columns = vec![("responder", Align::Left), (heading.as_str(), Align::Left)];
    columns.extend(right);
    columns.push(("lost", Align::Left));
    let mut table = Table::new(&columns).indented(2).sparing(&["min", &heading, "answers"]);
    live.channels().iter().for_each(|channel| table.row(row(channel, &axis)));
    let [title, state] = self::heading(live);
    format!("{title}\n{state}\n{}", table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use sample::{ALL_RESPONDERS, Loss, Responder, Sample, SeriesId};

    fn channel(responder: Responder, latencies: &[u64]) -> Channel {
        let mut channel = Channel::new(responder, Clock::Virtual);
        for (trigger, latency) in (0..).zip(latencies) {
            let at = Nanos(trigger * 1_000_000);
            let (series, latency) = (SeriesId(0), Nanos(*latency));
            channel.series.record(&Sample { series, trigger, at, latency, path: None });
        }
        channel
    }

    fn drawn(page: &Page<'_>, columns: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, 12)).expect("in memory");
        terminal.draw(|frame| page.draw(frame)).expect("in memory");
        terminal.backend().to_string()
    }

    #[test]
    fn a_page_has_the_numbers_the_histogram_and_the_course_of_each_responder() {
        let mut task = channel(Responder::Task, &[5_000, 6_000, 900_000]);
        task.losses.count(Loss::Superseded, 4);
        let channels = [channel(Responder::Hardirq, &[1_200, 1_300]), task];
        let heading = ["a guest".into(), "1.00 kHz".into()];
        let page = Page { heading, channels: &channels, foot: KEYS };
        let text = drawn(&page, 120);
        let line = |name: &str| {
            let mut lines = text.lines().filter(|line| line.contains(name));
            (
                lines.next().expect("its numbers").to_owned(),
                lines.next().expect("its course").to_owned(),
            )
        };
        let (numbers, course) = line("task");
        for wanted in ["5.00 µs", "900 µs", "304 µs", "3", "4 superseded"] {
            assert!(numbers.contains(wanted), "{wanted}: {numbers}");
        }
        assert!(course.contains('█') && !line("hardirq").0.contains("superseded"), "{text}");
        assert!(text.contains("a guest") && text.contains(KEYS), "{text}");
    }

    #[test]
    fn all_responders_have_their_numbers_on_a_terminal_of_24_lines() {
        let channels: Vec<Channel> = ALL_RESPONDERS.map(|r| channel(r, &[1_200])).into();
        let page = Page { heading: Default::default(), channels: &channels, foot: KEYS };
        let mut terminal = Terminal::new(TestBackend::new(110, 24)).expect("in memory");
        terminal.draw(|frame| page.draw(frame)).expect("in memory");
        let text = terminal.backend().to_string();
        for responder in ALL_RESPONDERS {
            let mut lines = text.lines().filter(|line| line.contains("1.20 µs"));
            assert!(
                lines.any(|line| line.contains(&format!("{responder} "))),
                "{responder}: {text}"
            );
        }
        assert!(text.contains(KEYS), "{text}");
    }

    #[test]
    fn a_page_without_an_answer_or_without_room_is_drawn_too() {
        let channels = [channel(Responder::Task, &[])];
        let page = Page { heading: Default::default(), channels: &channels, foot: KEYS };
        assert!(drawn(&page, 100).contains('–'));
        drawn(&page, 3);
    }

    #[test]
    fn keys_are_those_that_the_foot_names_and_those_that_end_every_program() {
        let key = |code, modifiers| meaning(KeyEvent::new(code, modifiers));
        let plain = |c| key(KeyCode::Char(c), KeyModifiers::NONE);
        assert_eq!(
            (plain('q'), plain(' '), plain('r'), plain('m')),
            (Some(Key::Quit), Some(Key::Pause), Some(Key::Reset), Some(Key::Mark))
        );
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(plain('c'), None);
    }
}
