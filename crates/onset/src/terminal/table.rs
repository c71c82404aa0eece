// SPDX-License-Identifier: GPL-2.0-or-later
//! Aligned columns of text.

/// On which side a column's texts are flush.
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
}

impl Table {
    /// An empty table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        Table {
            align: columns.iter().map(|c| c.1).collect(),
            rows: vec![columns.iter().map(|c| c.0.to_string()).collect()],
        }
    }

    /// Adds a row; as many cells as columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, two spaces between columns, without trailing space.
    pub fn lines(&self) -> Vec<String> {
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|r| r.get(column))
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.align.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells =
                row.iter().zip(&self.align).zip(&widths).map(|((cell, align), w)| match align {
                    Align::Left => format!("{cell:<w$}"),
                    Align::Right => format!("{cell:>w$}"),
                });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_also_beyond_ascii() {
        let mut table = Table::new(&[("name", Align::Left), ("µs", Align::Right)]);
        table.row(["a".into(), "1.00 µs".into()]);
        table.row(["longer".into(), "2".into()]);
        assert_eq!(table.lines(), ["name         µs", "a       1.00 µs", "longer        2"]);
    }
}
