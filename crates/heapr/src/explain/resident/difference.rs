//! Changes of resident memory since an earlier answer.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use heapr_resident::{SavedMoment, SavedMoments, class_label};
use heapr_table::SortRows as _;
use heapr_table::{Column, Table, row};
use serde_json::{Value, json};

use super::saved_file;
use crate::explain::printed_table::write_table;

/// Resident memory at an earlier moment and at a later one.
#[derive(Debug, Clone)]
pub(in crate::explain) struct Difference {
    then_rss_bytes: u64,
    now_rss_bytes: u64,
    /// Class, bytes then, bytes now; the largest change first.
    lines: Vec<(String, u64, u64)>,
}

/// Compares with an earlier answer (`heapr explain PID --format json`), or with the last one of a
/// series.
pub(super) fn since(path: &Path, now: &SavedMoment) -> anyhow::Result<Difference> {
    let then = saved_file::read(path)?;
    let then = then.as_ref().and_then(SavedMoments::last);
    let then =
        then.with_context(|| format!("{} holds no answer of heapr explain --format json", path.display()))?;
    let mut both: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    then.lines.iter().for_each(|(class, bytes)| both.entry(class).or_default().0 += bytes);
    now.lines.iter().for_each(|(class, bytes)| both.entry(class).or_default().1 += bytes);
    let mut lines: Vec<_> =
        both.into_iter().map(|(class, (then, now))| (class.to_owned(), then, now)).collect();
    lines.sort_rows_by_key(|(_, then, now)| std::cmp::Reverse(then.abs_diff(*now)));
    Ok(Difference { then_rss_bytes: then.rss_bytes, now_rss_bytes: now.rss_bytes, lines })
}

fn change(then: u64, now: u64) -> i64 {
    i64::try_from(i128::from(now) - i128::from(then)).unwrap_or(0)
}

impl Difference {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [
            Column::text("class", ""),
            Column::bytes("then_bytes", "then"),
            Column::bytes("now_bytes", "now"),
            Column::bytes("change_bytes", "change"),
        ];
        let mut table = Table::new("heapr.explain/1", &columns);
        for (class, then, now) in self.lines.iter().filter(|(_, then, now)| then != now) {
            table.row(row![class_label(class), *then, *now, change(*then, *now)]);
        }
        let (then, now) = (self.then_rss_bytes, self.now_rss_bytes);
        table.row(row!["all", then, now, change(then, now)]);
        writeln!(out, "since then:")?;
        write_table(&table, out)
    }

    pub(super) fn json(&self) -> Value {
        let line = |(class, then, now): &(String, u64, u64)| json!({"class": class, "then_bytes": then, "now_bytes": now, "change_bytes": change(*then, *now)});
        json!({
            "then_rss_bytes": self.then_rss_bytes,
            "now_rss_bytes": self.now_rss_bytes,
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }
}
