//! Rows of a table's sites, computed once: a selection then adds its sums by row number.

use heapr_query::engine::{RowKey, RowTable, Rows};
use heapr_trace::{Amounts, StackTotals};

use crate::event_table::EventTable;
use crate::site_sums::FoundSums;

/// Rows of all sites in their order, without amounts.
#[derive(Debug)]
pub(crate) struct RowPlan {
    rows: Rows,
    row_of: Vec<u32>,
}

impl RowPlan {
    /// The rows of a table's sites.
    pub(crate) fn new(table: &EventTable, is_by_thread: bool) -> Self {
        let mut found = RowTable::new(is_by_thread);
        for site in &table.sites {
            found.row(RowKey {
                stack: site.stack,
                process: site.process,
                heap: site.heap,
                thread: site.thread,
            });
        }
        let mut rows = found.finish(0);
        rows.totals.shrink_to_fit();
        // Order of the rows from `finish`.
        let key = |row: usize| {
            let totals: &StackTotals = &rows.totals[row];
            (totals.stack, totals.process, totals.heap, rows.threads.get(row).copied())
        };
        let mut order: Vec<u32> = (0..table.sites.len() as u32).collect();
        let site_key = |site: u32| {
            let site = &table.sites[site as usize];
            (site.stack, site.process, site.heap, is_by_thread.then_some(site.thread))
        };
        order.sort_unstable_by_key(|&site| site_key(site));
        let mut row_of = vec![0; table.sites.len()];
        let mut row = 0;
        for site in order {
            while key(row) != site_key(site) {
                row += 1;
            }
            row_of[site as usize] = row as u32;
        }
        Self { rows, row_of }
    }

    /// The rows with amounts, which are the sums of their sites.
    pub(crate) fn rows(&self, table: &EventTable, sums: &FoundSums) -> Rows {
        let mut totals = self.rows.totals.clone();
        for (number, sums) in sums.each() {
            let site = &table.sites[number];
            let realloc_count = if site.is_realloc { sums.total_count } else { 0 };
            totals[self.row_of[number] as usize].amounts += &Amounts { realloc_count, ..**sums };
        }
        let threads = totals
            .iter()
            .zip(&self.rows.threads)
            .filter(|(totals, _)| totals.amounts.total_count > 0)
            .map(|(_, &thread)| thread)
            .collect();
        totals.retain(|totals| totals.amounts.total_count > 0);
        // A short range has few rows, and several selections are cached.
        totals.shrink_to_fit();
        Rows { totals, threads }
    }
}
