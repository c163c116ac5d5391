//! Snapshots of one file or several, in order of time, with their blocks summed by stack, frame or
//! image.

use std::collections::{BTreeSet, HashMap};

use heapr_trace::{BlockEstimate, Snapshot, StackIndex, Trace};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::filter::{Filter, Moment};
use crate::frame_pattern::file_name;
use crate::frames::FrameView;
use crate::live_rows::{LiveRow, LiveRows, live_rows};
use crate::query::GroupBy;
use crate::same_builds::SameBuilds;
use crate::stack_groups::StackGroups;

/// A file with the numbers of its chosen snapshots.
#[derive(Debug)]
pub struct SeriesFile<'t> {
    /// The file.
    pub trace: &'t Trace,
    /// Numbers of the snapshots to read.
    pub numbers: Vec<u32>,
    /// Selection of the blocks that count; the filter's own snapshot is ignored.
    pub filter: Filter,
}

/// A snapshot of a series.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Number of the snapshot's file.
    pub file: usize,
    /// Facts of the snapshot.
    pub snapshot: Snapshot,
    /// Moment of the snapshot, on the wall clock.
    pub unix_ns: u64,
    /// Start of the session, which identifies the recording.
    session_start_unix_ns: u64,
    /// Total of the snapshot.
    pub amount: BlockEstimate,
    /// Name and pid of each process: `python3 (1234)`.
    pub processes: Vec<String>,
}

impl Taken {
    /// Whether both snapshots are of one recording. If so, blocks are distinguished by the time of
    /// their allocation.
    #[must_use]
    pub(crate) fn is_of_recording(&self, other: &Self) -> bool {
        self.session_start_unix_ns == other.session_start_unix_ns
    }
}

/// A stack that represents a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineStack {
    /// Number of the file.
    pub file: usize,
    /// A stack of the line and its culled stack: the arguments of
    /// `heapr_explore::Explorer::stack_frames`.
    pub key: (u32, u32),
}

/// One stack, frame or image in all snapshots.
#[derive(Debug, Clone)]
pub struct Line {
    /// Frames as they are printed, innermost first: see [`SameBuilds::name`].
    pub frames: Vec<String>,
    /// Live blocks in each snapshot.
    pub rows: Vec<LiveRow>,
    /// A stack of the line in the first file that has one.
    pub stack: LineStack,
    /// Groups of the line: numbers of the file and of the group in it; at least one.
    groups: Vec<(u32, u32)>,
}

impl Line {
    /// The frames of the line, innermost first, merged from the groups of all files
    /// ([`Series::with_groups`]). A source file or line that differs between groups is left out.
    #[must_use]
    pub fn told_frames<'g>(&self, groups: &'g [StackGroups<'_>]) -> Vec<FrameView<'g>> {
        let mut of_groups = self.groups.iter().map(|&(file, group)| groups[file as usize].frames(group));
        let mut told = of_groups.next().unwrap_or_default();
        for others in of_groups {
            for (frame, other) in told.iter_mut().zip(others) {
                if frame.file != other.file {
                    (frame.file, frame.line) = (None, None);
                } else if frame.line != other.line {
                    frame.line = None;
                }
            }
        }
        told
    }
}

/// Order of the lines of one snapshot; the first one listed has the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineOrder {
    /// Most bytes.
    #[default]
    Bytes,
    /// Most blocks.
    Count,
    /// Oldest block.
    Oldest,
    /// Youngest block.
    Youngest,
}

/// Snapshots with their lines.
#[derive(Debug, Default)]
pub struct Series {
    /// The snapshots in order of time.
    pub taken: Vec<Taken>,
    /// The lines, unordered.
    pub lines: Vec<Line>,
    /// Sum over all lines, for each snapshot.
    pub wholes: Vec<LiveRow>,
    /// Damage: number of the file, text.
    pub damage: Vec<(usize, String)>,
}

impl Series {
    /// Reads the chosen snapshots of all files. `groups` returns the groups of a file's stacks.
    ///
    /// # Errors
    /// The filter needs events, or names what a file does not have, or a file cannot be read.
    pub fn read<'t>(
        files: &[SeriesFile<'t>],
        by: GroupBy,
        groups: impl FnMut(usize, &BTreeSet<StackIndex>) -> Result<StackGroups<'t>>,
    ) -> Result<Self> {
        Self::with_groups(files, by, groups).map(|(series, _)| series)
    }

