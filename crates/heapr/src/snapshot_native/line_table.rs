//! Lines of stacks, frames or images with their amounts: as text with the frames below each other, as JSON, as CSV.

use std::io::Write;

use heapr_query::GroupBy;
use serde_json::{Map, Value, json};

use crate::commands::report::Format;
use crate::plain_text::line_width;
use crate::report::csv::quoted;
use crate::report::frame_text::cut_middle;
use crate::report::quantity::plural;
use crate::report::table::{Align, Table};
use crate::snapshot::sheet::Cell;

/// Frames shown of a stack as text, where nothing is said.
const FRAMES_SHOWN: usize = 10;

/// A table whose last column is a stack, a frame or an image.
#[derive(Debug)]
pub(crate) struct LineTable {
    by: GroupBy,
    /// Key (JSON, CSV) and heading (text).
    columns: Vec<(&'static str, &'static str)>,
    rows: Vec<(Vec<Cell>, Vec<String>)>,
    left_off: usize,
}

impl LineTable {
    pub(crate) fn new(by: GroupBy, columns: &[(&'static str, &'static str)]) -> Self {
        Self { by, columns: columns.to_vec(), rows: Vec::new(), left_off: 0 }
    }

    /// Adds the first `top` rows: cells and frames.
    pub(crate) fn rows(&mut self, top: usize, rows: impl IntoIterator<Item = (Vec<Cell>, Vec<String>)>) {
        let mut rows = rows.into_iter();
        self.rows.extend(rows.by_ref().take(top));
        self.left_off += rows.count();
    }

    /// What the lines are of, in words.
    pub(crate) fn title(&self) -> &'static str {
        match self.by {
            GroupBy::Stacks => "STACKS",
            GroupBy::Frames => "FRAMES",
            GroupBy::Lines => "LINES",
            GroupBy::Images => "IMAGES",
            GroupBy::Threads => "THREADS",
        }
    }

    pub(crate) fn write_text(&self, out: &mut dyn Write, depth: usize) -> std::io::Result<()> {
        let width = line_width();
        if self.rows.is_empty() {
            return writeln!(out, "nothing");
        }
        let is_by_stack = self.by == GroupBy::Stacks;
        let is_shown = |column: &usize| self.rows.iter().any(|(cells, _)| cells[*column] != Cell::Nothing);
        let shown: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        let is_text =
            |column: usize| self.rows.iter().any(|(cells, _)| matches!(cells[column], Cell::Text(_)));
        let align = |column: usize| if is_text(column) { Align::Left } else { Align::Right };
        let mut columns: Vec<(&str, Align)> =
            shown.iter().map(|&column| (self.columns[column].1, align(column))).collect();
        let last = if self.by == GroupBy::Images { "Image" } else { "Frame" };
        columns.push((if is_by_stack { "" } else { last }, Align::Left));
        let flexible = columns.len() - 1;
        let mut table = Table::new(&columns, flexible);
        for (cells, frames) in &self.rows {
            let mut texts: Vec<String> = shown.iter().map(|&column| cells[column].text()).collect();
            texts.push(if is_by_stack { String::new() } else { frame_text(frames.first()) });
            table.row(texts);
        }
        let lines = table.lines(0, width);
        writeln!(out, "{}", lines[0])?;
        for (line, (_, frames)) in lines[1..].iter().zip(&self.rows) {
            writeln!(out, "{line}")?;
            if !is_by_stack {
                continue;
            }
            if frames.is_empty() {
                writeln!(out, "      {}", frame_text(None))?;
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
            writeln!(out)?;
        }
        if self.left_off > 0 {
            writeln!(out, "… and {}; --top N shows more", plural(self.left_off as u64, "more line"))?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> Value {
        let row = |(cells, frames): &(Vec<Cell>, Vec<String>)| -> Value {
            let fields = self.columns.iter().zip(cells);
            let mut row: Map<String, Value> =
                fields.map(|(&(key, _), cell)| (key.to_owned(), cell.json())).collect();
            row.insert("frames".to_owned(), json!(frames));
            Value::Object(row)
        };
        self.rows.iter().map(row).collect()
    }

    pub(crate) fn write_csv(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let keys: Vec<&str> = self.columns.iter().map(|&(key, _)| key).collect();
        writeln!(out, "{},frames", keys.join(","))?;
        for (cells, frames) in &self.rows {
            let cells: Vec<String> = cells.iter().map(Cell::csv).collect();
            writeln!(out, "{},{}", cells.join(","), quoted(&frames.join(" <- ")))?;
        }
        Ok(())
    }
}

fn frame_text(frame: Option<&String>) -> String {
    frame.map_or_else(|| "(no stack was taken)".to_owned(), Clone::clone)
}

/// How results are printed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OutputArguments {
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Most lines [default: 10; all as json and csv]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Most frames of a stack as text [default: 10]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
}

impl OutputArguments {
    pub(crate) fn depth(&self) -> usize {
        self.depth.unwrap_or(FRAMES_SHOWN)
    }

    pub(crate) fn top(&self) -> usize {
        self.top.unwrap_or(if self.format == Format::Text { 10 } else { usize::MAX })
    }
}
