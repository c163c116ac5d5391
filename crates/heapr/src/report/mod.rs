//! `heapr report`: makes a report from the command line, and prints it.

pub(crate) mod action_arguments;
pub(crate) mod amounts_text;
mod command;
pub(crate) mod free_stacks;
mod histogram_text;
pub(crate) mod marked_range;
mod nameless_modules;
pub(crate) mod names;
pub(crate) mod progress_bar;
pub(crate) mod text;
pub(crate) mod xperf;

pub(crate) use command::{ReportArguments, run};
pub(crate) use heapr_export::{csv, frame_text, json};