    /// Variant of [`Series::read`] that also returns the groups of each file: see
    /// [`Line::told_frames`].
    ///
    /// # Errors
    /// The errors of [`Series::read`].
    pub fn with_groups<'t>(
        files: &[SeriesFile<'t>],
        by: GroupBy,
        mut groups: impl FnMut(usize, &BTreeSet<StackIndex>) -> Result<StackGroups<'t>>,
    ) -> Result<(Self, Vec<StackGroups<'t>>)> {
        // Snapshots in order of the wall clock, then file and number.
        let mut taken: Vec<Taken> =
            files.iter().enumerate().flat_map(|(number, file)| taken_of(number, file)).collect();
        taken.sort_by_key(|taken| (taken.unix_ns, taken.file, taken.snapshot.number));
        let moments: Vec<u64> = taken.iter().map(|taken| taken.unix_ns).collect();
        let mut series = Self { wholes: vec![LiveRow::default(); taken.len()], ..Self::default() };
        let builds = SameBuilds::of(files.iter().map(|file| file.trace));
        let mut places: HashMap<Vec<String>, usize> = HashMap::new();
        let mut of_files = Vec::new();
        for (number, file) in files.iter().enumerate() {
            check(&file.filter)?;
            let start_unix_ns = file.trace.session().start_unix_ns;
            let boundaries: Vec<u64> =
                moments.iter().map(|unix_ns| unix_ns.saturating_sub(start_unix_ns)).collect();
            let mut found: Vec<(usize, LiveRows)> = Vec::new();
            for (place, taken) in taken.iter().enumerate().filter(|(_, taken)| taken.file == number) {
                let rows = live_rows(file.trace, &taken.snapshot, &file.filter, &boundaries)?;
                let text = |damage: &heapr_trace::Damage| {
                    format!("{} bytes at offset {}: {}", damage.bytes, damage.offset, damage.what)
                };
                series.damage.extend(rows.damage.iter().map(|damage| (number, text(damage))));
                found.push((place, rows));
            }
            let stacks: BTreeSet<StackIndex> =
                found.iter().flat_map(|(_, rows)| rows.rows.iter().map(|(stack, _)| *stack)).collect();
            let groups = groups(number, &stacks)?;
            let lines: Vec<usize> = (0..groups.len() as u32)
                .map(|group| {
                    let frames: Vec<String> =
                        groups.frames(group).iter().map(|frame| identity(&builds, frame, by)).collect();
                    let place = *places.entry(frames).or_insert_with_key(|frames| {
                        let key = groups.representative(group).unwrap_or_default();
                        series.lines.push(Line {
                            frames: frames.clone(),
                            rows: vec![LiveRow::default(); taken.len()],
                            stack: LineStack { file: number, key },
                            groups: Vec::new(),
                        });
                        series.lines.len() - 1
                    });
                    series.lines[place].groups.push((number as u32, group));
                    place
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
            of_files.push(groups);
        }
        series.taken = taken;
        Ok((series, of_files))
    }

    /// Notes and damage, one line each; `name` returns a file's name.
    pub fn warnings(&self, name: impl Fn(usize) -> String) -> Vec<String> {
        let damage = self.damage.iter().map(|(file, text)| format!("{}: {text}", name(*file)));
        let notes = self.taken.iter().flat_map(|taken| {
            let number = taken.snapshot.number;
            taken.snapshot.notes.iter().map(move |note| format!("snapshot {number}: {note}"))
        });
        let mut warnings: Vec<String> = damage.chain(notes).collect();
        warnings.dedup();
        warnings
    }

    /// The lines, sorted by the first snapshot.
    #[must_use]
    pub fn sorted(&self, order: LineOrder) -> Vec<&Line> {
        let key = |row: &LiveRow| match order {
            LineOrder::Bytes => (row.amount.bytes.value, row.amount.count.value),
            LineOrder::Count => (row.amount.count.value, row.amount.bytes.value),
            LineOrder::Oldest => (row.oldest_age_ns, row.amount.bytes.value),
            LineOrder::Youngest => (u64::MAX - row.youngest_age_ns, row.amount.bytes.value),
        };
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|one, other| {
            let keys = other.rows.first().map(key).cmp(&one.rows.first().map(key));
            keys.then_with(|| one.frames.cmp(&other.frames))
        });
        lines
    }
}

fn check(filter: &Filter) -> Result<()> {
    let is_of_events = filter.range.is_some()
        || filter.is_temporary_only
        || filter.allocation_type.is_some()
        || matches!(filter.at, Some(Moment::Peak | Moment::At { .. }));
    if is_of_events { Err(Error::NoEventsInSnapshot) } else { Ok(()) }
}

fn taken_of(number: usize, file: &SeriesFile<'_>) -> Vec<Taken> {
    let start_unix_ns = file.trace.session().start_unix_ns;
    let snapshots = file.numbers.iter().filter_map(|&number| file.trace.snapshot(number));
    snapshots
        .map(|snapshot| Taken {
            file: number,
            unix_ns: start_unix_ns.saturating_add(snapshot.time_ns),
            session_start_unix_ns: start_unix_ns,
            amount: file.trace.snapshot_estimate(snapshot),
            processes: process_names(file.trace, snapshot),
            snapshot: snapshot.clone(),
        })
        .collect()
}

/// The processes of a snapshot by name.
#[must_use]
pub fn process_names(trace: &Trace, snapshot: &Snapshot) -> Vec<String> {
    let name = |place: u32| match trace.processes().get(place as usize) {
        Some(process) => format!("{} ({})", process.name(), process.pid),
        None => format!("process #{place}"),
    };
    snapshot.processes.iter().map(|process| name(process.process.0)).collect()
}

/// Text of a frame that is equal in all builds and runs.
fn identity(builds: &SameBuilds, frame: &FrameView<'_>, by: GroupBy) -> String {
    match by {
        GroupBy::Images => frame.module.map_or("[no module]", file_name).to_owned(),
        _ => builds.name(frame),
    }
}
