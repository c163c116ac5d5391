//! The table of metrics: their names on the command line, in JSON and CSV, on the page and in
//! pprof. All lists of metrics are made from this table; the page's copy is generated from it
//! (`tests/it/generated_metrics.rs`).

use heapr_trace::{Amounts, Estimate, Variances, half_interval};

/// One of the amounts that results are sorted by and that graphs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// Bytes that are not freed.
    #[default]
    OutstandingBytes,
    /// Blocks that are not freed.
    OutstandingCount,
    /// Bytes of all allocations.
    TotalBytes,
    /// Number of all allocations.
    TotalCount,
    /// Allocations that came out of a realloc.
    ReallocCount,
    /// Bytes live at the peak.
    PeakBytes,
    /// Blocks live at the peak.
    PeakCount,
    /// Allocations freed by their thread before it allocated again.
    TemporaryCount,
}

/// Properties of a metric.
#[derive(Debug)]
struct Row {
    metric: Metric,
    /// Key on the command line and in requests; empty if results cannot be sorted by the metric.
    key: &'static str,
    /// Name in JSON and CSV. Ends with the unit.
    name: &'static str,
    words: &'static str,
    heading: &'static str,
    help: &'static str,
    pprof: &'static str,
    /// Least terminal width at which the column is shown by default.
    least_columns: usize,
    of: fn(&Amounts) -> u64,
    variance: fn(&Variances) -> u64,
}

/// The metrics in the order in which they are printed.
const TABLE: [Row; 8] = [
    Row {
        metric: Metric::OutstandingBytes,
        key: "so",
        name: "outstanding_bytes",
        words: "outstanding size",
        heading: "Live bytes",
        help: "Bytes allocated and not freed in what is counted",
        pprof: "inuse_space",
        least_columns: 0,
        of: |amounts| amounts.outstanding_bytes,
        variance: |variances| variances.outstanding_bytes,
    },
    Row {
        metric: Metric::OutstandingCount,
        key: "soc",
        name: "outstanding_count",
        words: "outstanding count",
        heading: "Live",
        help: "Blocks allocated and not freed",
        pprof: "inuse_objects",
        least_columns: 0,
        of: |amounts| amounts.outstanding_count,
        variance: |variances| variances.outstanding_count,
    },
    Row {
        metric: Metric::TotalBytes,
        key: "st",
        name: "total_bytes",
        words: "total size",
        heading: "Total",
        help: "Bytes allocated in all",
        pprof: "alloc_space",
        least_columns: 0,
        of: |amounts| amounts.total_bytes,
        variance: |variances| variances.total_bytes,
    },
    Row {
        metric: Metric::TotalCount,
        key: "stc",
        name: "total_count",
        words: "total count",
        heading: "Allocs",
        help: "Allocations in all",
        pprof: "alloc_objects",
        least_columns: 0,
        of: |amounts| amounts.total_count,
        variance: |variances| variances.total_count,
    },
    Row {
        metric: Metric::ReallocCount,
        key: "src",
        name: "realloc_count",
        words: "realloc count",
        heading: "Reallocs",
        help: "Allocations that came out of a realloc",
        pprof: "reallocs",
        least_columns: 110,
        of: |amounts| amounts.realloc_count,
        variance: |variances| variances.realloc_count,
    },
    Row {
        metric: Metric::PeakBytes,
        key: "peak",
        name: "peak_bytes",
        words: "size at the peak",
        heading: "At peak",
        help: "Bytes held at the peak of all that is counted",
        pprof: "peak_space",
        least_columns: 100,
        of: |amounts| amounts.peak_bytes,
        variance: |variances| variances.peak_bytes,
    },
    Row {
        metric: Metric::PeakCount,
        key: "",
        name: "peak_count",
        words: "count at the peak",
        heading: "Blocks at peak",
        help: "Blocks held at the peak",
        pprof: "peak_objects",
        least_columns: 200,
        of: |amounts| amounts.peak_count,
        variance: |variances| variances.peak_count,
    },
    Row {
        metric: Metric::TemporaryCount,
        key: "temporary",
        name: "temporary_count",
        words: "temporary count",
        heading: "Temporary",
        help: "Freed by their thread before it allocated again",
        pprof: "temporary",
        least_columns: 120,
        of: |amounts| amounts.temporary_count,
        // (Unknown for samples, and reported as such where they are summed.)
        variance: |variances| variances.temporary_count,
    },
];

