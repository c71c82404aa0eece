// SPDX-License-Identifier: GPL-2.0-or-later
//! Aligned columns of text.

use crate::screen;

/// On which side the texts of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells; the first row is the heading.
#[derive(Clone, Debug)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
    spare: Vec<String>,
    indent: usize,
}

/// How many spaces are between two columns.
const GAP: usize = 2;

impl Table {
    /// An empty table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        Table {
            align: columns.iter().map(|c| c.1).collect(),
            rows: vec![columns.iter().map(|c| c.0.to_string()).collect()],
            spare: Vec::new(),
            indent: 0,
        }
    }

    /// The same table with this many spaces before each line.
    pub fn indented(self, indent: usize) -> Table {
        Table { indent, ..self }
    }

    /// The same table, which drops these columns one after the other on a terminal that is too narrow for all.
    pub fn sparing(self, names: &[&str]) -> Table {
        Table { spare: names.iter().map(|name| name.to_string()).collect(), ..self }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, with two spaces between columns and without trailing space. Columns that can be spared are absent if
    /// the terminal is too narrow.
    pub fn lines(&self) -> Vec<String> {
        self.lines_within(screen::columns())
    }

    /// [`Table::lines`] as one text.
    pub fn text(&self) -> String {
        self.lines().iter().map(|line| format!("{line}\n")).collect()
    }

    fn lines_within(&self, columns: Option<usize>) -> Vec<String> {
        let widths: Vec<usize> = (0..self.align.len()).map(|column| self.width(column)).collect();
        let mut kept: Vec<usize> = (0..self.align.len()).collect();
        let mut spare = self.spare.iter();
        let taken = |kept: &[usize]| {
            let cells: usize = kept.iter().map(|column| widths[*column]).sum();
            self.indent + cells + GAP * kept.len().saturating_sub(1)
        };
        while columns.is_some_and(|columns| taken(&kept) > columns) {
            let Some(name) = spare.next() else { break };
            kept.retain(|column| self.rows[0][*column] != *name);
        }
        let line = |row: &Vec<String>| {
            let cells = kept.iter().filter_map(|column| {
                let cell = row.get(*column)?;
                let pad = " ".repeat(widths[*column].saturating_sub(screen::width(cell)));
                Some(match self.align[*column] {
                    Align::Left => format!("{cell}{pad}"),
                    Align::Right => format!("{pad}{cell}"),
                })
            });
            let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
            format!("{:indent$}{}", "", line.trim_end(), indent = self.indent)
        };
        self.rows.iter().map(line).map(|line| line.trim_end().to_owned()).collect()
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| screen::width(cell)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::{Tone, toned};

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_also_beyond_ascii_and_in_colours() {
        let mut table = Table::new(&[("name", Align::Left), ("µs", Align::Right)]);
        table.row(["a".into(), toned(Tone::Bad, "1.00 µs")]);
        table.row(["longer".into(), "2".into()]);
        let red = toned(Tone::Bad, "1.00 µs");
        let lines = ["name         µs".into(), format!("a       {red}"), "longer        2".into()];
        assert_eq!(table.lines(), lines);
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns() {
        let mut table = Table::new(&[("a", Align::Left), ("b", Align::Left), ("c", Align::Left)])
            .sparing(&["b", "a"])
            .indented(1);
        table.row(["aaa".into(), "bbb".into(), "ccc".into()]);
        let second = |columns| table.lines_within(columns)[1].clone();
        assert_eq!(second(None), " aaa  bbb  ccc");
        assert_eq!(second(Some(14)), " aaa  bbb  ccc");
        assert_eq!(second(Some(13)), " aaa  ccc");
        // What cannot be spared stays.
        assert_eq!(second(Some(2)), " ccc");
    }
}
