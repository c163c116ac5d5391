//! Sizes and lifetimes of allocations as a table with bars.

use heapr_query::{Bucket, Histogram, HistogramOf, Metric};
use heapr_table::{Column, Table, row};
use heapr_trace::Amounts;

use super::amounts_text::{cell, column, things};
use crate::plain_text::page_columns;

/// Formats the lines of a histogram, `width` columns wide. `schema` is that of the answer it
/// belongs to.
pub(super) fn histogram_lines(schema: &'static str, histogram: &Histogram, width: usize) -> Vec<String> {
    let title = match histogram.of {
        HistogramOf::Size => "SIZES",
        HistogramOf::Lifetime => "LIFETIMES",
    };
    let counts = || histogram.buckets.iter().map(|bucket| bucket.amounts.total_count);
    let whole: Amounts = histogram.buckets.iter().map(|bucket| &bucket.amounts).sum();
    let largest = counts().max().unwrap_or(0).max(1);
    let edge = |key, heading| match histogram.of {
        HistogramOf::Size => Column::bytes(key, heading),
        HistogramOf::Lifetime => Column::ns(key, heading),
    };
    let mut columns = vec![edge("from", "From"), edge("below", "Below")];
    columns.extend(Bucket::metrics().map(column));
    columns.push(Column::text("bar", ""));
    let mut table = Table::new(schema, &columns);
    let bar_columns = page_columns(width).saturating_sub(66).clamp(12, 40);
    for (bucket, count) in histogram.buckets.iter().zip(counts()) {
        let bar = (u128::from(count) * bar_columns as u128).div_ceil(u128::from(largest)) as usize;
        let mut cells = row![bucket.from, bucket.last.saturating_add(1)];
        cells.extend(Bucket::metrics().map(|metric| cell(metric, &bucket.amounts)));
        cells.push("#".repeat(bar).into());
        table.row(cells);
    }
    let all = things(Metric::TotalCount, &whole, "allocation");
    let mut lines = vec![String::new(), format!("{title} of {all}")];
    lines.extend(table.lines(0, width));
    lines
}
