//! Amounts of a row in words. Related amounts share a phrase; estimates have half of their
//! interval.

use heapr_query::Metric;
use heapr_table::quantity::{bytes_within, count_within, plural_within};
use heapr_table::{Cell, Column};
use heapr_trace::Amounts;

/// Text for an amount that its source does not have.
const UNKNOWN: &str = "unknown";

/// Amounts that share a phrase.
pub(super) struct Together {
    pub(super) label: &'static str,
    pub(super) bytes: Option<Metric>,
    pub(super) count: Metric,
    /// Words between the bytes and the count.
    phrase: &'static str,
    thing: &'static str,
}

pub(super) const TOGETHER: [Together; 5] = [
    Together {
        label: "outstanding",
        bytes: Some(Metric::OutstandingBytes),
        count: Metric::OutstandingCount,
        phrase: "outstanding in",
        thing: "block",
    },
    Together {
        label: "total",
        bytes: Some(Metric::TotalBytes),
        count: Metric::TotalCount,
        phrase: "in",
        thing: "allocation",
    },
    Together {
        label: "at peak",
        bytes: Some(Metric::PeakBytes),
        count: Metric::PeakCount,
        phrase: "at the peak in",
        thing: "block",
    },
    Together { label: "reallocs", bytes: None, count: Metric::ReallocCount, phrase: "", thing: "realloc" },
    Together {
        label: "temporary",
        bytes: None,
        count: Metric::TemporaryCount,
        phrase: "",
        thing: "temporary allocation",
    },
];

impl Together {
    pub(super) fn has(&self, metric: Metric) -> bool {
        self.bytes == Some(metric) || self.count == metric
    }

    /// Formats the amounts by themselves, as in `1.00 KiB outstanding in 2 blocks`.
    pub(super) fn alone(&self, amounts: &Amounts) -> String {
        let things = things(self.count, amounts, self.thing);
        match self.bytes {
            Some(metric) => {
                format!("{} {} {things}", amount(metric, amounts), self.phrase)
            }
            None => things,
        }
    }

    /// Formats the amounts beside others, as in `outstanding 1.00 KiB in 2`; `None` if they are
    /// unknown, or if a rare one is 0.
    pub(super) fn beside(&self, amounts: &Amounts) -> Option<String> {
        let things = self.count.of(amounts);
        match self.bytes {
            // An unknown amount says nothing beside others.
            Some(metric) if metric.is_unknown(amounts) => None,
            Some(metric) if self.count.is_unknown(amounts) => {
                Some(format!("{} {}", self.label, amount(metric, amounts)))
            }
            Some(metric) => {
                Some(format!("{} {} in {}", self.label, amount(metric, amounts), amount(self.count, amounts)))
            }
            None => (things > 0).then(|| format!("{} {}", self.label, amount(self.count, amounts))),
        }
    }
}

pub(super) fn sort_amount(sort: Metric, amounts: &Amounts) -> String {
    TOGETHER
        .iter()
        .find(|together| together.has(sort))
        .map_or_else(String::new, |together| together.alone(amounts))
}

/// Formats an amount in its unit, an estimate with half of its interval.
pub(crate) fn amount(metric: Metric, amounts: &Amounts) -> String {
    if metric.is_unknown(amounts) {
        return UNKNOWN.to_owned();
    }
    let text = if metric.is_bytes() { bytes_within } else { count_within };
    text(metric.of(amounts), metric.plus_minus(amounts))
}

/// Formats an amount with all its digits, an estimate with half of its interval.
pub(super) fn exact_amount(metric: Metric, amounts: &Amounts) -> String {
    match metric.known(amounts) {
        Some(number) => count_within(number, metric.plus_minus(amounts)),
        None => UNKNOWN.to_owned(),
    }
}

/// Formats `1,234 bytes in 2 blocks`, both with all their digits.
pub(super) fn exact_bytes(bytes: Metric, count: Metric, amounts: &Amounts, thing: &str) -> String {
    match bytes.is_unknown(amounts) {
        true => UNKNOWN.to_owned(),
        false => format!("{} bytes in {}", exact_amount(bytes, amounts), things(count, amounts, thing)),
    }
}

/// Returns the table column of an amount.
pub(super) fn column(metric: Metric) -> Column {
    let column = if metric.is_bytes() { Column::bytes } else { Column::count };
    column(metric.name(), metric.heading())
}

/// Returns the table cell of an amount.
pub(super) fn cell(metric: Metric, amounts: &Amounts) -> Cell {
    match metric.known(amounts) {
        Some(number) => Cell::from(number).within(metric.plus_minus(amounts)),
        None => Cell::Worded(serde_json::Value::Null, UNKNOWN.to_owned()),
    }
}

/// Formats a count with its noun, as in `1,234 blocks ± 120`.
pub(crate) fn things(metric: Metric, amounts: &Amounts, thing: &str) -> String {
    match metric.known(amounts) {
        Some(number) => plural_within(number, metric.plus_minus(amounts), thing),
        None => format!("an unknown number of {thing}s"),
    }
}
