//! Traces and profiles in other tools' formats, and reports for programs. Bytes out: nothing here
//! knows a file or a terminal.
//!
//! ```text
//! stacks with amounts ([`Samples`]) ── a row of [`FORMATS`] ──> collapsed, pprof, OTLP, speedscope, flame graph
//! report + what it is of ([`Subject`]) ── [`json`], [`csv`]
//! ```
#![forbid(unsafe_code)]

mod collapsed;
pub mod csv;
mod flamegraph;
pub mod frame_text;
pub mod json;
mod name_tree;
mod otlp;
mod own_memory;
pub mod parquet;
mod pprof;
mod process_name;
mod protobuf;
mod samples;
mod speedscope;
mod subject;
pub mod tables;

pub use own_memory::{OwnMemoryIntervals, own_memory, own_memory_by_name, own_memory_of_tree};
pub use pprof::is_too_large as is_too_large_for_pprof;
pub use process_name::ProcessName;
pub use samples::Samples;
pub use subject::{Subject, ThreadName, group_name, sampled_text, warnings};

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use heapr_query::{Action, CullList, Filter, FrameView, GroupBy, Metric, Query, file_name};
use heapr_trace::{Amounts, Module, Trace};

/// A frame, as exports name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SampleFrame {
    /// Function, or `module+0xoffset`.
    pub name: String,
    /// Path of the module.
    pub module: String,
    /// Source file.
    pub file: String,
    /// Line in it; 0: unknown.
    pub line: u32,
}

impl SampleFrame {
    /// As a query names it.
    #[must_use]
    pub fn new(frame: &FrameView<'_>) -> Self {
        let module = frame.module.unwrap_or_default();
        let name = match frame.symbol {
            Some(symbol) => symbol.to_owned(),
            None if module.is_empty() => format!("{:#x}", frame.offset),
            None if frame.offset == 0 => file_name(module).to_owned(),
            None => format!("{}+{:#x}", file_name(module), frame.offset),
        };
        Self {
            name,
            module: module.to_owned(),
            file: frame.file.unwrap_or_default().to_owned(),
            line: frame.line.unwrap_or(0),
        }
    }
}

/// What a file of stacks says.
#[derive(Debug, Clone)]
pub struct Profile<'a> {
    /// The stacks.
    pub samples: &'a Samples,
    /// The amounts, where a format has several.
    pub metrics: Vec<Metric>,
    /// What is shown, or shown first.
    pub value: Metric,
    /// Of what.
    pub title: &'a str,
    /// When the recording began, in ns since 1970 UTC; 0: unknown.
    pub start_unix_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How far samples lie apart; 1: every allocation was recorded.
    pub period_bytes: u64,
    /// That the amounts are estimates, in words; `None`: they are counts.
    pub sampled: Option<String>,
    /// Each stack tells its own intervals, where a format has room. (An engine that takes what a
    /// stack tells for a part of its name would keep each anew.)
    pub tells_intervals: bool,
    /// The modules, for their build-ids.
    pub modules: &'a [Module],
    /// Paths of the programs that the processes run.
    pub programs: Vec<&'a str>,
    /// What else is known of the process: keys and values.
    pub labels: Vec<(String, String)>,
}

impl<'a> Profile<'a> {
    /// Of stacks of which nothing else is known, with all amounts.
    #[must_use]
    pub fn new(samples: &'a Samples, value: Metric, title: &'a str) -> Self {
        Self {
            samples,
            metrics: Metric::all().collect(),
            value,
            title,
            start_unix_ns: 0,
            duration_ns: 0,
            period_bytes: 1,
            sampled: None,
            tells_intervals: false,
            modules: &[],
            programs: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// With what the trace tells that the stacks are of.
    #[must_use]
    pub fn of_trace(self, trace: &'a Trace) -> Self {
        Self {
            start_unix_ns: trace.session().start_unix_ns,
            duration_ns: trace.duration_ns(),
            period_bytes: trace.sampling().largest_mean_bytes().unwrap_or(1).max(1),
            sampled: sampled_text(trace.sampling()),
            modules: trace.modules(),
            metrics: known_metrics(trace, self.metrics.clone()),
            programs: trace.processes().iter().map(|process| process.executable.as_str()).collect(),
            ..self
        }
    }

    /// The title, with what the numbers are.
    pub(crate) fn heading(&self) -> String {
        match &self.sampled {
            Some(sampled) => format!("{}; {sampled}", self.title),
            None => self.title.to_owned(),
        }
    }

    /// Half intervals of all stacks together, where the amounts are estimates: the name of each
    /// metric in other tools, and the number.
    pub(crate) fn whole_intervals(&self) -> Vec<(&'static str, u64)> {
        intervals(&self.metrics, &self.samples.sum())
    }

    /// The path of the program whose stacks have most of what is shown; `None`: none is in them.
    pub(crate) fn program(&self) -> Option<&'a str> {
        let programs: Vec<&str> =
            self.programs.iter().copied().collect::<BTreeSet<&str>>().into_iter().collect();
        let number_of = |module: &str| programs.binary_search(&module).ok();
        let of_frame: Vec<Option<usize>> =
            self.samples.frames().iter().map(|frame| number_of(&frame.module)).collect();
        // Of a stack its outermost frame that is in a program at all.
        let mut of_node: Vec<Option<usize>> = vec![None; self.samples.nodes().len()];
        for (place, &(caller, frame)) in self.samples.nodes().iter().enumerate().skip(1) {
            of_node[place] = of_node[caller as usize].or(of_frame[frame as usize]);
        }
        let mut amounts = vec![0_u64; programs.len()];
        for row in self.samples.rows() {
            if let Some(program) = of_node[row.stack as usize] {
                amounts[program] = amounts[program].saturating_add(self.value.of(&row.amounts).max(1));
            }
        }
        let used = amounts.into_iter().zip(programs).filter(|&(amount, _)| amount > 0);
        used.max().map(|(_, path)| path)
    }

    /// Build-ids by path, hexadecimal; a path that had several in turn has none.
    pub(crate) fn build_ids(&self) -> HashMap<&'a str, String> {
        let mut found: HashMap<&str, Option<&[u8]>> = HashMap::new();
        for module in self.modules {
            let known = found.entry(&module.path).or_insert(Some(&module.build_id));
            if *known != Some(&module.build_id[..]) {
                *known = None;
            }
        }
        let text = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let known = found.into_iter().filter_map(|(path, id)| Some((path, id.filter(|id| !id.is_empty())?)));
        known.map(|(path, id)| (path, text(id))).collect()
    }
}

