//! Parts of `heapr run` that other commands which record use too.

pub(crate) mod output_error;
pub(crate) mod passed_signals;
pub(crate) mod program;
pub(crate) mod record_arguments;
mod sanitizer;
pub(crate) mod summary;
