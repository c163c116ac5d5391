//! The parts that all JSON answers share, printed or served: the vocabulary of `heapr report
//! --format json`, schema `heapr.report/1` (`docs/report.md`).

use crate::{Bucket, FrameView, HeapRow, Histogram, HistogramOf, Metric};
use heapr_table::interval_key;
use heapr_trace::{Amounts, HeapId, HeapName, ProcessIndex, Sampling, Totals};
use serde::{Serialize, Serializer};

/// The amounts of a group, each under its metric's name; null if unknown.
#[derive(Debug, Clone, Copy)]
pub struct AmountsJson(Amounts);

impl From<&Amounts> for AmountsJson {
    fn from(amounts: &Amounts) -> Self {
        Self(*amounts)
    }
}

impl Serialize for AmountsJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let amounts = Metric::all().map(|metric| (metric.name().to_owned(), metric.known(&self.0)));
        let intervals = intervals(&self.0, Metric::name).map(|(name, half)| (name, Some(half)));
        serializer.collect_map(amounts.chain(intervals))
    }
}

/// Half of the 95 % interval of each amount that is an estimate.
fn intervals(
    amounts: &Amounts,
    name: impl Fn(Metric) -> &'static str,
) -> impl Iterator<Item = (String, u64)> {
    Metric::all().filter_map(move |metric| {
        let plus_minus = metric.plus_minus(amounts);
        (plus_minus > 0).then(|| (interval_key(name(metric)), plus_minus))
    })
}

/// Half intervals beside amounts, under the amounts' names.
#[derive(Debug)]
struct TotalIntervals {
    amounts: Amounts,
    name: fn(Metric) -> &'static str,
}

impl TotalIntervals {
    fn of(amounts: Amounts, name: fn(Metric) -> &'static str) -> Self {
        Self { amounts, name }
    }
}

impl Serialize for TotalIntervals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(intervals(&self.amounts, self.name))
    }
}

/// Name of an amount among totals.
fn name_of_total(metric: Metric) -> &'static str {
    match metric {
        Metric::TotalBytes => "alloc_bytes",
        Metric::TotalCount => "alloc_count",
        other => Metric::name(other),
    }
}

/// Precision of a recording whose numbers are estimates.
#[derive(Debug, Serialize)]
pub struct SamplingJson {
    /// Largest mean distance of two samples, in requested bytes.
    pub mean_bytes: u64,
    /// Confidence of the intervals, from 0 to 1.
    pub confidence: f64,
}

impl SamplingJson {
    /// The precision of a recording; `None` if everything is counted.
    #[must_use]
    pub fn of(sampling: &Sampling) -> Option<Self> {
        if sampling.is_exact() {
            return None;
        }
        Some(Self { mean_bytes: sampling.largest_mean_bytes().unwrap_or(0), confidence: 0.95 })
    }
}

/// A frame; unknown fields are null.
#[derive(Debug, Clone, Serialize)]
pub struct FrameJson {
    /// Path of the frame's file.
    pub module: Option<String>,
    /// Demangled symbol.
    pub symbol: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line, from 1.
    pub line: Option<u32>,
    /// True if the function is inlined into the next one.
    pub inlined: bool,
    /// Bytes from the start of the symbol, or of the module.
    pub offset: u64,
}

impl From<&FrameView<'_>> for FrameJson {
    fn from(frame: &FrameView<'_>) -> Self {
        Self {
            module: frame.module.map(str::to_owned),
            symbol: frame.symbol.map(str::to_owned),
            file: frame.file.map(str::to_owned),
            line: frame.line,
            inlined: frame.is_inlined,
            offset: frame.offset,
        }
    }
}

fn is_counted(plus_minus: &u64) -> bool {
    *plus_minus == 0
}

/// Totals of the whole or of a heap; null if unknown.
#[derive(Debug, Serialize)]
pub struct TotalsJson {
    alloc_count: Option<u64>,
    alloc_bytes: Option<u64>,
    free_count: Option<u64>,
    /// Half of the 95 % interval of the number of frees; 0 if they were counted.
    #[serde(skip_serializing_if = "is_counted")]
    free_count_plus_minus: u64,
    realloc_count: Option<u64>,
    failed_count: u64,
    outstanding_count: Option<u64>,
    outstanding_bytes: Option<u64>,
    temporary_count: Option<u64>,
    peak_bytes: Option<u64>,
    peak_count: Option<u64>,
    peak_time_ns: u64,
    unmatched_frees: u64,
    inherited_frees: u64,
    implied_frees: u64,
    #[serde(flatten)]
    intervals: TotalIntervals,
}

