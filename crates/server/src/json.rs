//! Parts that answers share, as `heapr report --format json` writes them.

pub(crate) use heapr_query::json::{AmountsJson, FrameJson, HeapJson, HistogramJson, TotalsJson, heap_name};

use serde::Serialize;

heapr_trace::block_members! {
    /// Live blocks of a line or of a part of a snapshot.
    pub(crate) struct LiveBlocks { block_bytes: bytes, block_count: count }

    /// Live blocks of a snapshot, or of one of its processes.
    pub(crate) struct SnapshotBlocks { block_count: count, block_bytes: bytes }

    /// All blocks of an answer.
    pub(crate) struct TotalBlocks { total_bytes: bytes, total_count: count }

    /// Blocks live at the peak.
    pub(crate) struct PeakBlocks { bytes: bytes, count: count }

    /// Allocated blocks of a type.
    pub(crate) struct TypeBlocks { count: count, bytes: bytes }
}

/// Whether half of an interval is 0: the amount was counted exactly.
pub(crate) fn is_counted(plus_minus: &u64) -> bool {
    *plus_minus == 0
}

/// Whether all halves of a column are 0.
pub(crate) fn are_counted(plus_minus: &[u64]) -> bool {
    plus_minus.iter().all(is_counted)
}

/// Halves of the 95 % intervals beside the amounts of a tree's nodes, if these are estimates.
#[derive(Debug, Default, Serialize)]
pub(crate) struct NodeIntervals {
    #[serde(skip_serializing_if = "are_counted")]
    pub(crate) value_plus_minus: Vec<u64>,
    #[serde(rename = "self_plus_minus", skip_serializing_if = "are_counted")]
    pub(crate) own_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "are_counted")]
    pub(crate) left_out_plus_minus: Vec<u64>,
}
