//! What a filter chose, added up: what all views of the same filter share.

use std::sync::OnceLock;

use heapr_query::engine::{Collected, HistogramCounter, RowSource, RowSums, Rows};
use heapr_query::{HeapRow, Histogram};
use heapr_trace::{Damage, Totals};

use crate::event_table::EventTable;
use crate::row_plan::RowPlan;
use crate::scan::Scanned;
use crate::site_sums::FoundSums;

/// See the module.
#[derive(Debug)]
pub struct Selection {
    /// Over all that is counted.
    pub totals: Totals,
    /// The same by process and heap, in that order.
    pub by_heap: Vec<HeapRow>,
    /// Of size and of lifetime, if they were asked for.
    pub histograms: Vec<Histogram>,
    /// Chunks of events that could not be used.
    pub damage: Vec<Damage>,
    pub(crate) rows: RowSource<'static>,
    /// The same by thread too, if that is known; of a scan made when it is asked for.
    pub(crate) thread_rows: OnceLock<RowSource<'static>>,
    /// By site, of a scan.
    pub(crate) sums: FoundSums,
}

impl Selection {
    /// Of what a scan of a table found. `plan`: of the rows without threads.
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

    /// Of what a replay collected.
    pub(crate) fn of_replay(collected: Collected, damage: Vec<Damage>) -> Self {
        let Collected { rows, totals, by_heap, histograms } = collected;
        let mut by_heap: Vec<HeapRow> =
            by_heap.into_iter().map(|(process, heap, totals)| HeapRow { process, heap, totals }).collect();
        by_heap.sort_by_key(|row| (row.process, row.heap));
        // A replay for a ranking of threads tells rows by threads apart; they are the only ones
        // then.
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