impl From<&Totals> for TotalsJson {
    fn from(totals: &Totals) -> Self {
        let amounts = totals.amounts();
        let known = |metric: Metric| metric.known(&amounts);
        Self {
            alloc_count: known(Metric::TotalCount),
            alloc_bytes: known(Metric::TotalBytes),
            free_count: known(Metric::TotalCount)
                .and(known(Metric::OutstandingCount))
                .map(|_| totals.free_count),
            free_count_plus_minus: Metric::free_plus_minus(&totals.variances),
            realloc_count: known(Metric::ReallocCount),
            failed_count: totals.failed_count,
            outstanding_count: known(Metric::OutstandingCount),
            outstanding_bytes: known(Metric::OutstandingBytes),
            temporary_count: known(Metric::TemporaryCount),
            peak_bytes: known(Metric::PeakBytes),
            peak_count: known(Metric::PeakCount),
            peak_time_ns: totals.peak_time_ns,
            unmatched_frees: totals.unmatched_frees,
            inherited_frees: totals.inherited_frees,
            implied_frees: totals.implied_frees,
            intervals: TotalIntervals::of(totals.amounts(), name_of_total),
        }
    }
}

/// Totals of a heap of a process.
#[derive(Debug, Serialize)]
pub struct HeapJson {
    pid: u32,
    process: String,
    heap: String,
    #[serde(flatten)]
    totals: TotalsJson,
}

impl HeapJson {
    /// The totals of `row`, under the names that the reader knows.
    #[must_use]
    pub fn new(row: &HeapRow, heap: String, pid: u32, process: &str) -> Self {
        Self { pid, process: process.to_owned(), heap, totals: (&row.totals).into() }
    }
}

/// Name of a heap: `malloc`, `mmap`, a name that the program registered, or `heap 2`.
#[must_use]
pub fn heap_name(names: &[HeapName], process: ProcessIndex, heap: HeapId) -> String {
    let is_its = |name: &&HeapName| (name.process, name.heap) == (process, heap) && !name.name.is_empty();
    let mut names = names.iter().filter(is_its);
    match (names.next(), names.count(), heap) {
        (Some(first), 0, _) => first.name.clone(),
        (Some(first), more, _) => format!("{} and {more} more", first.name),
        (None, _, HeapId::MALLOC) => "malloc".to_owned(),
        (None, _, HeapId::MMAP) => "mmap".to_owned(),
        (None, _, HeapId(number)) => format!("heap {number}"),
    }
}

#[derive(Debug, Serialize)]
struct BucketJson {
    from: u64,
    last: u64,
    total_count: u64,
    total_bytes: u64,
    outstanding_count: u64,
    outstanding_bytes: u64,
    #[serde(flatten)]
    intervals: TotalIntervals,
}

/// A histogram.
#[derive(Debug, Serialize)]
pub struct HistogramJson {
    of: &'static str,
    unit: &'static str,
    buckets: Vec<BucketJson>,
}

impl From<&Histogram> for HistogramJson {
    fn from(histogram: &Histogram) -> Self {
        let (of, unit) = match histogram.of {
            HistogramOf::Size => ("size", "bytes"),
            HistogramOf::Lifetime => ("lifetime", "ns"),
        };
        let bucket = |bucket: &Bucket| BucketJson {
            from: bucket.from,
            last: bucket.last,
            total_count: bucket.amounts.total_count,
            total_bytes: bucket.amounts.total_bytes,
            outstanding_count: bucket.amounts.outstanding_count,
            outstanding_bytes: bucket.amounts.outstanding_bytes,
            intervals: TotalIntervals::of(bucket.amounts, Metric::name),
        };
        Self { of, unit, buckets: histogram.buckets.iter().map(bucket).collect() }
    }
}
