//! What a recording holds now, as a profile; and what it allocated since the one before.

use std::collections::HashMap;
use std::path::Path;

use heapr_export::{Format, Sample, SampleFrame, samples};
use heapr_filters::FilterArguments;
use heapr_query::Metric;
use heapr_trace::{Amounts, Trace};

use crate::report::names::{NameArguments, TraceNames};

/// What engines are told, in Go's order: what was allocated, and what is live. (A peak or a share of temporary blocks is
/// none of what they can add up.)
pub(crate) const METRICS: [Metric; 4] =
    [Metric::TotalCount, Metric::TotalBytes, Metric::OutstandingCount, Metric::OutstandingBytes];

/// Tells what is new since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct SinceLast {
    totals: HashMap<Vec<SampleFrame>, Amounts>,
    until_ns: u64,
}

/// The stacks of a moment, and the time that they are of.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) samples: Vec<Sample>,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl SinceLast {
    /// Of a trace: what is live, and what was allocated since the last time.
    pub(crate) fn take(&mut self, trace: &Trace, names: &NameArguments) -> anyhow::Result<Moment> {
        let filters = FilterArguments::default();
        let format = Format::of_name("pprof").ok_or_else(|| anyhow::anyhow!("pprof is no format"))?;
        let query = format.query(filters.filter(trace)?, filters.cull_list()?, Metric::default());
        let mut names = TraceNames::new(trace, names);
        let report = heapr_query::run(trace, &query, &mut names)?;
        let mut found = samples(&report);
        let from_ns = std::mem::replace(&mut self.until_ns, trace.duration_ns());
        for sample in &mut found {
            let before = self.totals.insert(sample.frames.clone(), sample.amounts).unwrap_or_default();
            sample.amounts.total_count = sample.amounts.total_count.saturating_sub(before.total_count);
            sample.amounts.total_bytes = sample.amounts.total_bytes.saturating_sub(before.total_bytes);
        }
        found.retain(|sample| METRICS.iter().any(|metric| metric.of(&sample.amounts) > 0));
        Ok(Moment { samples: found, from_ns, to_ns: self.until_ns.max(from_ns) })
    }
}

/// The name of the program of a recording.
pub(super) fn program(trace: &Trace, file: &Path) -> String {
    let first = trace.processes().first().map(heapr_trace::Process::name);
    match first.filter(|name| !name.is_empty() && *name != "?") {
        Some(name) => name.to_owned(),
        None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}
