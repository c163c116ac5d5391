//! Breakdown of all memory of a recording at a moment: who holds the live blocks, and what the rest
//! of the resident memory is. Each byte is in one piece.
//!
//! ```text
//! live blocks by stack ── functions ── callers of the rest ── small stacks ─┐
//! readings of resident memory ── kept by malloc, runtimes, files, unknown ──┴─> pieces, one sum
//! ```

mod live_pieces;
mod piece;
mod resident_then;
mod splintered;

use std::collections::HashMap;

use heapr_query::OwnCode;
use heapr_query::engine::SymbolTree;
use heapr_table::SortRows as _;
use heapr_trace::{BlockEstimate, ProcessIndex, StackTotals, Trace};

use self::live_pieces::live_pieces;
pub use self::piece::{Piece, PieceKind, WhereItIs};
use self::resident_then::ResidentThen;

/// Live blocks at a moment.
#[derive(Debug, Clone, Copy)]
pub struct LiveBlocks<'a> {
    /// Time of the moment, from the recording's start.
    pub time_ns: u64,
    /// Blocks by stack, as outstanding amounts.
    pub rows: &'a [StackTotals],
    /// Sums of stacks that have no rows, each with its deepest known caller as its stack.
    pub rests: &'a [StackTotals],
}

/// Breaks down the memory of the processes `pids` (all if empty) at a moment.
#[must_use]
pub fn where_it_is(
    trace: &Trace,
    tree: &SymbolTree,
    own: &OwnCode,
    pids: &[u32],
    live: LiveBlocks<'_>,
) -> WhereItIs {
    let is_chosen = |process: ProcessIndex| {
        let known = trace.processes().get(process.0 as usize);
        pids.is_empty() || known.is_some_and(|known| pids.contains(&known.pid))
    };
    let mut by_process: HashMap<ProcessIndex, BlockEstimate> = HashMap::new();
    let mut all = BlockEstimate::default();
    for row in live.rows.iter().chain(live.rests) {
        let blocks = row.amounts.outstanding();
        all += blocks;
        *by_process.entry(row.process).or_default() += blocks;
    }
    let mut resident = ResidentThen::of(trace, &is_chosen, live.time_ns, &by_process);
    let mut pieces = live_pieces(trace, tree, own, (live.rows, live.rests));
    resident.pieces.sort_rows_by_key(|piece| std::cmp::Reverse(piece.bytes));
    pieces.append(&mut resident.pieces);
    let mut not_told = resident.not_told;
    if !trace.resident_samples().is_empty() && trace.memory_readings().is_empty() {
        not_told
            .push("what memory without a file is beside the live blocks: no mappings were read".to_owned());
    }
    WhereItIs {
        time_ns: live.time_ns,
        rss_bytes: resident.rss_bytes,
        rss_time_ns: resident.rss_time_ns,
        live_bytes: all.bytes.value,
        live_bytes_plus_minus: all.bytes_plus_minus(),
        live_count: all.count.value,
        live_count_plus_minus: all.count_plus_minus(),
        beyond_bytes: resident.beyond_bytes,
        whole_bytes: pieces.iter().map(|piece| piece.bytes).fold(0, u64::saturating_add),
        pieces,
        not_told,
    }
}
