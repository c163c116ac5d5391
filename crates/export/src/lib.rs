//! Traces and profiles in other tools' formats, and reports for programs. This crate writes bytes
//! and knows no files or terminals.
//!
//! ```text
//! stacks with amounts ([`Samples`]) ── a row of [`FORMATS`] ──> collapsed, pprof, OTLP, speedscope, flame graph
//! report + what it is of ([`Subject`]) ── [`json`], [`csv`]
//! ```
#![forbid(unsafe_code)]

mod builds_sentence;
mod collapsed;
pub mod csv;
mod flamegraph;
pub mod frame_text;
pub mod json;
mod name_tree;
mod old_interpreters;
mod otlp;
mod own_memory;
pub mod parquet;
mod pprof;
mod process_name;
mod protobuf;
mod resident_line;
mod samples;
mod speedscope;
mod subject;
pub mod tables;

pub use builds_sentence::{FunctionChange, builds_sentence, signed_change};
pub use own_memory::{OwnMemoryIntervals, own_memory, own_memory_by_name, own_memory_of_tree};
pub use pprof::is_too_large as is_too_large_for_pprof;
pub use process_name::ProcessName;
pub use resident_line::resident_line;
pub use samples::Samples;
pub use subject::{Subject, ThreadName, group_name, sampled_text, warnings};

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use heapr_query::{Action, CullList, Filter, FrameView, GroupBy, Metric, Query, file_name};
use heapr_trace::{Amounts, Module, Trace};

/// Frame as exports name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SampleFrame {
    /// Function, or `module+0xoffset`.
    pub name: String,
    /// Path of the module.
    pub module: String,
    /// Source file.
    pub file: String,
    /// Line in `file`; 0: unknown.
    pub line: u32,
}

impl SampleFrame {
    /// Converts a frame of a query.
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

/// Stacks and their metadata, as input of a format's writer.
#[derive(Debug, Clone)]
pub struct Profile<'a> {
    /// The stacks.
    pub samples: &'a Samples,
    /// Amounts to write, in formats that have several.
    pub metrics: Vec<Metric>,
    /// Metric that is shown, or shown first.
    pub value: Metric,
    /// Description of the stacks.
    pub title: &'a str,
    /// Start of the recording in nanoseconds since 1970 UTC; 0: unknown.
    pub start_unix_ns: u64,
    /// Length of the recording in nanoseconds.
    pub duration_ns: u64,
    /// Mean distance of samples in bytes; 1: every allocation was recorded.
    pub period_bytes: u64,
    /// Text that says that the amounts are estimates; `None`: they are counts.
    pub sampled: Option<String>,
    /// Whether each stack has its own intervals, in formats that support it. (An engine that treats
    /// a stack's attributes as part of its identity would store each stack anew.)
    pub tells_intervals: bool,
    /// Modules, for their build-ids.
    pub modules: &'a [Module],
    /// Paths of the programs that the processes run.
    pub programs: Vec<&'a str>,
    /// Further facts about the process: keys and values.
    pub labels: Vec<(String, String)>,
}

impl<'a> Profile<'a> {
    /// Creates a profile of stacks without metadata, with all amounts.
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

    /// Adds the metadata of the trace that the stacks come from.
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

    /// Title, with the text that says that amounts are estimates.
    pub(crate) fn heading(&self) -> String {
        match &self.sampled {
            Some(sampled) => format!("{}; {sampled}", self.title),
            None => self.title.to_owned(),
        }
    }

    /// Half intervals of the sum of all stacks, where the amounts are estimates. Each is a pair of
    /// the metric's name in other tools and the number.
    pub(crate) fn whole_intervals(&self) -> Vec<(&'static str, u64)> {
        intervals(&self.metrics, &self.samples.sum())
    }

    /// Path of the program whose stacks have most of `value`; `None`: no stack contains a program.
    pub(crate) fn program(&self) -> Option<&'a str> {
        let programs: Vec<&str> =
            self.programs.iter().copied().collect::<BTreeSet<&str>>().into_iter().collect();
        let number_of = |module: &str| programs.binary_search(&module).ok();
        let of_frame: Vec<Option<usize>> =
            self.samples.frames().iter().map(|frame| number_of(&frame.module)).collect();
        // By node: the program of the stack's outermost frame that lies in any program.
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

    /// Hexadecimal build-ids by path. A path that had different build-ids in turn is left out.
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

/// Removes the metrics that the trace's source does not record: they would be written as 0.
fn known_metrics(trace: &Trace, mut metrics: Vec<Metric>) -> Vec<Metric> {
    let marked = trace.sampling().untold().marked(&Amounts::default());
    metrics.retain(|metric| !metric.is_unknown(&marked));
    metrics
}

/// Half intervals of the amounts that are estimates.
pub(crate) fn intervals(metrics: &[Metric], amounts: &Amounts) -> Vec<(&'static str, u64)> {
    let of = |metric: &Metric| (metric.pprof(), metric.plus_minus(amounts));
    metrics.iter().map(of).filter(|&(_, plus_minus)| plus_minus > 0).collect()
}

/// Format of another tool.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Name on the command line and in requests.
    pub name: &'static str,
    /// Ending of its files' names.
    pub ending: &'static str,
    /// Description.
    pub help: &'static str,
    /// Whether the format has source lines: stacks that differ only in lines must stay apart.
    pub tells_lines: bool,
    /// Writes a profile.
    pub write: fn(&mut dyn Write, &Profile<'_>) -> io::Result<()>,
}

/// All formats.
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
    /// Query whose report has the input of this format: all stacks that are chosen, the greatest
    /// first.
    #[must_use]
    pub fn query(self, filter: Filter, cull: CullList, sort: Metric) -> Query {
        let actions = vec![Action::Ranking { by: GroupBy::Stacks, sort }];
        Query { filter, cull, actions, top: usize::MAX, tells_lines: self.tells_lines, ..Query::default() }
    }

    /// True if the format is made of bytes that are no text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        self.ending.ends_with("pb") || self.ending.ends_with("gz")
    }

    /// Finds a format by its name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        FORMATS.into_iter().find(|format| format.name == name)
    }
}

/// TypeScript source of the table of formats, for the web page.
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

    /// The table is written if `HEAPR_WRITE_GENERATED=1`.
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
