//! Resident memory at several moments: saved answers of `heapr explain`, or accounts of a
//! recording.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use heapr_resident::{SavedMoment, SavedMoments, class_label};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, duration, plural, share};
use heapr_table::{Cell, Column, Table, row};
use heapr_trace::Trace;
use serde_json::{Value, json};

use super::difference::{self, Difference};
use super::saved_file;
use crate::explain::printed_table::write_table;

/// Moments of one process.
#[derive(Debug, Clone)]
pub(in crate::explain) struct Moments {
    pub(super) kept: SavedMoments,
    /// Changes since an earlier answer.
    difference: Option<Difference>,
}

/// Reads an answer (`heapr explain PID --format json`) or a series of them (`--every`); `None` if
/// the file is something else.
pub(in crate::explain) fn of_answers(path: &Path) -> anyhow::Result<Option<Moments>> {
    Ok(saved_file::read(path)?.map(Moments::of))
}

/// Reads the moments of a recording; `None` if it has no moments.
pub(in crate::explain) fn of_recording(trace: &Trace) -> anyhow::Result<Option<Moments>> {
    Ok(SavedMoments::of_recording(trace)?.map(Moments::of))
}

/// Bytes, and half of their 95 % interval.
type Estimate = (u64, u64);

impl Moments {
    pub(super) fn of(kept: SavedMoments) -> Self {
        Self { kept, difference: None }
    }

    /// Adds the changes since an earlier answer.
    pub(in crate::explain) fn compare_with(&mut self, old: &Path) -> anyhow::Result<()> {
        let last = self.kept.last().context("there is nothing to compare")?;
        self.difference = Some(difference::since(old, last)?);
        Ok(())
    }

    /// Returns the first, largest and last amount of each class, with half of their intervals; the
    /// class that is largest at the end comes first.
    fn classes(&self) -> Vec<(&str, [Estimate; 3])> {
        let mut classes: BTreeMap<&str, [Estimate; 3]> = BTreeMap::new();
        for moment in &self.kept.moments {
            for (class, _) in &moment.lines {
                classes.entry(class).or_default();
            }
        }
        for (class, amounts) in &mut classes {
            let of = |moment: &SavedMoment| (moment.bytes(class), moment.plus_minus(class));
            *amounts = [
                self.kept.moments.first().map(of).unwrap_or_default(),
                self.kept.moments.iter().map(of).max().unwrap_or_default(),
                self.kept.moments.last().map(of).unwrap_or_default(),
            ];
        }
        let mut classes: Vec<_> = classes.into_iter().collect();
        classes.sort_rows_by_key(|(_, [_, most, last])| std::cmp::Reverse((*last, *most)));
        classes
    }

    pub(in crate::explain) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let (Some(first), Some(last)) = (self.kept.moments.first(), self.kept.last()) else { return Ok(()) };
        let most = self.kept.moments.iter().map(|moment| moment.rss_bytes).max().unwrap_or(0);
        let of = if self.kept.of.is_empty() { String::new() } else { format!(" of {}", self.kept.of) };
        let over = match last.time_ns.filter(|time_ns| *time_ns > 0) {
            Some(time_ns) => {
                format!(", {} until {}", plural(self.kept.moments.len() as u64, "moment"), duration(time_ns))
            }
            None => String::new(),
        };
        writeln!(out, "resident{of}: {}{over}; all of it:", bytes(last.rss_bytes))?;
        let is_one = self.kept.moments.len() == 1;
        let mut columns = vec![Column::text("class", "")];
        if !is_one {
            columns.push(Column::bytes("first_bytes", "first"));
            columns.push(Column::bytes("most_bytes", "most"));
        }
        columns.extend([
            Column::bytes("bytes", if is_one { "resident" } else { "last" }),
            Column::percent("percent", "%"),
        ]);
        let mut table = Table::new("heapr.explain/1", &columns);
        for (class, amounts) in self.classes() {
            let (class, of_all) = (class_label(class), share(amounts[2].0, last.rss_bytes));
            let [before, highest, now] = amounts.map(|(bytes, half)| Cell::from(bytes).within(half));
            if is_one {
                table.row(row![class, now, of_all]);
            } else {
                table.row(row![class, before, highest, now, of_all]);
            }
        }
        if !is_one {
            table.row(row!["all", first.rss_bytes, most, last.rss_bytes, 100.0]);
        }
        write_table(&table, out)?;
        if let Some(difference) = &self.difference {
            difference.write_text(out)?;
        }
        self.kept.limits.iter().try_for_each(|limit| writeln!(out, "not told: {limit}"))
    }

    /// Returns the last moment, and all of them.
    pub(in crate::explain) fn json(&self) -> (Value, Value) {
        let mut last = self.kept.last().map_or(Value::Null, SavedMoment::json);
        if let Value::Object(fields) = &mut last {
            fields.insert("of".to_owned(), json!(self.kept.of));
            fields.insert("since".to_owned(), json!(self.difference.as_ref().map(Difference::json)));
            fields.insert("not_told".to_owned(), json!(self.kept.limits));
        }
        (last, self.kept.moments.iter().map(SavedMoment::json).collect())
    }
}
