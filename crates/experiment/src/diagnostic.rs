// SPDX-License-Identifier: GPL-2.0-or-later
//! All mistakes of an experiment at once, each with its place: the line of the file with a caret, or the `--set`.

use std::fmt;
use std::ops::Range;

/// How many problems are shown in full. Without a limit, a file that is no experiment at all would fill the screen.
const SHOWN: usize = 20;
/// Widest part of a source line that is shown, in characters.
const WIDTH: usize = 100;
/// Characters kept to the left of the caret in a line that is wider.
const LEFT: usize = 30;

/// A stretch of one of the sources: 0 is the file, n the n-th override.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub source: usize,
    /// Bytes of the source; `None` where something is missing from the source as a whole.
    pub span: Option<(usize, usize)>,
}

impl Place {
    pub fn new(source: usize, span: Option<Range<usize>>) -> Self {
        Place { source, span: span.map(|s| (s.start, s.end)) }
    }

    /// Whether it is in the file, and not on the command line.
    pub fn is_in_file(&self) -> bool {
        self.source == 0
    }
}

/// One problem: where, what, and what to do about it.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub at: Place,
    pub message: String,
    pub help: Option<String>,
}

/// A text that problems point into.
#[derive(Clone, Debug)]
pub(super) enum Source {
    File { path: String, text: String },
    Override(String),
}

/// Everything that is wrong with an experiment; its `Display` is for people, several lines a problem.
#[derive(Clone, Debug)]
pub struct Problems {
    sources: Vec<Source>,
    problems: Vec<Problem>,
}

impl Problems {
    /// Puts the problems in the order of the file. There is at least one.
    pub(super) fn new(sources: Vec<Source>, mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| a.at.cmp(&b.at));
        Problems { sources, problems }
    }

    /// How many problems there are; at least 1.
    pub fn count(&self) -> usize {
        self.problems.len()
    }
}

impl std::error::Error for Problems {}

/// One problem below the other, each as `error: what`, `--> file:line:column`, the line with a caret,
/// and what to do.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.problems[..self.problems.len().min(SHOWN)];
        let located: Vec<_> = shown.iter().map(|p| (p, self.locate(&p.at))).collect();
        let last = located.iter().filter_map(|(_, l)| l.as_ref().map(|l| l.line)).max();
        let gutter = last.unwrap_or(1).to_string().len();
        for (i, (problem, location)) in located.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            self.render(f, problem, location.as_ref(), gutter)?;
        }
        match self.problems.len() - shown.len() {
            0 => Ok(()),
            more => writeln!(f, "\n… and {more} more"),
        }
    }
}

/// A place as people count it.
struct Location<'a> {
    /// From 1.
    line: usize,
    /// From 1, in characters.
    column: usize,
    text: &'a str,
    /// Characters to underline; at least 1.
    length: usize,
}

impl Problems {
    fn locate(&self, at: &Place) -> Option<Location<'_>> {
        let text = match &self.sources[at.source] {
            Source::File { text, .. } | Source::Override(text) => text,
        };
        let (start, end) = at.span?;
        let start = boundary(text, start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let end = boundary(text, end).clamp(start, line_end);
        Some(Location {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: text[line_start..line_end].trim_end_matches('\r'),
            length: text[start..end].chars().count().max(1),
        })
    }

    fn render(
        &self,
        f: &mut fmt::Formatter<'_>,
        problem: &Problem,
        location: Option<&Location<'_>>,
        gutter: usize,
    ) -> fmt::Result {
        writeln!(f, "error: {}", problem.message)?;
        let arrow = format!("{:gutter$}-->", "");
        let snippet = location.map(Location::snippet);
        match (&self.sources[problem.at.source], location, snippet) {
            (Source::File { path, .. }, Some(l), Some((line, caret))) => {
                writeln!(f, "{arrow} {}:{}:{}", visible(path), l.line, l.column)?;
                writeln!(f, "{:gutter$} |", "")?;
                writeln!(f, "{:>gutter$} | {line}", l.line)?;
                writeln!(f, "{:gutter$} | {caret}", "")?;
            }
            (Source::File { path, .. }, ..) => writeln!(f, "{arrow} {}", visible(path))?,
            (Source::Override(_), _, Some((line, caret))) => {
                writeln!(f, "{arrow} --set {line}")?;
                writeln!(f, "{:gutter$}          {caret}", "")?;
            }
            (Source::Override(text), ..) => writeln!(f, "{arrow} --set {}", visible(text))?,
        }
        match &problem.help {
            Some(help) => writeln!(f, "{:gutter$} = help: {help}", ""),
            None => Ok(()),
        }
    }
}

