//! Tables of text: columns as wide as their widest cell; one column gives way when the line is too
//! narrow.

use unicode_width::UnicodeWidthStr as _;

use heapr_export::frame_text::cut_middle;

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table under construction.
#[derive(Debug)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    /// Head line first.
    rows: Vec<Vec<String>>,
    /// The column that is cut in the middle if the line is too narrow.
    flexible: usize,
}

/// Least width of the flexible column: narrower names say nothing, the line is rather too long.
const FLEXIBLE_MIN: usize = 12;

impl Table {
    /// `columns`: heading and alignment.
    pub(crate) fn new(columns: &[(&str, Align)], flexible: usize) -> Self {
        Self {
            aligns: columns.iter().map(|&(_, align)| align).collect(),
            rows: vec![columns.iter().map(|&(heading, _)| heading.to_owned()).collect()],
            flexible,
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.aligns.len());
        self.rows.push(cells);
    }

    /// Its lines, each at most `width` columns wide (if the numbers leave room), indented by
    /// `indent`.
    pub(crate) fn lines(&self, indent: usize, width: usize) -> Vec<String> {
        let mut widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let all: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) + indent;
        let flexible = &mut widths[self.flexible];
        *flexible = (*flexible).min(flexible.saturating_sub(all.saturating_sub(width)).max(FLEXIBLE_MIN));
        self.rows.iter().map(|row| self.line(row, &widths, indent)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize], indent: usize) -> String {
        let mut line = " ".repeat(indent);
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            let cell = cut_middle(cell, widths[column].max(1));
            let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
            match self.aligns[column] {
                Align::Left => line.extend([cell.as_str(), &padding]),
                Align::Right => line.extend([padding.as_str(), &cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flexible_column_gives_way_and_numbers_never_do() {
        let mut table = Table::new(&[("Name", Align::Left), ("Bytes", Align::Right)], 0);
        table.row(vec!["a_rather_long_name_of_a_thing".to_owned(), "1,234,567".to_owned()]);
        table.row(vec!["b".to_owned(), "1".to_owned()]);
        assert_eq!(
            table.lines(0, 30),
            [
                "Name                     Bytes",
                "a_rather_…f_a_thing  1,234,567",
                "b                            1",
            ]
        );
        assert!(table.lines(2, 200)[1].starts_with("  a_rather_long_name_of_a_thing  1,234,567"));
    }
}
