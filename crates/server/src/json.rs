//! Parts that answers share, as `heapr report --format json` writes them.

pub(crate) use heapr_query::json::{AmountsJson, FrameJson, HeapJson, HistogramJson, TotalsJson, heap_name};

use serde::Serialize;

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
