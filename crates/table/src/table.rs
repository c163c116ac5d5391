//! A table: columns, rows, and facts about the whole.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::frames::write_stack;
use crate::layout;
use crate::quantity::plural;

/// Table of the results of one query.
#[derive(Debug)]
pub struct Table {
    /// Name and version of the JSON schema.
    schema: &'static str,
    /// Facts about the whole, for JSON.
    facts: Vec<(&'static str, Value)>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Name of the rows in JSON.
    rows_key: &'static str,
    /// Number of rows beyond the limit.
    left_off: u64,
    /// Largest number of frames of a stack below its row, in text. `None`: the row has the
    /// innermost frame.
    depth: Option<usize>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(schema: &'static str, columns: &[Column]) -> Self {
        Self {
            schema,
            facts: Vec::new(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            rows_key: "rows",
            left_off: 0,
            depth: None,
        }
    }

    /// A table with these rows.
    #[must_use]
    pub fn of(schema: &'static str, columns: &[Column], rows: impl IntoIterator<Item = Vec<Cell>>) -> Self {
        let mut table = Self::new(schema, columns);
        table.rows(usize::MAX, rows);
        table
    }

    /// Adds a fact about the whole.
    pub fn fact(&mut self, key: &'static str, value: impl Into<Value>) {
        self.facts.push((key, value.into()));
    }

    /// Adds several facts about the whole.
    pub fn facts<V: Into<Value>>(&mut self, facts: impl IntoIterator<Item = (&'static str, V)>) {
        self.facts.extend(facts.into_iter().map(|(key, value)| (key, value.into())));
    }

    /// Sets the name of the rows in JSON.
    pub fn call_rows(&mut self, key: &'static str) {
        self.rows_key = key;
    }

    /// Prints stacks below their rows, with at most `depth` frames.
    pub fn show_stacks(&mut self, depth: usize) {
        self.depth = Some(depth);
    }

    /// Adds a row.
    pub fn row(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Adds the first `top` rows, and counts the others as left off.
    pub fn rows(&mut self, top: usize, rows: impl IntoIterator<Item = Vec<Cell>>) {
        let mut rows = rows.into_iter();
        rows.by_ref().take(top).for_each(|row| self.row(row));
        self.left_off += rows.count() as u64;
    }

    /// Removes the rows after the first `top`. Returns whether there were more.
    pub fn truncate(&mut self, top: usize) -> bool {
        let is_longer = self.rows.len() > top;
        self.rows.truncate(top);
        is_longer
    }

    /// Cuts texts of more than `most` characters.
    pub fn cut_texts(&mut self, most: usize) {
        for cell in self.rows.iter_mut().flatten() {
            if let Cell::Text(text) = cell
                && let Some((at, _)) = text.char_indices().nth(most)
            {
                text.truncate(at);
                text.push('…');
            }
        }
    }

    /// The rows alone, for JSON.
    #[must_use]
    pub fn rows_json(&self) -> impl Serialize + '_ {
        Rows(self)
    }

    /// Adds to the number of rows that are left off.
    pub fn left_off(&mut self, count: u64) {
        self.left_off += count;
    }

    /// Writes the table for people, in lines of `width` columns.
    ///
    /// # Errors
    /// Writing fails.
    pub fn write_text(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        if self.rows.is_empty() {
            return writeln!(out, "nothing");
        }
        let lines = self.lines(0, width);
        writeln!(out, "{}", lines[0])?;
        for (line, row) in lines[1..].iter().zip(&self.rows) {
            writeln!(out, "{line}")?;
            if let (Some(depth), Some(frames)) = (self.depth, row.last().and_then(Cell::frames)) {
                write_stack(out, frames, depth, width)?;
            }
        }
        if self.left_off > 0 {
            writeln!(out, "… and {}; --top N shows more", plural(self.left_off, "more line"))?;
        }
        Ok(())
    }

    /// The line of headings, and one line for each row. Columns without values are left out, and
    /// the column with the longest text shrinks if needed.
    #[must_use]
    pub fn lines(&self, indent: usize, width: usize) -> Vec<String> {
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|&at| self.columns[at].is_shown && self.rows.iter().any(|row| row[at] != Cell::Nothing))
            .collect();
        let text = |row: &[Cell], at: usize| match &row[at] {
            cell if self.depth.is_some() && cell.frames().is_some() => String::new(),
            cell => cell.text(self.columns[at].kind, width),
        };
        let mut rows = vec![shown.iter().map(|&at| self.columns[at].heading.to_owned()).collect()];
        rows.extend(self.rows.iter().map(|row| shown.iter().map(|&at| text(row, at)).collect()));
        let longest = |at: usize| match self.columns[at].kind {
            Kind::Frames => usize::MAX,
            Kind::Text => self.rows.iter().map(|row| text(row, at).len()).max().unwrap_or(0),
            _ => 0,
        };
        let flexible = (0..shown.len()).max_by_key(|&place| longest(shown[place])).unwrap_or(0);
        let is_left: Vec<bool> = shown.iter().map(|&at| self.columns[at].is_left_aligned()).collect();
        layout::lines(&rows, &is_left, flexible, indent, width)
    }

    /// Writes the table as CSV: a line of keys, and one for each row.
    ///
    /// # Errors
    /// Writing fails.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        // A column of estimates is followed by a column of their half intervals.
        let is_in = |place: &usize| self.columns[*place].kind != Kind::Detail;
        let has_estimates = |place: usize| self.rows.iter().any(|row| row[place].plus_minus().is_some());
        let shown: Vec<(usize, bool)> = (0..self.columns.len())
            .filter(is_in)
            .flat_map(|place| [Some((place, false)), has_estimates(place).then_some((place, true))])
            .flatten()
            .collect();
        let key = |&(place, is_interval): &(usize, bool)| match (self.columns[place].key, is_interval) {
            (key, true) => interval_key(key),
            (key, false) => key.to_owned(),
        };
        writeln!(out, "{}", shown.iter().map(key).collect::<Vec<_>>().join(","))?;
        for row in &self.rows {
            let field = |&(place, is_interval): &(usize, bool)| match is_interval {
                true => row[place].plus_minus().unwrap_or(0).to_string(),
                false => row[place].csv(),
            };
            writeln!(out, "{}", shown.iter().map(field).collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// Writes the schema, the facts, the rows by the columns' keys, and the number of rows left off.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_map(None)?;
        whole.serialize_entry("schema", self.schema)?;
        for (key, value) in &self.facts {
            whole.serialize_entry(key, value)?;
        }
        whole.serialize_entry(self.rows_key, &Rows(self))?;
        whole.serialize_entry("left_off", &self.left_off)?;
        whole.end()
    }
}

/// Key of half of the 95 % interval beside an estimate.
#[must_use]
pub fn interval_key(key: &str) -> String {
    format!("{key}_plus_minus")
}

/// The rows of a table, for JSON.
struct Rows<'a>(&'a Table);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.rows.iter().map(|row| Row(&self.0.columns, row)))
    }
}

/// A row, for JSON.
struct Row<'a>(&'a [Column], &'a [Cell]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        for (column, cell) in self.0.iter().zip(self.1) {
            row.serialize_entry(column.key, cell)?;
            if let Some(plus_minus) = cell.plus_minus() {
                row.serialize_entry(&interval_key(column.key), &plus_minus)?;
            }
        }
        row.end()
    }
}
