//! Layout of cells in lines: columns are as wide as their widest cell; one column shrinks if the
//! line is too narrow.

use unicode_width::UnicodeWidthStr as _;

use crate::plain::cut_middle;

/// Least width of the flexible column: shorter names would be meaningless, so that the line is
/// rather too long.
const FLEXIBLE_MIN: usize = 12;

/// Lines of the rows, each at most `width` columns wide if the numbers leave room. `is_left` is the
/// alignment of each column. The column `flexible` is cut in the middle if the line is too narrow.
pub(crate) fn lines(
    rows: &[Vec<String>],
    is_left: &[bool],
    flexible: usize,
    indent: usize,
    width: usize,
) -> Vec<String> {
    let mut widths: Vec<usize> = (0..is_left.len())
        .map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
        .collect();
    let all: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) + indent;
    if let Some(flexible) = widths.get_mut(flexible) {
        *flexible = (*flexible).min(flexible.saturating_sub(all.saturating_sub(width)).max(FLEXIBLE_MIN));
    }
    rows.iter().map(|row| line(row, &widths, is_left, indent)).collect()
}

fn line(row: &[String], widths: &[usize], is_left: &[bool], indent: usize) -> String {
    let mut line = " ".repeat(indent);
    for (column, cell) in row.iter().enumerate() {
        if column > 0 {
            line.push_str("  ");
        }
        let cell = cut_middle(cell, widths[column].max(1));
        let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
        if is_left[column] {
            line.extend([cell.as_str(), &padding]);
        } else {
            line.extend([padding.as_str(), &cell]);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flexible_column_gives_way_and_numbers_never_do() {
        let rows = [["Name", "Bytes"], ["a_rather_long_name_of_a_thing", "1,234,567"], ["b", "1"]]
            .map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            lines(&rows, &[true, false], 0, 0, 30),
            [
                "Name                     Bytes",
                "a_rather_…f_a_thing  1,234,567",
                "b                            1",
            ]
        );
        let wide = lines(&rows, &[true, false], 0, 2, 200);
        assert_eq!(wide[1], "  a_rather_long_name_of_a_thing  1,234,567");
    }
}
