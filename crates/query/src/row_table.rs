//! Amounts by (stack, process, heap) and optionally thread: the sums of a replay, or of a file's
//! summary.

use heapr_trace::{
    Amounts, HeapId, ProcessIndex, StackIndex, StackTotals, ThreadIndex, Trace, Variances, Weight,
};

use crate::error::Result;

/// Marks the end of a chain of rows.
const NONE: u32 = u32::MAX;

/// Rows in order of their stacks, with the allocating threads if those are distinguished.
#[derive(Debug, Default)]
pub struct Rows {
    /// Sums, in order of stacks.
    pub totals: Vec<StackTotals>,
    /// Thread of each row; empty if threads are not distinguished.
    pub threads: Vec<ThreadIndex>,
}

/// Source of rows: memory after a replay, or the file's summary. A large summary is read again for
/// each pass. (146,000 rows take 3 ms to read, and would take 21 MB of memory.)
#[derive(Debug)]
pub enum RowSource<'t> {
    /// Rows of a replay.
    Memory(Rows),
    /// Rows of a file's summary.
    Summary(&'t Trace),
}

impl RowSource<'_> {
    /// Passes all rows to `visit`, in order of their stacks.
    pub fn for_each(&self, mut visit: impl FnMut(&StackTotals)) -> Result<()> {
        match self {
            Self::Memory(rows) => rows.totals.iter().for_each(visit),
            Self::Summary(trace) => trace.for_each_stack_totals(|row| visit(&row))?,
        }
        Ok(())
    }

    /// The rows of stacks that hold something, at the end or at the peak.
    pub(crate) fn held(&self) -> Result<Rows> {
        let mut held = Rows::default();
        let mut threads = self.threads().iter();
        self.for_each(|row| {
            let thread = threads.next();
            if row.amounts.outstanding_count != 0 || row.amounts.peak_count != 0 {
                held.totals.push(*row);
                held.threads.extend(thread);
            }
        })?;
        Ok(held)
    }

    /// Thread of each row; empty if threads are not distinguished.
    pub(crate) fn threads(&self) -> &[ThreadIndex] {
        match self {
            Self::Memory(rows) => &rows.threads,
            Self::Summary(_) => &[],
        }
    }
}

fn forget_peak(amounts: &mut Amounts) {
    (amounts.peak_count, amounts.peak_bytes) = (0, 0);
    (amounts.variances.peak_count, amounts.variances.peak_bytes) = (0, 0);
}

/// Key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// Stack of the allocation.
    pub stack: StackIndex,
    /// Process of the block.
    pub process: ProcessIndex,
    /// Heap of the block.
    pub heap: HeapId,
    /// Allocating thread.
    pub thread: ThreadIndex,
}

/// Finds the row of a key: each stack has a short chain of rows, in most traces of length one.
#[derive(Debug)]
pub struct RowTable {
    rows: Rows,
    is_by_thread: bool,
    /// First row of each stack.
    first: Vec<u32>,
    /// Next row of the same stack, for each row.
    next: Vec<u32>,
    /// Epoch to which `peak_*` of each row belong; values of an older peak are void.
    peak_epochs: Vec<u32>,
}

impl RowTable {
    /// An empty table.
    pub fn new(is_by_thread: bool) -> Self {
        Self {
            rows: Rows::default(),
            is_by_thread,
            first: Vec::new(),
            next: Vec::new(),
            peak_epochs: Vec::new(),
        }
    }

    /// Number of the row for `key`; a new row is added if needed.
    pub fn row(&mut self, key: RowKey) -> usize {
        let stack = key.stack.0 as usize;
        if stack >= self.first.len() {
            self.first.resize(stack + 1, NONE);
        }
        let mut number = self.first[stack];
        while number != NONE {
            let row = &self.rows.totals[number as usize];
            let is_same_thread = !self.is_by_thread || self.rows.threads[number as usize] == key.thread;
            if row.process == key.process && row.heap == key.heap && is_same_thread {
                return number as usize;
            }
            number = self.next[number as usize];
        }
        let number = self.rows.totals.len();
        self.rows.totals.push(StackTotals {
            stack: key.stack,
            process: key.process,
            heap: key.heap,
            ..StackTotals::default()
        });
        if self.is_by_thread {
            self.rows.threads.push(key.thread);
        }
        self.next.push(self.first[stack]);
        self.first[stack] = number as u32;
        self.peak_epochs.push(0);
        number
    }

    /// Sums of a row.
    pub(crate) fn totals_mut(&mut self, row: usize) -> &mut StackTotals {
        &mut self.rows.totals[row]
    }

    /// Counts a block as live at the peak `epoch`; resets amounts of an older peak.
    pub(crate) fn add_peak(&mut self, row: usize, epoch: u32, weight: Weight) {
        let amounts = &mut self.rows.totals[row].amounts;
        if self.peak_epochs[row] != epoch {
            self.peak_epochs[row] = epoch;
            forget_peak(amounts);
        }
        *amounts += &Amounts {
            peak_count: weight.count,
            peak_bytes: weight.bytes,
            variances: Variances {
                peak_count: weight.count_variance,
                peak_bytes: weight.bytes_variance_kib2,
                ..Variances::default()
            },
            ..Amounts::default()
        };
    }

    /// Returns the rows; `epoch` is the number of the last peak.
    pub fn finish(mut self, epoch: u32) -> Rows {
        for (totals, &seen) in self.rows.totals.iter_mut().zip(&self.peak_epochs) {
            if seen != epoch {
                forget_peak(&mut totals.amounts);
            }
        }
        if self.is_by_thread {
            let mut order: Vec<u32> = (0..self.rows.totals.len() as u32).collect();
            let key = |&row: &u32| {
                let totals = &self.rows.totals[row as usize];
                (totals.stack, totals.process, totals.heap, self.rows.threads[row as usize])
            };
            order.sort_unstable_by_key(key);
            return Rows {
                totals: order.iter().map(|&row| self.rows.totals[row as usize]).collect(),
                threads: order.iter().map(|&row| self.rows.threads[row as usize]).collect(),
            };
        }
        self.rows.totals.sort_unstable_by_key(|totals| (totals.stack, totals.process, totals.heap));
        self.rows
    }
}
