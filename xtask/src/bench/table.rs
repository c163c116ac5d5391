//! Markdown tables with aligned columns.

/// Formats rows of cells under a heading; the first column is left-aligned, the others right.
pub(crate) fn markdown(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heading[column].chars().count(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let heading: Vec<String> = heading.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = widths.iter().enumerate().map(|(column, &width)| {
        if column == 0 { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
    });
    let mut text = line(&heading);
    text.push_str(&line(&rule.collect::<Vec<_>>()));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let text = markdown(&["a", "count"], &[vec!["long name".into(), "7".into()]]);
    assert_eq!(text, "| a         | count |\n| --------- | ----: |\n| long name |     7 |\n");
}
