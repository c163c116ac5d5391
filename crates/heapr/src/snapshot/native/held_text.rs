//! Holders and their growth, in words, as a table and as JSON.

use heapr_query::Confidence;
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, count, plural, signed_bytes};
use heapr_table::{Column, Table, row};
use serde_json::{Value, json};

use super::held_growth::{Gathered, HeldGrowth, HolderGrowth};
use crate::plain_text::{line_width, one_line};

/// Formats suspects in words, each with what it collects, and where.
pub(super) fn suspects_in_words<'h>(
    holders: impl Iterator<Item = &'h HolderGrowth>,
    is_growth: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, holder) in holders.enumerate() {
        let judged = match holder.confidence {
            Some(Confidence::High) => ": almost certainly a leak",
            Some(Confidence::Medium) => ": likely a leak",
            Some(Confidence::Low) => ": probably not a leak",
            None => "",
        };
        lines.push(format!("{}. {}{judged}", number + 1, one_line(&holder.name)));
        if is_growth {
            let steps = holder.held_at.windows(2);
            let steps = steps.map(|pair| signed_bytes(i128::from(pair[1].bytes) - i128::from(pair[0].bytes)));
            lines.push(format!("   grew by    {}", steps.collect::<Vec<_>>().join(", then ")));
        }
        lines.extend(more_in_words(holder, is_growth));
        lines.push(String::new());
    }
    lines
}

/// Formats what a holder collects, and where.
pub(super) fn more_in_words(holder: &HolderGrowth, is_growth: bool) -> Vec<String> {
    let last = holder.last();
    let mut lines = vec![format!("   holds      {} in {}", bytes(last.bytes), plural(last.count, "block"))];
    for (place, (name, held)) in holder.collects.iter().enumerate() {
        let head = if place == 0 { "collects" } else { "" };
        let more = if is_growth { " more" } else { "" };
        let name = one_line(name);
        lines.push(format!("   {head:10} {}{more} of {name} ({})", count(held.count), bytes(held.bytes)));
    }
    if let Some(gathered) = &holder.gathered {
        lines.push(format!("   gathered   in {}", gathered_in_words(gathered)));
    }
    lines
}

fn gathered_in_words(gathered: &Gathered) -> String {
    let way = gathered.way.iter().map(|(name, address)| format!("{} @{address:#x}", one_line(name)));
    let way = way.collect::<Vec<_>>().join(" -> ");
    if gathered.is_chain {
        return format!("{way}, the first of a chain that keeps {}", bytes(gathered.retained_bytes));
    }
    let before = match gathered.references_before {
        Some(before) if before != gathered.reference_count => format!(", {} at first", count(before)),
        _ => String::new(),
    };
    let references = plural(gathered.reference_count, "block");
    format!("{way}: refers to {references}{before}, keeps {}", bytes(gathered.retained_bytes))
}

/// Returns a table of the holders in which two graphs differ.
pub(super) fn changes_table(growth: &HeldGrowth, top: usize) -> Table {
    let mut table = Table::new(
        "heapr.snapshot.diff/1",
        &[
            Column::bytes("bytes_delta", "Change"),
            Column::bytes("before_bytes", "Before"),
            Column::bytes("after_bytes", "After"),
            Column::bytes("new_bytes", "New"),
            Column::count("new_count", "Blocks"),
            Column::text("holder", "Holder"),
        ],
    );
    let mut holders: Vec<&HolderGrowth> = growth.holders.iter().collect();
    holders.sort_rows_by_key(|holder| std::cmp::Reverse(holder.growth_bytes().unsigned_abs()));
    let rows = holders.into_iter().map(|holder| {
        let first = holder.held_at.first().copied().unwrap_or_default();
        row![
            holder.growth_bytes(),
            first.bytes,
            holder.last().bytes,
            holder.new.map(|new| new.bytes),
            holder.new.map(|new| new.count),
            holder.name.clone(),
        ]
    });
    table.rows(top, rows);
    table
}

/// Formats the table of changed holders as lines, below a heading.
pub(super) fn changes_in_words(growth: &HeldGrowth, top: usize) -> Vec<String> {
    const DETAILED: usize = 3;
    let heading = format!("HOLDERS: {} differ in what each holds alone", count(growth.holders.len() as u64));
    let mut lines = vec![heading, String::new()];
    lines.extend(changes_table(growth, top).lines(0, line_width()));
    for holder in growth.holders.iter().filter(|holder| holder.growth_bytes() > 0).take(DETAILED) {
        lines.push(String::new());
        lines.push(one_line(&holder.name));
        lines.extend(more_in_words(holder, true));
    }
    lines
}

/// Returns a holder as JSON.
pub(super) fn holder_json(holder: &HolderGrowth) -> Value {
    let collects = holder.collects.iter();
    let collects =
        collects.map(|(name, held)| json!({"name": name, "count": held.count, "bytes": held.bytes}));
    let gathered = holder.gathered.as_ref().map(|gathered| {
        let way = gathered.way.iter().map(|(name, address)| json!({"name": name, "id": address}));
        json!({
            "way": way.collect::<Vec<_>>(),
            "reference_count": gathered.reference_count,
            "references_before": gathered.references_before,
            "retained_bytes": gathered.retained_bytes,
            "is_chain": gathered.is_chain,
        })
    });
    json!({
        "holder": holder.name,
        "confidence": holder.confidence.map(Confidence::name),
        "growth_bytes": i64::try_from(holder.growth_bytes()).unwrap_or(i64::MAX),
        "bytes_at": holder.held_at.iter().map(|held| held.bytes).collect::<Vec<_>>(),
        "count_at": holder.held_at.iter().map(|held| held.count).collect::<Vec<_>>(),
        "new_bytes": holder.new.map(|new| new.bytes),
        "new_count": holder.new.map(|new| new.count),
        "collects": collects.collect::<Vec<_>>(),
        "gathered_in": gathered,
    })
}
