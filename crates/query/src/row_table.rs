//! Amounts by (stack, process, heap) and, if asked, thread: what a replay adds up and a file's
//! summary holds.

use heapr_trace::{
    Amounts, EqualBlocks, HeapId, ProcessIndex, StackIndex, StackTotals, ThreadIndex, Trace, Variances,
    Weight,
};

use crate::error::Result;

/// No row.
const NONE: u32 = u32::MAX;

/// Rows in order of their stacks, and the threads that allocated them if they were told apart.
#[derive(Debug, Default)]
pub struct Rows {
    /// In order of their stacks.
    pub totals: Vec<StackTotals>,
    /// By row; empty if threads were not told apart.
    pub threads: Vec<ThreadIndex>,
}

/// Where rows are: in memory after a replay, or in the file's summary, which is read again for each
/// pass (146,000 rows take 3 ms, and would take 12 MB).
#[derive(Debug)]
pub enum RowSource<'t> {
    /// Of a replay.
    Memory(Rows),
    /// Of a file.
    Summary(&'t Trace),
}

impl RowSource<'_> {
    /// Shows all rows, in order of their stacks.
    pub fn for_each(&self, mut visit: impl FnMut(&StackTotals)) -> Result<()> {
        match self {
            Self::Memory(rows) => rows.totals.iter().for_each(visit),
            Self::Summary(trace) => {
                let equal = EqualBlocks::of(trace.sampling());
                trace.for_each_stack_totals(|mut row| {
                    equal.estimate(row.heap, &mut row.amounts);
                    visit(&row);
                })?;
            }
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

    /// Threads by row; empty if they were not told apart.
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

/// What a row is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// Of whom.
    pub stack: StackIndex,
    /// Where.
    pub process: ProcessIndex,
    /// In which heap.
    pub heap: HeapId,
    /// By whom.
    pub thread: ThreadIndex,
}

/// Finds rows: by stack a short chain of rows, in most traces of one.
#[derive(Debug)]
pub struct RowTable {
    rows: Rows,
    is_by_thread: bool,
    /// First row of a stack.
    first: Vec<u32>,
    /// Next row of the same stack.
    next: Vec<u32>,
    /// Peak to which `peak_*` of a row belong: those of an older one are void.
    peak_epochs: Vec<u32>,
}

impl RowTable {
    /// Nothing is in it yet.
    pub fn new(is_by_thread: bool) -> Self {
        Self {
            rows: Rows::default(),
            is_by_thread,
            first: Vec::new(),
            next: Vec::new(),
            peak_epochs: Vec::new(),
        }
    }

    /// Number of the row for `key`; made if there is none.
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

    /// Amounts of a row.
    pub(crate) fn totals_mut(&mut self, row: usize) -> &mut StackTotals {
        &mut self.rows.totals[row]
    }

    /// Counts a block as live at the peak with number `epoch`; forgets what an older peak had.
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

    /// The rows; `epoch` is the number of the last peak.
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
