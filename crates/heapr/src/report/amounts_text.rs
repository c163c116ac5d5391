//! Amounts of a row in words: what belongs together in one phrase, estimates with half of their
//! interval.

use heapr_query::Metric;
use heapr_table::quantity::{bytes_within, count_within, plural_within};
use heapr_table::{Cell, Column};
use heapr_trace::Amounts;

/// In place of an amount that its source does not tell.
const UNKNOWN: &str = "unknown";

/// Amounts that are told together.
pub(super) struct Together {
    pub(super) label: &'static str,
    pub(super) bytes: Option<Metric>,
    pub(super) count: Metric,
    /// Between the bytes and the number of things.
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

    /// `1.00 KiB outstanding in 2 blocks`.
    pub(super) fn alone(&self, amounts: &Amounts) -> String {
        let things = things(self.count, amounts, self.thing);
        match self.bytes {
            Some(metric) => {
                format!("{} {} {things}", amount(metric, amounts), self.phrase)
            }
            None => things,
        }
    }

    /// `outstanding 1.00 KiB in 2`; what few have only if there is any.
    pub(super) fn beside(&self, amounts: &Amounts) -> Option<String> {
        let things = self.count.of(amounts);
        match self.bytes {
            // Nobody knows either.
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

/// An amount in its unit; of an estimate with half of its interval.
pub(crate) fn amount(metric: Metric, amounts: &Amounts) -> String {
    if metric.is_unknown(amounts) {
        return UNKNOWN.to_owned();
    }
    let text = if metric.is_bytes() { bytes_within } else { count_within };
    text(metric.of(amounts), metric.plus_minus(amounts))
}

/// The same with all its digits.
pub(super) fn exact_amount(metric: Metric, amounts: &Amounts) -> String {
    match metric.known(amounts) {
        Some(number) => count_within(number, metric.plus_minus(amounts)),
        None => UNKNOWN.to_owned(),
    }
}

/// `1,234 bytes in 2 blocks`: both with all their digits.
pub(super) fn exact_bytes(bytes: Metric, count: Metric, amounts: &Amounts, thing: &str) -> String {
    match bytes.is_unknown(amounts) {
        true => UNKNOWN.to_owned(),
        false => format!("{} bytes in {}", exact_amount(bytes, amounts), things(count, amounts, thing)),
    }
}

/// Its column in a table.
pub(super) fn column(metric: Metric) -> Column {
    let column = if metric.is_bytes() { Column::bytes } else { Column::count };
    column(metric.name(), metric.heading())
}

/// The same in a table.
pub(super) fn cell(metric: Metric, amounts: &Amounts) -> Cell {
    match metric.known(amounts) {
        Some(number) => Cell::from(number).within(metric.plus_minus(amounts)),
        None => Cell::Worded(serde_json::Value::Null, UNKNOWN.to_owned()),
    }
}

/// `1,234 blocks ± 120`.
pub(crate) fn things(metric: Metric, amounts: &Amounts, thing: &str) -> String {
    match metric.known(amounts) {
        Some(number) => plural_within(number, metric.plus_minus(amounts), thing),
        None => format!("an unknown number of {thing}s"),
    }
}
