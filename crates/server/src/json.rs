//! What answers have in common: the words of `heapr report --format json`.

pub(crate) use heapr_query::json::{AmountsJson, FrameJson, HeapJson, HistogramJson, TotalsJson, heap_name};

use serde::Serialize;

/// Of half an interval: there is none.
pub(crate) fn is_counted(plus_minus: &u64) -> bool {
    *plus_minus == 0
}

/// The same of a column.
pub(crate) fn are_counted(plus_minus: &[u64]) -> bool {
    plus_minus.iter().all(is_counted)
}

/// Beside the amounts of a tree's nodes: half of the 95 % interval of each, where they are
/// estimates.
#[derive(Debug, Default, Serialize)]
pub(crate) struct NodeIntervals {
    #[serde(skip_serializing_if = "are_counted")]
    pub(crate) value_plus_minus: Vec<u64>,
    #[serde(rename = "self_plus_minus", skip_serializing_if = "are_counted")]
    pub(crate) own_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "are_counted")]
    pub(crate) left_out_plus_minus: Vec<u64>,
}
