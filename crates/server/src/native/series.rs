//! Series of snapshots: the base of summary, comparison, suspects and treemap.

use std::sync::Arc;

use heapr_filters::FilterArguments;
use heapr_query::{GroupBy, SeriesFile, SnapshotSeries};

use crate::command_line::command;
use crate::error::{Error, Result};
use crate::request::Context;
use crate::trace_file::TraceFile;

/// A series that was read.
pub(super) struct Read {
    /// Number in the list of files, and the file, for each file of the series.
    pub(super) files: Vec<(usize, Arc<TraceFile>)>,
    pub(super) by: GroupBy,
    pub(super) series: Arc<SnapshotSeries>,
    words: Vec<String>,
}

/// A file with the numbers of its snapshots.
pub(super) type Chosen = (usize, Vec<u32>);

impl Read {
    /// Reads the chosen snapshots, or takes the cached series.
    pub(super) fn new(
        context: &Context<'_>,
        chosen: &[Chosen],
        filter: &FilterArguments,
        by: GroupBy,
    ) -> Result<Self> {
        if filter.snapshot.is_some() {
            return Err(Error::bad("filter.snapshot", "the snapshots are named outside of the filter here"));
        }
        let mut files = Vec::new();
        let mut filters = Vec::new();
        for (number, _) in chosen {
            let file = context.files.trace(*number)?.shown(filter);
            file.wait_for_names(context.cancel)?;
            filters.push(file.filter(filter)?);
            files.push((*number, file));
        }
        let key_of =
            |((_, file), (_, numbers)): (&(usize, Arc<TraceFile>), &Chosen)| (file.number, numbers.clone());
        let key = (files.iter().zip(chosen).map(key_of).collect(), filter.clone(), by);
        let series = context.files.series.get(&key, context.cancel, |_| {
            let parts: Vec<SeriesFile<'_>> = files
                .iter()
                .zip(chosen)
                .zip(&filters)
                .map(|(((_, file), (_, numbers)), read)| SeriesFile {
                    trace: file.trace(),
                    numbers: numbers.clone(),
                    filter: read.filter.clone(),
                })
                .collect();
            let series = SnapshotSeries::read(&parts, by, |number, stacks| {
                context.cancel.check().map_err(|_| heapr_query::Error::GivenUp)?;
                let read = &filters[number];
                let explorer = &files[number].1.explorer;
                Ok(explorer.stack_groups(stacks.iter().copied(), by, &read.cull, &read.filter))
            })?;
            Ok(series)
        })?;
        Ok(Self { files, by, series, words: filter.words() })
    }

    /// Warnings about the snapshots.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.series.warnings(|file| self.files[file].1.path.display().to_string())
    }

    /// Builds `heapr snapshot COMMAND FILE… OPTIONS`.
    pub(super) fn command(&self, name: &str, options: &[String]) -> String {
        let paths: Vec<String> = self.files.iter().map(|(_, file)| file.path.display().to_string()).collect();
        let mut all = vec!["snapshot", name];
        all.extend(paths.iter().map(String::as_str));
        all.push(option_of(self.by));
        all.extend(options.iter().map(String::as_str));
        all.extend(self.words.iter().map(String::as_str));
        command(&all)
    }
}

/// Number of a snapshot of a file; the last one by default.
pub(super) fn number(context: &Context<'_>, file: usize, number: Option<u32>) -> Result<u32> {
    let trace = context.files.trace(file)?;
    let Some(last) = trace.trace().snapshots().last() else {
        return Err(Error::NotFound { what: "native snapshot in file", name: file.to_string() });
    };
    let number = number.unwrap_or(last.number);
    match trace.trace().snapshot(number) {
        Some(_) => Ok(number),
        None => Err(Error::NotFound { what: "snapshot", name: number.to_string() }),
    }
}

/// Option of `heapr snapshot` for a grouping.
fn option_of(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Frames => "--frames",
        GroupBy::Images => "--images",
        _ => "--stacks",
    }
}
