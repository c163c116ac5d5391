//! Lists of things with columns, in each format.

use std::io::Write;

use serde_json::Value;

use crate::commands::report::{Format, terminal_width};
use crate::report::csv::quoted;
use crate::report::frame_text::printable;
use crate::report::quantity::{bytes, count};
use crate::report::table::{Align, Table};

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Count,
    Percent,
    Id,
    Text,
}

/// A column: its key in JSON and CSV, its heading in text.
pub(super) type Column = (&'static str, &'static str, Unit);

/// Prints `rows`, a value for each of `columns`; the text column number `flexible` is cut where the line is narrow.
pub(super) fn print(
    out: &mut impl Write,
    format: Format,
    schema: &str,
    columns: &[Column],
    flexible: usize,
    rows: Vec<Vec<Value>>,
) -> std::io::Result<()> {
    match format {
        Format::Text => {
            if rows.is_empty() {
                return writeln!(out, "none");
            }
            let headings: Vec<(&str, Align)> = columns
                .iter()
                .map(|&(_, heading, unit)| {
                    (heading, if unit == Unit::Text { Align::Left } else { Align::Right })
                })
                .collect();
            let mut table = Table::new(&headings, flexible);
            for row in rows {
                table.row(row.iter().zip(columns).map(|(value, &(_, _, unit))| cell(value, unit)).collect());
            }
            for line in table.lines(0, terminal_width()) {
                writeln!(out, "{}", line.trim_end())?;
            }
            Ok(())
        }
        Format::Json => {
            let rows: Vec<Value> = rows
                .into_iter()
                .map(|row| columns.iter().map(|&(key, ..)| key.to_owned()).zip(row).collect())
                .collect();
            writeln!(out, "{:#}", serde_json::json!({ "schema": schema, "rows": rows }))
        }
        Format::Csv => {
            let head: Vec<&str> = columns.iter().map(|&(key, ..)| key).collect();
            writeln!(out, "{}", head.join(","))?;
            for row in rows {
                let fields: Vec<String> = row
                    .iter()
                    .map(|value| match value {
                        Value::String(text) => quoted(text),
                        Value::Null => String::new(),
                        other => other.to_string(),
                    })
                    .collect();
                writeln!(out, "{}", fields.join(","))?;
            }
            Ok(())
        }
    }
}

fn cell(value: &Value, unit: Unit) -> String {
    match (unit, value.as_u64()) {
        (Unit::Bytes, Some(number)) => bytes(number),
        (Unit::Count, Some(number)) => count(number),
        (Unit::Percent, Some(number)) => format!("{number} %"),
        (Unit::Id, Some(number)) => format!("@{number}"),
        _ => match value {
            Value::String(text) => printable(text),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        },
    }
}
