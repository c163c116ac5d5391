//! The live heap of a recording as a profile, with what was allocated since the previous profile.

use std::path::Path;

use heapr_export::{SampleFrame, Samples};
use heapr_query::{CullList, GroupBy, Metric, Since, StackGroups};
use heapr_trace::{Amounts, Trace};

use crate::report::names::{NameArguments, TraceNames};

/// Values of a profile, in Go's order: what was allocated, and what is live. Engines add values up,
/// which is wrong for a peak or a share of temporary blocks.
pub(crate) const METRICS: [Metric; 4] =
    [Metric::TotalCount, Metric::TotalBytes, Metric::OutstandingCount, Metric::OutstandingBytes];

/// Remembers what was sent, and returns what is new.
#[derive(Debug, Default)]
pub(crate) struct SinceLast {
    rows: Since,
    until_ns: u64,
}

/// Stacks of a profile, and the interval that it covers.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) samples: Samples,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl SinceLast {
    /// Reads what is live, and what was allocated since the previous call.
    pub(crate) fn take(&mut self, trace: &Trace, names: &NameArguments) -> anyhow::Result<Moment> {
        let (rows, _) = self.rows.advance(trace)?;
        let mut names = TraceNames::new(trace, names);
        let stacks = rows.iter().map(|row| row.stack);
        let groups = StackGroups::of_all(trace, stacks, GroupBy::Stacks, &CullList::built_in(), &mut names);
        let mut sums = vec![Amounts::default(); groups.len()];
        for row in &rows {
            let group = groups.group_of(row.stack).and_then(|group| sums.get_mut(group as usize));
            if let Some(sum) = group {
                *sum += &row.amounts;
            }
        }
        let told = (0..).zip(sums).filter(|(_, sum)| METRICS.iter().any(|metric| metric.of(sum) > 0));
        let samples = Samples::of_stacks(told.map(|(group, sum)| {
            let frames = groups.frames(group).iter().map(SampleFrame::new).collect();
            (frames, sum)
        }));
        let from_ns = std::mem::replace(&mut self.until_ns, trace.duration_ns());
        Ok(Moment { samples, from_ns, to_ns: self.until_ns.max(from_ns) })
    }
}

/// Returns the name of a recording's program, or the file's name if it is unknown.
pub(super) fn program(trace: &Trace, file: &Path) -> String {
    let first = trace.processes().first().map(heapr_trace::Process::name);
    match first.filter(|name| !name.is_empty() && *name != "?") {
        Some(name) => name.to_owned(),
        None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}