impl Location<'_> {
    /// The line and, below it, its carets; of a wide line the part around them.
    fn snippet(&self) -> (String, String) {
        let before = self.column - 1;
        let wide = self.text.chars().count() > WIDTH;
        let skipped = if wide { before.saturating_sub(LEFT) } else { 0 };
        let mut line: String = self.text.chars().skip(skipped).take(WIDTH).map(printable).collect();
        if skipped + WIDTH < self.text.chars().count() {
            line.push('…');
        }
        let (lead, indent) = if skipped > 0 { ("…", before - skipped + 1) } else { ("", before) };
        let room = line.chars().count().saturating_sub(before - skipped).max(1);
        let caret = format!("{:indent$}{}", "", "^".repeat(self.length.min(room)));
        (format!("{lead}{line}"), caret)
    }
}

/// The last character boundary of `text` at or before `offset`.
fn boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// A character as it may be shown: one column, and no way to command the terminal.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

fn visible(text: &str) -> String {
    text.chars().map(printable).collect()
}

/// The candidate that `word` was probably meant to be: at most a third of its letters differ.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = word.to_lowercase();
    // Nothing we know is this long, and the distance takes time with the product of the lengths.
    if lower.len() > 256 {
        return None;
    }
    let tolerance = (lower.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (strsim::osa_distance(&lower, &c.to_lowercase()), c))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean …? known are …", for a word that is none of `known`.
pub fn known_words<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let list = known.clone().into_iter().collect::<Vec<_>>().join(", ");
    match nearest(word, known) {
        Some(near) => format!("did you mean {near:?}? known are {list}"),
        None => format!("known are {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problems(text: &str, spans: &[Option<(usize, usize)>]) -> Problems {
        let problem = |span: &Option<(usize, usize)>| Problem {
            at: Place { source: 0, span: *span },
            message: "wrong".into(),
            help: Some("do right".into()),
        };
        let file = Source::File { path: "a.toml".into(), text: text.into() };
        Problems::new(vec![file], spans.iter().map(problem).collect())
    }

    #[test]
    fn a_problem_shows_its_line_and_underlines_the_culprit() {
        let text = format!("{}seed = \"x\"\n", "\n".repeat(11));
        let expected = "\
error: wrong
  --> a.toml:12:8
   |
12 | seed = \"x\"
   |        ^^^
   = help: do right
";
        assert_eq!(problems(&text, &[Some((18, 21))]).to_string(), expected);
    }

    #[test]
    fn columns_count_characters_and_control_characters_are_not_printed() {
        let shown = problems("é\t\u{1b}[2J = 1\r\n", &[Some((3, 4))]).to_string();
        assert!(shown.contains("a.toml:1:3\n"), "{shown}");
        assert!(shown.contains("1 | é \u{fffd}[2J = 1\n  |   ^\n"), "{shown}");
    }

    #[test]
    fn of_a_wide_line_the_part_around_the_culprit_is_shown() {
        let text = format!("{}!!{}", "a".repeat(500), "b".repeat(500));
        let shown = problems(&text, &[Some((500, 502))]).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let (line, caret) = (lines[3], lines[4]);
        assert!(line.chars().count() < 120 && line.ends_with('…') && line.contains('…'));
        let at = caret.find('^').unwrap();
        assert_eq!(line.chars().skip(at).take(2).collect::<String>(), "!!");
        assert_eq!(&caret[at..], "^^");
    }

    #[test]
    fn problems_come_in_the_order_of_the_file_and_not_without_end() {
        let spans: Vec<_> = (0..50).rev().map(|i| Some((i, i + 1))).collect();
        let shown = problems(&"x".repeat(50), &spans).to_string();
        assert!(shown.find(":1:1\n").unwrap() < shown.find(":1:2\n").unwrap());
        assert!(shown.ends_with("… and 30 more\n"));
        assert_eq!(problems("", &spans).count(), 50);
    }

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not_offered() {
        let known = ["period", "phase", "jitter", "count"];
        assert_eq!(nearest("perod", known), Some("period"));
        assert_eq!(nearest("Count", known), Some("count"));
        assert_eq!(nearest("jitetr", known), Some("jitter"));
        assert_eq!(nearest("colour", known), None);
    }

    proptest! {
        #[test]
        fn any_place_in_any_text_can_be_shown(
            text in "(\\PC|\n|\r|\t){0,300}", spans in prop::collection::vec((0usize..700, 0usize..700), 1..30),
        ) {
            let spans: Vec<_> = spans.into_iter().map(Some).collect();
            prop_assert!(problems(&text, &spans).to_string().starts_with("error: wrong\n"));
        }
    }
}
