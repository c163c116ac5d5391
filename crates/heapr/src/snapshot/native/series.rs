//! Series of snapshots in one file or several, as the options choose them.

use std::path::{Path, PathBuf};

use heapr_export::frame_text::place;
use heapr_query::json::FrameJson;
use heapr_query::{FrameView, GroupBy, Line, SeriesFile, SnapshotSeries, StackGroups};
use heapr_trace::Trace;

use crate::report::names::{NameArguments, TraceNames};
use crate::trace_file::open;
use heapr_filters::FilterArguments;
use heapr_table::{Cell, Column, Table};
use serde_json::json;

/// Frames shown of a stack as text, by default.
const FRAMES_SHOWN: usize = 10;

/// Grouping of lines, and the blocks that count.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct SeriesArguments {
    /// By whole stack (the default)
    #[arg(long)]
    stacks: bool,
    /// By innermost frame
    #[arg(long, conflicts_with = "stacks")]
    frames: bool,
    /// By module of the innermost frame
    #[arg(long, conflicts_with_all = ["stacks", "frames"])]
    images: bool,
    /// Most frames of a stack as text [default: 10]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    #[command(flatten)]
    pub(crate) filters: FilterArguments,
    #[command(flatten)]
    pub(crate) names: NameArguments,
}

impl SeriesArguments {
    /// Returns the grouping of lines.
    pub(crate) fn by(&self) -> GroupBy {
        match (self.frames, self.images) {
            (true, _) => GroupBy::Frames,
            (_, true) => GroupBy::Images,
            _ => GroupBy::Stacks,
        }
    }

    /// Returns an empty table with these columns, then the frames.
    pub(crate) fn sheet(&self, schema: &'static str, columns: &[Column]) -> Table {
        let heading = match self.by() {
            GroupBy::Stacks => "",
            GroupBy::Images => "Image",
            _ => "Frame",
        };
        let mut sheet = Table::new(schema, &[columns, &[Column::frames("frames", heading)]].concat());
        if self.by() == GroupBy::Stacks {
            sheet.show_stacks(self.depth.unwrap_or(FRAMES_SHOWN));
        }
        sheet
    }

    /// Returns the noun for lines, in singular and plural.
    pub(crate) fn nouns(&self) -> [&'static str; 2] {
        match self.by() {
            GroupBy::Frames => ["frame", "frames"],
            GroupBy::Images => ["image", "images"],
            _ => ["stack", "stacks"],
        }
    }
}

/// File with the numbers of its chosen snapshots.
pub(crate) struct Chosen {
    pub(crate) file: PathBuf,
    pub(crate) trace: Trace,
    pub(crate) numbers: Vec<u32>,
}

impl Chosen {
    /// Opens a file; `choose` returns the numbers.
    pub(crate) fn open(
        file: &Path,
        filters: &FilterArguments,
        choose: impl FnOnce(&Trace) -> anyhow::Result<Vec<u32>>,
    ) -> anyhow::Result<Self> {
        let trace = filters.shown(open(file)?);
        let numbers = choose(&trace)?;
        Ok(Self { file: file.to_owned(), trace, numbers })
    }
}

/// Series that was read from files.
pub(crate) struct ReadSeries<'t> {
    pub(crate) series: SnapshotSeries,
    /// Stack groups of each file.
    groups: Vec<StackGroups<'t>>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

impl ReadSeries<'_> {
    /// Returns the cell of a line's frames: name and location as text, objects in JSON.
    pub(crate) fn frames_cell(&self, line: &Line) -> Cell {
        let told = line.told_frames(&self.groups);
        let text = |(name, frame): (&String, &FrameView<'_>)| match place(frame) {
            place if place.is_empty() || frame.is_of_language() => name.clone(),
            place => format!("{name}  {place}"),
        };
        let lines = line.frames.iter().zip(&told).map(text).collect();
        Cell::ToldFrames(lines, json!(told.iter().map(FrameJson::from).collect::<Vec<_>>()))
    }
}

/// Reads the chosen snapshots of all files, and collects warnings.
pub(crate) fn read<'t>(chosen: &'t [Chosen], arguments: &SeriesArguments) -> anyhow::Result<ReadSeries<'t>> {
    let cull = arguments.filters.cull_list()?;
    let mut files = Vec::new();
    for file in chosen {
        let filter = arguments.filters.filter(&file.trace)?;
        files.push(SeriesFile { trace: &file.trace, numbers: file.numbers.clone(), filter });
    }
    let (series, groups) = SnapshotSeries::with_groups(&files, arguments.by(), |number, stacks| {
        let SeriesFile { trace, filter, .. } = &files[number];
        let mut names = TraceNames::new(trace, &arguments.names);
        let stacks = stacks.iter().copied();
        Ok(StackGroups::new(trace, stacks, arguments.by(), &cull, filter, &mut names))
    })?;
    let warnings = series.warnings(|number| chosen[number].file.display().to_string());
    for warning in &warnings {
        warn!("{warning}");
    }
    Ok(ReadSeries { series, groups, warnings })
}
