//! `heapr run`, and code that other recording commands share with it.

mod command;
mod option_words;
pub(crate) mod output_error;
pub(crate) mod passed_signals;
pub(crate) mod program;
mod progress_line;
pub(crate) mod record_arguments;
mod recorded_processes;
mod sanitizer;
pub(crate) mod snapshot_rules;
pub(crate) mod summary;
mod typed_instead;

pub(crate) use command::{RunArguments, run};
pub(crate) use option_words::OPTIONS_WITH_VALUES;
