//! How a report is made from the command line and printed.

pub(crate) mod action_arguments;
pub(crate) mod csv;
pub(crate) mod filter_arguments;
pub(crate) mod frame_text;
pub(crate) mod free_stacks;
pub(crate) mod json;
pub(crate) mod nameless;
pub(crate) mod names;
pub(crate) mod progress_bar;
pub(crate) mod quantity;
pub(crate) mod subject;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod xperf;
