//! What answers have in common: the words of `heapr report --format json`.

pub(crate) use heapr_query::json::{FrameJson, HeapJson, HistogramJson, MetricsJson, TotalsJson, heap_name};
