//! What answers have in common: the words of `heapr report --format json`.

pub(crate) use heapr_query::json::{AmountsJson, FrameJson, HeapJson, HistogramJson, TotalsJson, heap_name};
