//! The sums of the allocations that a filter selects, shared by all views of the same filter.

use std::sync::OnceLock;

use heapr_query::engine::{Collected, HistogramCounter, RowSource, RowSums, Rows};
use heapr_query::{HeapRow, Histogram};
use heapr_trace::{Damage, Totals};

use crate::event_table::EventTable;
use crate::row_plan::RowPlan;
use crate::scan::Scanned;
use crate::site_sums::FoundSums;

/// The sums of the allocations that a filter selects.
#[derive(Debug)]
pub struct Selection {
    /// Totals of all counted allocations.
    pub totals: Totals,
    /// Totals by process and heap, in that order.
    pub by_heap: Vec<HeapRow>,
    /// Histograms of size and of lifetime, if requested.
    pub histograms: Vec<Histogram>,
    /// Chunks of events that could not be used.
    pub damage: Vec<Damage>,
    pub(crate) rows: RowSource<'static>,
    /// Rows by thread, if known; for a scan they are computed when needed.
    pub(crate) thread_rows: OnceLock<RowSource<'static>>,
    /// Sums by site, of a scan.
    pub(crate) sums: FoundSums,
}

impl Selection {
    /// The selection of a scan's result. `plan`: the rows without threads.
    pub(crate) fn of_scan(table: &EventTable, plan: &RowPlan, scanned: Scanned) -> Self {
        let found = FoundSums::new(scanned.sums);
        let rows = plan.rows(table, &found);
        let mut sums = RowSums::default();
        rows.totals.iter().for_each(|row| sums.add(row));
        sums.set_peak_time(scanned.peak_time_ns);
        sums.add_oddities(&scanned.oddities);
        let totals = sums.totals;
        let mut by_heap: Vec<HeapRow> = sums
            .by_heap
            .into_iter()
            .map(|(process, heap, totals)| HeapRow { process, heap, totals })
            .collect();
        for (process, heap, peak) in scanned.heap_peaks.into_iter().flatten() {
            if let Some(row) = by_heap.iter_mut().find(|row| (row.process, row.heap) == (process, heap)) {
                row.totals.peak_bytes = peak.bytes;
                row.totals.peak_count = peak.count;
                row.totals.peak_time_ns = peak.time_ns;
            }
        }
        Self {
            totals,
            by_heap,
            histograms: scanned.histograms.into_iter().map(HistogramCounter::finish).collect(),
            damage: table.damage.clone(),
            rows: RowSource::Memory(rows),
            thread_rows: OnceLock::new(),
            sums: found,
        }
    }

    /// The selection of a replay's result.
    pub(crate) fn of_replay(collected: Collected, damage: Vec<Damage>) -> Self {
        let Collected { rows, totals, by_heap, histograms } = collected;
        let mut by_heap: Vec<HeapRow> =
            by_heap.into_iter().map(|(process, heap, totals)| HeapRow { process, heap, totals }).collect();
        by_heap.sort_by_key(|row| (row.process, row.heap));
        // A replay for a ranking of threads has separate rows by thread, and no other rows.
        let is_by_thread = !rows.threads.is_empty();
        let merged = if is_by_thread { merged(&rows) } else { Rows::default() };
        let (rows, thread_rows) = if is_by_thread { (merged, Some(rows)) } else { (rows, None) };
        Self {
            totals,
            by_heap,
            histograms: histograms.into_iter().map(HistogramCounter::finish).collect(),
            damage,
            rows: RowSource::Memory(rows),
            thread_rows: thread_rows.map(RowSource::Memory).map_or_else(OnceLock::new, OnceLock::from),
            sums: FoundSums::default(),
        }
    }
}

/// The rows without their threads.
fn merged(rows: &Rows) -> Rows {
    let mut merged: Vec<heapr_trace::StackTotals> = Vec::new();
    for row in &rows.totals {
        let key = |row: &heapr_trace::StackTotals| (row.stack, row.process, row.heap);
        match merged.last_mut().filter(|last| key(last) == key(row)) {
            None => merged.push(*row),
            Some(last) => last.amounts += &row.amounts,
        }
    }
    Rows { totals: merged, threads: Vec::new() }
}