impl Metric {
    /// All metrics, in the order in which they are printed.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.metric)
    }

    /// The metrics that results can be sorted by.
    pub fn sort_keys() -> impl Iterator<Item = Self> {
        Self::all().filter(|metric| !metric.key().is_empty())
    }

    /// The metric of a sort key; case does not matter.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::sort_keys().find(|metric| metric.key().eq_ignore_ascii_case(key))
    }

    /// `so, soc, …`: list of all sort keys, for messages.
    #[must_use]
    pub fn key_list() -> String {
        Self::sort_keys().map(Self::key).collect::<Vec<_>>().join(", ")
    }

    /// The metric of a name in JSON.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::all().find(|metric| metric.name() == name)
    }

    /// `so`: the sort key on the command line; empty if results cannot be sorted by the metric.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.row().key
    }

    /// `outstanding_bytes`: the name in JSON and CSV.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// `outstanding size`: the name for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        self.row().words
    }

    /// `Live bytes`: the heading of a column.
    #[must_use]
    pub fn heading(self) -> &'static str {
        self.row().heading
    }

    /// Least terminal width at which the column is shown by default.
    #[must_use]
    pub fn least_columns(self) -> usize {
        self.row().least_columns
    }

    /// Explanation of the metric in a sentence.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.row().help
    }

    /// Sample type in pprof.
    #[must_use]
    pub fn pprof(self) -> &'static str {
        self.row().pprof
    }

    /// Returns the amount.
    #[must_use]
    pub fn of(self, amounts: &Amounts) -> u64 {
        (self.row().of)(amounts)
    }

    /// Half of the 95 % interval of an estimated amount; 0 for a counted one.
    #[must_use]
    pub fn plus_minus(self, amounts: &Amounts) -> u64 {
        self.half_interval(self.variance(amounts))
    }

    /// Whether the amount is unknown, because its source does not tell it.
    #[must_use]
    pub fn is_unknown(self, amounts: &Amounts) -> bool {
        self.variance(amounts) == Variances::UNKNOWN
    }

    /// The amount, if it is known.
    #[must_use]
    pub fn known(self, amounts: &Amounts) -> Option<u64> {
        (!self.is_unknown(amounts)).then(|| self.of(amounts))
    }

    /// Variance of an estimate; the variance of a sum is the sum of the variances.
    #[must_use]
    pub fn variance(self, amounts: &Amounts) -> u64 {
        (self.row().variance)(&amounts.variances)
    }

    /// The amount with its variance.
    #[must_use]
    pub fn estimate(self, amounts: &Amounts) -> Estimate {
        Estimate::new(self.of(amounts), self.variance(amounts))
    }

    /// Half of the 95 % interval of an estimate with this variance.
    #[must_use]
    pub fn half_interval(self, variance: u64) -> u64 {
        half_interval(self.is_bytes(), variance)
    }

    /// Half of the 95 % interval of the number of frees, which groups do not hold. Freed are all
    /// allocations that are not outstanding.
    #[must_use]
    pub fn free_plus_minus(variances: &Variances) -> u64 {
        if variances.total_count == Variances::UNKNOWN {
            return 0;
        }
        let freed = variances.total_count.saturating_sub(variances.outstanding_count);
        Self::TotalCount.half_interval(freed)
    }

    /// Half of the 95 % interval of the difference of two independently estimated amounts.
    #[must_use]
    pub fn plus_minus_of_difference(self, before: &Amounts, after: &Amounts) -> u64 {
        self.half_interval(self.variance(before).saturating_add(self.variance(after)))
    }

    /// Growth of the amount.
    #[must_use]
    pub fn difference(self, before: &Amounts, after: &Amounts) -> i128 {
        i128::from(self.of(after)) - i128::from(self.of(before))
    }

    /// Whether the amount is in bytes.
    #[must_use]
    pub fn is_bytes(self) -> bool {
        self.name().ends_with("_bytes")
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// Generates the page's copy of the table.
#[must_use]
pub fn typescript() -> String {
    let mut text = "/** The table of crates/query/src/metrics.rs, written by its test `generated_metrics`: not to be edited. */\n\n\
                    export interface Amounts {\n"
        .to_owned();
    for row in &TABLE {
        text += &format!("  {}: number;\n", row.name);
    }
    text += "}\n\n/** Half of the 95 % interval of each total that is an estimate. */\nexport interface TotalIntervals {\n  \
             [name: `${string}_plus_minus`]: number | undefined;\n";
    text += "}\n\nexport interface Metric {\n  name: keyof Amounts;\n  \
             /** What tables are sorted by; empty: not by this. */\n  key: string;\n  words: string;\n  heading: string;\n  \
             help: string;\n  isExtra: boolean;\n}\n\nexport const METRICS: Metric[] = [\n";
    for Row { key, name, words, heading, help, least_columns, .. } in &TABLE {
        let is_extra = *least_columns > 100;
        text += &format!(
            "  {{ name: '{name}', key: '{key}', words: '{words}', heading: '{heading}', help: '{help}', isExtra: {is_extra} }},\n"
        );
    }
    text + "];\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_at_the_place_of_its_metric() {
        for (place, metric) in Metric::all().enumerate() {
            assert_eq!(metric as usize, place);
            assert_eq!(Metric::of_name(metric.name()), Some(metric));
        }
        assert_eq!(Metric::of_key("SOC"), Some(Metric::OutstandingCount));
        assert_eq!(Metric::of_key(""), None);
    }
}
