//! Rows of results, printed as a table, as JSON or as CSV.

use std::io::Write;

use heapr_v8::devtools::BASE_SYSTEM_DISTANCE;
use serde_json::{Map, Value, json};

use crate::output::table::{Align, Table};
use crate::output::{Format, top};
use crate::plain_text::{line_width, one_line, printed};
use heapr_export::csv::quoted;
use heapr_export::frame_text::cut_middle;
use heapr_filters::quantity::{bytes, count, duration, plural, signed_bytes, signed_count};

/// In place of the frames of what was allocated unseen.
const NO_STACK: &str = "(no stack was taken)";

/// How results are printed.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArguments {
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Most lines [default: 20; all as json and csv]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl OutputArguments {
    pub(crate) fn top(&self) -> usize {
        top(self.top, self.format, false)
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
    /// A stack, the innermost frame first: in the last column.
    Frames(Vec<String>),
    Nothing,
}

/// Key (in JSON and CSV) and heading (in text).
pub(crate) type Column = (&'static str, &'static str);

/// Results of one command.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Name and version of the JSON.
    schema: &'static str,
    /// Facts about the whole, for JSON.
    facts: Vec<(&'static str, Value)>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Rows beyond the limit.
    left_off: u64,
    /// Frames of a stack that stand below its row as text; `None`: the innermost one stands in the
    /// row.
    depth: Option<usize>,
}

impl Sheet {
    pub(crate) fn new(schema: &'static str, columns: &[Column]) -> Self {
        Self {
            schema,
            facts: Vec::new(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            left_off: 0,
            depth: None,
        }
    }

    pub(crate) fn fact(&mut self, key: &'static str, value: impl Into<Value>) {
        self.facts.push((key, value.into()));
    }

    /// From now on stacks stand below their rows, with so many frames at most.
    pub(crate) fn show_stacks(&mut self, depth: usize) {
        self.depth = Some(depth);
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
        let is_text = |column: usize| {
            self.rows.iter().any(|row| matches!(row[column], Cell::Text(_) | Cell::Frames(_)))
        };
        let align = |column: usize| if is_text(column) { Align::Left } else { Align::Right };
        let columns: Vec<(&str, Align)> =
            shown.iter().map(|&column| (self.columns[column].1, align(column))).collect();
        // The widest text gives way.
        let widest = |column: usize| {
            let length = |row: &Vec<Cell>| match &row[column] {
                Cell::Text(text) => text.len(),
                Cell::Frames(_) => usize::MAX,
                _ => 0,
            };
            self.rows.iter().map(length).max()
        };
        let flexible = (0..shown.len()).max_by_key(|&at| widest(shown[at])).unwrap_or(0);
        let mut table = Table::new(&columns, flexible);
        let text = |cell: &Cell| match cell {
            Cell::Frames(_) if self.depth.is_some() => String::new(),
            cell => cell.text(),
        };
        for row in &self.rows {
            table.row(shown.iter().map(|&column| text(&row[column])).collect());
        }
        let lines = table.lines(0, line_width());
        writeln!(out, "{}", lines[0])?;
        for (line, row) in lines[1..].iter().zip(&self.rows) {
            writeln!(out, "{line}")?;
            if let (Some(depth), Some(Cell::Frames(frames))) = (self.depth, row.last()) {
                write_stack(out, frames, depth)?;
            }
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

/// The frames of a stack, one a line.
fn write_stack(out: &mut impl Write, frames: &[String], depth: usize) -> std::io::Result<()> {
    let width = line_width();
    if frames.is_empty() {
        writeln!(out, "      {NO_STACK}")?;
    }
    // A function that calls itself is one line: what called it is to be seen.
    let runs: Vec<&[String]> = frames.chunk_by(|one, other| one == other).collect();
    for run in runs.iter().take(depth) {
        let times = if run.len() > 1 { format!(" ({} times)", run.len()) } else { String::new() };
        let room = width.saturating_sub(6 + times.len());
        writeln!(out, "      {}{times}", cut_middle(&run[0], room))?;
    }
    let left_out: usize = runs.iter().skip(depth).map(|run| run.len()).sum();
    if left_out > 0 {
        writeln!(out, "      … {left_out} more; --depth N shows them")?;
    }
    writeln!(out)
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
            Self::Frames(frames) => frames.first().cloned().unwrap_or_else(|| NO_STACK.to_owned()),
            Self::Nothing => String::new(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Bytes(value) | Self::Count(value) | Self::Id(value) | Self::Duration(value) => json!(value),
            Self::SignedBytes(value) | Self::SignedCount(value) => json!(value),
            Self::Distance(value) => json!(value),
            Self::Frames(frames) => json!(frames),
            Self::Nothing => Value::Null,
        }
    }

    pub(crate) fn csv(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Frames(frames) => quoted(&frames.join(" <- ")),
            Self::Nothing => String::new(),
            other => other.json().to_string(),
        }
    }
}
