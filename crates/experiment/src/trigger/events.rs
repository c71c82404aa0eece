// SPDX-License-Identifier: GPL-2.0-or-later
//! A train of events that was recorded elsewhere, in a file: a time in each line.

use super::TRIGGERS_APART;
use sample::Nanos;
use std::path::Path;

/// The longest file that is read: some million events.
const BYTES_MAX: u64 = 64 << 20;
/// Columns of times, in the order in which they are looked for. The first is that of `onset export --csv`.
const COLUMNS: [&str; 3] = ["at_ns", "time_ns", "time"];

/// What is wrong with a file, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub message: String,
    pub help: String,
}

/// The events of the file at `path`, since its first one or since its own 0. They rise, at least
/// [`TRIGGERS_APART`].
pub(super) fn read(path: &Path) -> Result<Vec<Nanos>, Refused> {
    let shown = path.display();
    let bytes = confined::read(path, BYTES_MAX).map_err(|e| Refused {
        message: format!("cannot read {shown}: {e}"),
        help: "name a file with a time in each line, as \"12.5ms\", or as whole nanoseconds".into(),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| Refused {
        message: format!("{shown} is no text"),
        help: "it has to have a time in each line; a bundle's is printed by onset export RUN --csv"
            .into(),
    })?;
    parse(&text).map_err(|Refused { message, help }| Refused {
        message: format!("{shown}: {message}"),
        help,
    })
}

/// Lines that are empty or begin with `#` say nothing. A first line that is no time names the columns.
fn parse(text: &str) -> Result<Vec<Nanos>, Refused> {
    let cut = !text.is_empty() && !text.ends_with('\n');
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    let fields = |line: &str| {
        line.split(',').map(|f| f.trim().trim_matches('"').to_owned()).collect::<Vec<_>>()
    };
    let mut column = 0;
    if let Some((_, head)) =
        lines.peek().copied().filter(|(_, line)| time(&fields(line)[0]).is_none())
    {
        let names = fields(head);
        let found = COLUMNS.iter().find_map(|known| names.iter().position(|name| name == known));
        column = found.ok_or_else(|| Refused {
            message: format!("none of its columns {} is one of times", names.join(", ")),
            help: format!("name the column of times {}", COLUMNS.join(" or ")),
        })?;
        lines.next();
    }
    let mut times: Vec<Nanos> = Vec::new();
    for (number, line) in lines {
        let fields = fields(line);
        let read = fields.get(column).and_then(|field| time(field));
        let Some(at) = read else {
            return Err(Refused {
                message: format!("line {number} has no time: {line:?}"),
                help: "write a duration with its unit, or whole nanoseconds".into(),
            });
        };
        if let Some(earlier) = times.last().filter(|earlier| at <= **earlier) {
            return Err(Refused {
                message: format!(
                    "line {number}: events have to rise, and {at} does not follow {earlier}"
                ),
                help: "sort the events; of several series keep one".into(),
            });
        }
        if times.last().is_some_and(|earlier| at - *earlier < TRIGGERS_APART) {
            return Err(Refused {
                message: format!(
                    "line {number} is less than {TRIGGERS_APART} after the event before it"
                ),
                help: "closer triggers could not each make an edge".into(),
            });
        }
        times.push(at);
    }
    match times.len() {
        0 => Err(Refused {
            message: "there is no event in it".into(),
            help: "write a time in each line".into(),
        }),
        _ if cut => Err(Refused {
            message: "the last line does not end, so the file may be cut".into(),
            help: "end the last line, if the file is whole".into(),
        }),
        _ => Ok(times),
    }
}

/// A duration with its unit, or whole nanoseconds.
fn time(field: &str) -> Option<Nanos> {
    field.parse::<u64>().map(Nanos).ok().or_else(|| field.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Result<Vec<u64>, String> {
        let parsed =
            parse(text).map_err(|refused| format!("{}; {}", refused.message, refused.help));
        parsed.map(|times| times.into_iter().map(|at| at.0).collect())
    }

    #[test]
    fn times_are_read_bare_with_units_and_from_a_column() {
        assert_eq!(
            numbers("# of the brake\n\n1000\n2.5us\n1ms\n").unwrap(),
            [1_000, 2_500, 1_000_000]
        );
        let table = "trigger,series,at_ns,latency_ns\n0,task,500,90\n1,task,1500,80\n";
        assert_eq!(numbers(table).unwrap(), [500, 1_500]);
        assert_eq!(numbers("\"time\"\r\n1us\r\n2us\r\n").unwrap(), [1_000, 2_000]);
    }

    #[test]
    fn what_is_no_train_is_refused_with_the_line_and_the_remedy() {
        for (text, why) in [
            ("", "there is no event"),
            ("# only words\n", "there is no event"),
            ("5\n5\n", "line 2: events have to rise"),
            ("9us\n8us\n", "8.00 µs does not follow 9.00 µs"),
            ("5us\n9us\nseven\n", "line 3 has no time: \"seven\""),
            ("a,b\n1,2\n", "none of its columns a, b"),
            ("5us\n5999\n", "line 2 is less than 1.00 µs after"),
            ("x,at_ns\n1\n", "line 2 has no time"),
            ("5us\n60us", "may be cut; end the last line"),
            ("5\n18446744073709551616\n", "line 2 has no time"),
        ] {
            let refused = numbers(text).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_refused_and_not_waited_for() {
        let missing = read(Path::new("/nonexistent/events.csv")).unwrap_err();
        assert!(missing.message.contains("cannot read /nonexistent/events.csv"), "{missing:?}");
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
