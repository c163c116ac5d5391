//! Snapshots of one file or several, in order of time, with their blocks added up by the same stacks, frames or images.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::ensure;
use heapr_query::{FrameView, GroupBy, LiveRow, LiveRows, Moment, StackGroups, file_name, live_rows};
use heapr_trace::{Snapshot, Trace};

use crate::commands::report::open;
use crate::report::filter_arguments::FilterArguments;
use crate::report::names::{NameArguments, TraceNames};
use crate::report::subject::executable_name;

/// A snapshot among others.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    /// Path of its file.
    pub(crate) file: PathBuf,
    pub(crate) snapshot: Snapshot,
    /// Its moment, on the wall clock.
    pub(crate) unix_ns: u64,
    /// Start of its session, which tells recordings apart.
    session_start_unix_ns: u64,
    /// `python3 (1234)` of each process.
    pub(crate) processes: Vec<String>,
}

impl Taken {
    /// Whether both are of one recording: then blocks can be told apart by the time of their allocation.
    pub(crate) fn is_of_recording(&self, other: &Self) -> bool {
        self.session_start_unix_ns == other.session_start_unix_ns
    }
}

/// The same stack, frame or image in all snapshots.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Frames as they are printed, innermost first; a module without a name of a function is told by the module alone.
    pub(crate) frames: Vec<String>,
    /// By snapshot.
    pub(crate) rows: Vec<LiveRow>,
}

/// Snapshots and their lines.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) taken: Vec<Taken>,
    pub(crate) lines: Vec<Line>,
    /// Over all lines, by snapshot.
    pub(crate) wholes: Vec<LiveRow>,
    /// What could not be read.
    pub(crate) warnings: Vec<String>,
}

/// How lines are made and which blocks count.
#[derive(Debug, Clone, clap::Args)]
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
    #[command(flatten)]
    pub(crate) filters: FilterArguments,
    #[command(flatten)]
    names: NameArguments,
}

impl SeriesArguments {
    /// What lines are of.
    pub(crate) fn by(&self) -> GroupBy {
        match (self.frames, self.images) {
            (true, _) => GroupBy::Frames,
            (_, true) => GroupBy::Images,
            _ => GroupBy::Stacks,
        }
    }
}

/// A file with the numbers of its chosen snapshots.
pub(crate) struct Chosen {
    pub(crate) file: PathBuf,
    pub(crate) trace: Trace,
    pub(crate) numbers: Vec<u32>,
}

impl Chosen {
    /// Opens a file; `choose` gives the numbers.
    pub(crate) fn open(
        file: &Path,
        choose: impl FnOnce(&Trace) -> anyhow::Result<Vec<u32>>,
    ) -> anyhow::Result<Self> {
        let trace = open(file)?;
        let numbers = choose(&trace)?;
        Ok(Self { file: file.to_owned(), trace, numbers })
    }

    fn taken(&self) -> impl Iterator<Item = Taken> + '_ {
        let start_unix_ns = self.trace.session().start_unix_ns;
        let snapshots = self.numbers.iter().filter_map(|&number| self.trace.snapshot(number));
        snapshots.map(move |snapshot| Taken {
            file: self.file.clone(),
            unix_ns: start_unix_ns.saturating_add(snapshot.time_ns),
            session_start_unix_ns: start_unix_ns,
            processes: process_names(&self.trace, snapshot),
            snapshot: snapshot.clone(),
        })
    }
}

/// The processes of a snapshot by name.
pub(crate) fn process_names(trace: &Trace, snapshot: &Snapshot) -> Vec<String> {
    let name = |place: u32| match trace.processes().get(place as usize) {
        Some(process) => {
            format!("{} ({})", executable_name(&process.executable, &process.command_line), process.pid)
        }
        None => format!("process #{place}"),
    };
    snapshot.processes.iter().map(|process| name(process.process.0)).collect()
}

