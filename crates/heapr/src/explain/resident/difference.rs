//! What has changed since an earlier answer.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use heapr_resident::Account;
use heapr_table::{Column, Table, row};
use serde_json::{Value, json};

use crate::plain_text::line_width;

/// Lines then and now.
#[derive(Debug)]
pub(super) struct Difference {
    then_rss_bytes: u64,
    now_rss_bytes: u64,
    /// By class: then, now; those that changed most first.
    lines: Vec<(String, u64, u64)>,
}

/// Reads an earlier answer (`heapr explain PID --format json`), or the last one of a series.
pub(super) fn since(path: &Path, account: &Account) -> anyhow::Result<Difference> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let last = || text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let answer: Value = serde_json::from_str(&text)
        .or_else(|_| serde_json::from_str(last()))
        .with_context(|| format!("{} holds no answer of heapr explain --format json", path.display()))?;
    let resident = &answer["resident"];
    let then =
        lines_of(resident).with_context(|| format!("{} says nothing of resident memory", path.display()))?;
    let now = account.lines().into_iter().map(|line| (line.class.key().to_owned(), line.pages.rss_bytes));
    let mut both: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    then.into_iter().for_each(|(class, bytes)| both.entry(class).or_default().0 += bytes);
    now.for_each(|(class, bytes)| both.entry(class).or_default().1 += bytes);
    let mut lines: Vec<_> = both.into_iter().map(|(class, (then, now))| (class, then, now)).collect();
    lines.sort_by_key(|(_, then, now)| std::cmp::Reverse(then.abs_diff(*now)));
    Ok(Difference {
        then_rss_bytes: resident["rss_bytes"].as_u64().unwrap_or(0),
        now_rss_bytes: account.pages.rss_bytes,
        lines,
    })
}

fn lines_of(resident: &Value) -> Option<Vec<(String, u64)>> {
    let lines = resident["lines"].as_array()?;
    lines.iter().map(|line| Some((line["class"].as_str()?.to_owned(), line["bytes"].as_u64()?))).collect()
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
            table.row(row![class.replace('_', " "), *then, *now, change(*then, *now)]);
        }
        let (then, now) = (self.then_rss_bytes, self.now_rss_bytes);
        table.row(row!["all", then, now, change(then, now)]);
        writeln!(out, "since then:")?;
        for line in table.lines(2, line_width()) {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
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
