//! Sizes and lifetimes of allocations as a table with bars.

use heapr_query::{Histogram, HistogramOf};
use heapr_table::quantity::plural;
use heapr_table::{Column, Table, row};

use crate::plain_text::page_columns;

/// Its lines, `width` columns wide. `schema` is that of the answer it belongs to.
pub(super) fn histogram_lines(schema: &'static str, histogram: &Histogram, width: usize) -> Vec<String> {
    let title = match histogram.of {
        HistogramOf::Size => "SIZES",
        HistogramOf::Lifetime => "LIFETIMES",
    };
    let all: u64 = histogram.buckets.iter().map(|bucket| bucket.total_count).sum();
    let largest = histogram.buckets.iter().map(|bucket| bucket.total_count).max().unwrap_or(0).max(1);
    let edge = |key, heading| match histogram.of {
        HistogramOf::Size => Column::bytes(key, heading),
        HistogramOf::Lifetime => Column::ns(key, heading),
    };
    let columns = [
        edge("from", "From"),
        edge("below", "Below"),
        Column::count("total_count", "Allocs"),
        Column::bytes("total_bytes", "Total"),
        Column::count("outstanding_count", "Live"),
        Column::bytes("outstanding_bytes", "Live bytes"),
        Column::text("bar", ""),
    ];
    let mut table = Table::new(schema, &columns);
    let bar_columns = page_columns(width).saturating_sub(66).clamp(12, 40);
    for bucket in &histogram.buckets {
        let bar =
            (u128::from(bucket.total_count) * bar_columns as u128).div_ceil(u128::from(largest)) as usize;
        table.row(row![
            bucket.from,
            bucket.last.saturating_add(1),
            bucket.total_count,
            bucket.total_bytes,
            bucket.outstanding_count,
            bucket.outstanding_bytes,
            "#".repeat(bar),
        ]);
    }
    let mut lines = vec![String::new(), format!("{title} of {}", plural(all, "allocation"))];
    lines.extend(table.lines(0, width));
    lines
}
