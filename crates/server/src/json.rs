//! What answers have in common: the words of `heapr report --format json`.

pub(crate) use heapr_query::json::{AmountsJson, FrameJson, HeapJson, HistogramJson, TotalsJson, heap_name};

/// Of half an interval: there is none.
pub(crate) fn is_counted(plus_minus: &u64) -> bool {
    *plus_minus == 0
}