/// Reads the chosen snapshots of all files.
pub(crate) fn read(files: &[Chosen], arguments: &SeriesArguments) -> anyhow::Result<Series> {
    // By file and place in its list, in order of the wall clock.
    let mut order: Vec<(usize, Taken)> = files
        .iter()
        .enumerate()
        .flat_map(|(file, chosen)| chosen.taken().map(move |taken| (file, taken)))
        .collect();
    order.sort_by_key(|(file, taken)| (taken.unix_ns, *file, taken.snapshot.number));
    let moments: Vec<u64> = order.iter().map(|(_, taken)| taken.unix_ns).collect();
    let mut series = Series {
        lines: Vec::new(),
        wholes: vec![LiveRow::default(); order.len()],
        warnings: Vec::new(),
        taken: Vec::new(),
    };
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    for (number, chosen) in files.iter().enumerate() {
        let filter = arguments.filters.filter(&chosen.trace)?;
        let is_of_events = filter.range.is_some()
            || filter.is_temporary_only
            || filter.allocation_type.is_some()
            || matches!(filter.at, Some(Moment::Peak | Moment::At { .. }));
        ensure!(
            !is_of_events,
            "--range, --temporary, --type and --at choose events, and a snapshot has none: --age chooses by age"
        );
        let start_unix_ns = chosen.trace.session().start_unix_ns;
        let boundaries: Vec<u64> =
            moments.iter().map(|unix_ns| unix_ns.saturating_sub(start_unix_ns)).collect();
        let mut found: Vec<(usize, LiveRows)> = Vec::new();
        for (place, (_, taken)) in order.iter().enumerate().filter(|(_, (file, _))| *file == number) {
            let rows = live_rows(&chosen.trace, &taken.snapshot, &filter, &boundaries)?;
            let damage = rows.damage.iter();
            series.warnings.extend(damage.map(|damage| {
                format!(
                    "{}: {} bytes at offset {}: {}",
                    chosen.file.display(),
                    damage.bytes,
                    damage.offset,
                    damage.what
                )
            }));
            found.push((place, rows));
        }
        let stacks: BTreeSet<_> =
            found.iter().flat_map(|(_, rows)| rows.rows.iter().map(|(stack, _)| *stack)).collect();
        let mut names = TraceNames::new(&chosen.trace, &arguments.names);
        let groups = StackGroups::new(
            &chosen.trace,
            stacks,
            arguments.by(),
            &arguments.filters.cull_list()?,
            &filter.required_frames,
            &mut names,
        );
        let lines: Vec<usize> = (0..groups.len() as u32)
            .map(|group| {
                let frames: Vec<String> =
                    groups.frames(group).iter().map(|frame| frame_identity(frame, arguments.by())).collect();
                *places.entry(frames).or_insert_with_key(|frames| {
                    series
                        .lines
                        .push(Line { frames: frames.clone(), rows: vec![LiveRow::default(); order.len()] });
                    series.lines.len() - 1
                })
            })
            .collect();
        for (place, rows) in &found {
            for (stack, row) in &rows.rows {
                // A stack without a required frame is in no group.
                let Some(group) = groups.group_of(*stack) else { continue };
                series.lines[lines[group as usize]].rows[*place].add(row);
                series.wholes[*place].add(row);
            }
        }
    }
    series.taken = order.into_iter().map(|(_, taken)| taken).collect();
    for taken in &series.taken {
        let notes = taken.snapshot.notes.iter();
        series.warnings.extend(notes.map(|note| format!("snapshot {}: {note}", taken.snapshot.number)));
    }
    series.warnings.dedup();
    Ok(series)
}

/// What is the same in all builds and runs: names, not addresses.
fn frame_identity(frame: &FrameView<'_>, by: GroupBy) -> String {
    let module = frame.module.map_or("[no module]", file_name);
    match (by, frame.symbol) {
        (GroupBy::Images, _) => module.to_owned(),
        (_, Some(symbol)) => format!("{module}!{symbol}"),
        (_, None) => format!("{module}!?"),
    }
}
