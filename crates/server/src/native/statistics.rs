//! Composition of a snapshot: heaps, processes, threads, sizes, ages.

use std::collections::BTreeMap;

use heapr_explore::Found;
use heapr_filters::FilterArguments;
use heapr_query::{GroupBy, HistogramOf, Metric};
use heapr_table::SortRows as _;
use heapr_trace::Amounts;
use serde::{Deserialize, Serialize};

use super::series::number;
use crate::command_line::report_command;
use crate::error::{Error, Result};
use crate::json::{HistogramJson, LiveBlocks, TotalBlocks, heap_name};
use crate::request::{Answer, Context, json, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatisticsRequest {
    file: usize,
    #[serde(default)]
    number: Option<u32>,
    #[serde(default)]
    filter: FilterArguments,
}

pub(super) fn statistics(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: StatisticsRequest = read(body)?;
    if request.filter.snapshot.is_some() {
        return Err(Error::bad("filter.snapshot", "the snapshot is named outside of the filter here"));
    }
    let shown = number(context, request.file, request.number)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let words = FilterArguments { snapshot: Some(shown.to_string()), ..request.filter };
    let read = file.filter(&words)?;
    let found = Found { threads: false, histograms: true };
    let selection = file.select(&words, &read.filter, found, context.cancel)?;
    let (_, threads) =
        file.rank(&words, &read, GroupBy::Threads, Metric::OutstandingBytes, context.cancel)?;
    let trace = file.trace();
    let mut heaps: BTreeMap<String, Amounts> = BTreeMap::new();
    let mut processes: BTreeMap<String, Amounts> = BTreeMap::new();
    for row in &selection.by_heap {
        let process = match trace.processes().get(row.process.0 as usize) {
            Some(process) => format!("{} ({})", process.name(), process.pid),
            None => format!("process #{}", row.process.0),
        };
        let heap = heap_name(trace.heap_names(), row.process, row.heap);
        for sums in [heaps.entry(heap).or_default(), processes.entry(process).or_default()] {
            *sums += &row.totals.amounts();
        }
    }
    let threads = threads.groups.iter().map(|group| {
        let thread = group.thread().and_then(|thread| trace.threads().get(thread.0 as usize));
        let name = thread.map_or_else(
            || "(unknown)".to_owned(),
            |thread| {
                format!("{} ({})", if thread.name.is_empty() { "thread" } else { &thread.name }, thread.tid)
            },
        );
        NativePart::of(name, &group.amounts)
    });
    let histogram = |of: HistogramOf| {
        selection.histograms.iter().find(|histogram| histogram.of == of).map(HistogramJson::from)
    };
    json(&NativeStatistics {
        schema: "heapr.view.native.statistics/1",
        command: report_command(
            &file,
            &["--totals", "--by-thread", "--histogram", "size", "--histogram", "lifetime"],
            &words,
        ),
        shown,
        total: selection.totals.amounts().outstanding().into(),
        heaps: listed(heaps),
        processes: listed(processes),
        threads: threads.collect(),
        sizes: histogram(HistogramOf::Size),
        ages: histogram(HistogramOf::Lifetime),
    })
}

/// A heap, a process or a thread.
#[derive(Debug, Serialize)]
struct NativePart {
    name: String,
    #[serde(flatten)]
    blocks: LiveBlocks,
}

impl NativePart {
    fn of(name: String, amounts: &Amounts) -> Self {
        Self { name, blocks: amounts.outstanding().into() }
    }
}

/// Composition of a snapshot.
#[derive(Debug, Serialize)]
struct NativeStatistics {
    schema: &'static str,
    command: String,
    shown: u32,
    #[serde(flatten)]
    total: TotalBlocks,
    heaps: Vec<NativePart>,
    processes: Vec<NativePart>,
    threads: Vec<NativePart>,
    sizes: Option<HistogramJson>,
    ages: Option<HistogramJson>,
}

/// Parts, largest first.
fn listed(sums: BTreeMap<String, Amounts>) -> Vec<NativePart> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_rows_by_key(|(_, amounts)| std::cmp::Reverse(amounts.outstanding_bytes));
    sums.into_iter().map(|(name, amounts)| NativePart::of(name, &amounts)).collect()
}
