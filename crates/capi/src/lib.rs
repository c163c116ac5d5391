//! Heap trace sessions for C: `libheapr.so` and `heapr.h`, which `cargo xtask header` generates
//! from this crate.
//!
//! Every function returns a code; [`heapr_last_error`] returns a sentence on the calling thread's
//! last failure. A handle may be used from any thread, one call at a time. Panics never reach C: an
//! internal failure is `HEAPR_OTHER`.

mod properties;
mod result;
mod status;
mod strings;
mod trace;

pub use properties::{
    HEAPR_ON_FULL_BLOCK, HEAPR_ON_FULL_DROP, HEAPR_STACK_ALLOC, HEAPR_STACK_CREATE, HEAPR_STACK_DEFAULT,
    HEAPR_STACK_DESTROY, HEAPR_STACK_FREE, HEAPR_STACK_REALLOC, heapr_mode, heapr_properties,
    heapr_properties_init,
};
pub use result::{heapr_last_error, heapr_result};
pub use status::heapr_status;
pub use trace::{
    heapr_cancel, heapr_graph_snapshot, heapr_mark, heapr_query, heapr_snapshot, heapr_start,
    heapr_start_program, heapr_stop, heapr_trace, heapr_update,
};
