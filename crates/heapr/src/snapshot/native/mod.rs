//! Snapshots of native heaps: captures, reads and compares those in `.heapr` files.

mod as_heap;
mod block_names;
mod cost;
mod diff;
mod every;
mod graph_answers;
mod graph_file;
mod held;
mod held_growth;
mod held_text;
mod holders;
mod later_frees;
mod leak_sums;
mod leaks;
mod places;
mod required;
mod series;
mod statistics;
mod summary;
mod suppressions;
mod suspects;
mod take;
pub(crate) mod watchers;

use std::process::ExitCode;

use super::verbs::{DiffQuestion, Heaps, SummaryQuestion, SuspectsQuestion};

pub(crate) use as_heap::NativeHeap;
pub(super) use cost::told_before;
pub(crate) use every::{NativeEveryOptions, every};
pub(crate) use graph_file::GraphArguments;
pub(crate) use holders::{HoldersArguments, run as holders, shown_holders};
pub(crate) use leaks::{LeaksArguments, run as leaks, shown_leaks};
pub(crate) use required::blocks_of_frames;
pub(crate) use statistics::{graph_kinds, statistics};
pub(crate) use summary::{snapshot_json, why};
pub(crate) use take::{NativeTakeOptions, take};
pub(super) use watchers::Watcher;
pub(super) use watchers::find as watched;
pub(super) use watchers::free_name;
pub(crate) use watchers::is_name_of_javascript;

/// Native heaps in traces, for the commands of all kinds of heaps.
pub(crate) struct Native;

impl Heaps for Native {
    type SummaryOptions = series::SeriesArguments;
    type DiffOptions = diff::DiffOptions;
    type SuspectsOptions = suspects::SuspectsOptions;

    fn summary(asked: &SummaryQuestion, options: &Self::SummaryOptions) -> anyhow::Result<ExitCode> {
        summary::run(asked, options)
    }

    fn diff(asked: &DiffQuestion, options: &Self::DiffOptions) -> anyhow::Result<ExitCode> {
        diff::run(asked, options)
    }

    fn suspects(asked: &SuspectsQuestion, options: &Self::SuspectsOptions) -> anyhow::Result<ExitCode> {
        suspects::run(asked, options)
    }
}