/// Without those that the trace's source does not tell: 0 would be said of them.
fn known_metrics(trace: &Trace, mut metrics: Vec<Metric>) -> Vec<Metric> {
    let marked = trace.sampling().untold().marked(&Amounts::default());
    metrics.retain(|metric| !metric.is_unknown(&marked));
    metrics
}

/// Half intervals of estimates; those of counts are not among them.
pub(crate) fn intervals(metrics: &[Metric], amounts: &Amounts) -> Vec<(&'static str, u64)> {
    let of = |metric: &Metric| (metric.pprof(), metric.plus_minus(amounts));
    metrics.iter().map(of).filter(|&(_, plus_minus)| plus_minus > 0).collect()
}

/// A format of another tool.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// On the command line and in requests.
    pub name: &'static str,
    /// How its files' names end.
    pub ending: &'static str,
    /// What it is.
    pub help: &'static str,
    /// It tells lines of source: stacks that differ in them alone must stand apart.
    pub tells_lines: bool,
    /// Writes it.
    pub write: fn(&mut dyn Write, &Profile<'_>) -> io::Result<()>,
}

/// All of them.
pub const FORMATS: [Format; 5] = [
    Format {
        name: "collapsed",
        ending: "txt",
        help: "A line for each stack, as flame graph scripts read it",
        tells_lines: false,
        write: collapsed::write,
    },
    Format {
        name: "pprof",
        ending: "pb.gz",
        help: "pprof's gzipped protocol buffer, with all values",
        tells_lines: true,
        write: pprof::write,
    },
    Format {
        name: "otlp",
        ending: "otlp.pb",
        help: "OpenTelemetry's profiles (alpha), a profile for each value",
        tells_lines: true,
        write: otlp::write,
    },
    Format {
        name: "speedscope",
        ending: "speedscope.json",
        help: "The file format of speedscope.app",
        tells_lines: true,
        write: speedscope::write,
    },
    Format {
        name: "flamegraph",
        ending: "svg",
        help: "A self-contained SVG",
        tells_lines: false,
        write: flamegraph::write,
    },
];

impl Format {
    /// What a trace is asked for: all stacks of what is chosen, the greatest first.
    #[must_use]
    pub fn query(self, filter: Filter, cull: CullList, sort: Metric) -> Query {
        let actions = vec![Action::Ranking { by: GroupBy::Stacks, sort }];
        Query { filter, cull, actions, top: usize::MAX, tells_lines: self.tells_lines, ..Query::default() }
    }

    /// The format of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        FORMATS.into_iter().find(|format| format.name == name)
    }
}

/// The page's copy of the table.
#[must_use]
pub fn typescript() -> String {
    let mut text = "/** The table of crates/export/src/lib.rs, written by its test: not to be edited. */\n\n\
                    export const EXPORT_FORMATS: { name: string; ending: string; help: string }[] = [\n"
        .to_owned();
    for Format { name, ending, help, .. } in FORMATS {
        text += &format!("  {{ name: '{name}', ending: '{ending}', help: \"{help}\" }},\n");
    }
    text + "];\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `HEAPR_WRITE_GENERATED=1` writes it.
    #[test]
    fn the_page_has_the_table_of_formats() {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/api/export-formats.ts");
        if std::env::var_os("HEAPR_WRITE_GENERATED").is_some() {
            std::fs::write(&path, typescript()).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written == typescript(), "run this test with HEAPR_WRITE_GENERATED=1, then build the page");
    }
}
