//! Rows of results, printed as a table, as JSON or as CSV.

use std::io::Write;

use heapr_v8::devtools::BASE_SYSTEM_DISTANCE;
use serde_json::{Map, Value, json};

use crate::commands::report::Format;
use crate::plain_text::{line_width, printed};
use crate::report::csv::quoted;
use crate::report::quantity::{bytes, count, duration, plural, signed_bytes, signed_count};
use crate::report::table::{Align, Table};
use crate::snapshot::heap_file::one_line;

/// How results are printed.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArguments {
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Most lines [default: 25; all as json and csv]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

impl OutputArguments {
    pub(crate) fn top(&self) -> usize {
        self.top.unwrap_or(if self.format == Format::Text { 25 } else { usize::MAX })
    }
}

/// A value in a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Bytes(u64),
    Count(u64),
    SignedBytes(i64),
    SignedCount(i64),
    Distance(i32),
    Id(u64),
    /// Nanoseconds.
    Duration(u64),
    Nothing,
}

/// Results of one command.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Name and version of the JSON.
    schema: &'static str,
    /// Facts about the whole, for JSON.
    facts: Vec<(&'static str, Value)>,
    /// Key (in JSON and CSV) and heading (in text).
    columns: Vec<(&'static str, &'static str)>,
    rows: Vec<Vec<Cell>>,
    /// Rows beyond the limit.
    left_off: u64,
}

impl Sheet {
    pub(crate) fn new(schema: &'static str, columns: &[(&'static str, &'static str)]) -> Self {
        Self { schema, facts: Vec::new(), columns: columns.to_vec(), rows: Vec::new(), left_off: 0 }
    }

    pub(crate) fn fact(&mut self, key: &'static str, value: impl Into<Value>) {
        self.facts.push((key, value.into()));
    }

    /// Adds the first `top` rows.
    pub(crate) fn rows(&mut self, top: usize, rows: impl IntoIterator<Item = Vec<Cell>>) {
        let mut rows = rows.into_iter();
        self.rows.extend(rows.by_ref().take(top));
        self.left_off += rows.count() as u64;
    }

    /// Says that this many rows more would follow.
    pub(crate) fn left_off(&mut self, count: u64) {
        self.left_off += count;
    }

    /// Prints it to stdout; `title` stands above the table.
    pub(crate) fn print(&self, format: Format, title: &[String]) -> anyhow::Result<()> {
        let mut out = printed(format == Format::Text);
        match format {
            Format::Text => self.write_text(&mut out, title)?,
            Format::Json => {
                serde_json::to_writer_pretty(&mut out, &self.json())?;
                writeln!(out)?;
            }
            Format::Csv => self.write_csv(&mut out)?,
        }
        out.flush()?;
        Ok(())
    }

    fn write_text(&self, out: &mut impl Write, title: &[String]) -> std::io::Result<()> {
        for line in title {
            writeln!(out, "{line}")?;
        }
        if self.rows.is_empty() {
            return writeln!(out, "nothing");
        }
        // A column without a value is left out.
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|&column| self.rows.iter().any(|row| row[column] != Cell::Nothing))
            .collect();
        let is_text = |column: usize| self.rows.iter().any(|row| matches!(row[column], Cell::Text(_)));
        let align = |column: usize| if is_text(column) { Align::Left } else { Align::Right };
        let columns: Vec<(&str, Align)> =
            shown.iter().map(|&column| (self.columns[column].1, align(column))).collect();
        // The widest text gives way.
        let widest = |column: usize| {
            self.rows.iter().map(|row| if let Cell::Text(text) = &row[column] { text.len() } else { 0 }).max()
        };
        let flexible = (0..shown.len()).max_by_key(|&at| widest(shown[at])).unwrap_or(0);
        let mut table = Table::new(&columns, flexible);
        for row in &self.rows {
            table.row(shown.iter().map(|&column| row[column].text()).collect());
        }
        for line in table.lines(0, line_width()) {
            writeln!(out, "{line}")?;
        }
        if self.left_off > 0 {
            writeln!(out, "… and {}; --top N shows more", plural(self.left_off, "more line"))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let mut whole = Map::new();
        whole.insert("schema".to_owned(), json!(self.schema));
        for (key, value) in &self.facts {
            whole.insert((*key).to_owned(), value.clone());
        }
        let row = |row: &Vec<Cell>| -> Value {
            self.columns.iter().zip(row).map(|(&(key, _), cell)| (key.to_owned(), cell.json())).collect()
        };
        whole.insert("rows".to_owned(), self.rows.iter().map(row).collect());
        whole.insert("left_off".to_owned(), json!(self.left_off));
        Value::Object(whole)
    }

    fn write_csv(&self, out: &mut impl Write) -> std::io::Result<()> {
        let keys: Vec<&str> = self.columns.iter().map(|&(key, _)| key).collect();
        writeln!(out, "{}", keys.join(","))?;
        for row in &self.rows {
            writeln!(out, "{}", row.iter().map(Cell::csv).collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

impl Cell {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => one_line(text),
            Self::Bytes(value) => bytes(*value),
            Self::Count(value) => count(*value),
            Self::SignedBytes(value) => signed_bytes(i128::from(*value)),
            Self::SignedCount(value) => signed_count(i128::from(*value)),
            // No way leads there from a global object, or none at all.
            Self::Distance(value) if *value >= BASE_SYSTEM_DISTANCE || *value < 0 => "-".to_owned(),
            Self::Distance(value) => value.to_string(),
            Self::Id(value) => format!("@{value}"),
            Self::Duration(value_ns) => duration(*value_ns),
            Self::Nothing => String::new(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Bytes(value) | Self::Count(value) | Self::Id(value) | Self::Duration(value) => json!(value),
            Self::SignedBytes(value) | Self::SignedCount(value) => json!(value),
            Self::Distance(value) => json!(value),
            Self::Nothing => Value::Null,
        }
    }

    pub(crate) fn csv(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Nothing => String::new(),
            other => other.json().to_string(),
        }
    }
}
