//! `heapr explain`: findings on memory in words, and a breakdown of all resident memory.

mod answer;
mod arguments;
mod command;
mod elapsed_line;
mod findings;
mod for_ci;
mod html;
mod judged;
mod markup;
mod printed_table;
mod resident;
mod target;
mod v8_snapshots;
mod where_it_is;

pub(crate) use arguments::ExplainArguments;
pub(crate) use command::run;
pub(crate) use judged::failures;
pub(crate) use resident::class_sums;
