//! List of tables and their columns. Both the writer and `docs/tables.md` follow it.

use heapr_query::Metric;

use crate::parquet::{Column, Kind};

/// Table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Name of the table and its folder.
    pub name: &'static str,
    /// Description of a row.
    pub help: &'static str,
    /// Columns, without the metrics that follow them in `samples`.
    pub(super) first: &'static [Column],
    /// Whether the metrics follow.
    pub(super) has_metrics: bool,
}

const fn column(name: &'static str, kind: Kind, help: &'static str) -> Column {
    Column { name, kind, help }
}

const HOST: Column = column("host", Kind::Text, "name of the machine");
const SERVICE: Column = column("service", Kind::Text, "`--service`, else the program's file name");
const PROCESS_ID: Column = column("process_id", Kind::Id, "identity made of host, recording, pid and start");

pub(super) const PROCESSES: Table = Table {
    name: "processes",
    help: "a process of a recording",
    first: &[
        PROCESS_ID,
        HOST,
        SERVICE,
        column("session", Kind::Text, "the session's name"),
        column("pid", Kind::Number, "number of the process in the system"),
        column("parent_pid", Kind::Number, "number of its parent process"),
        column("executable", Kind::Text, "path of the program"),
        column("command_line", Kind::Text, "words of the command line, joined by spaces"),
        column("start_time", Kind::Time, "time when the process was first seen"),
        column("end_time", Kind::TimeOrNone, "end of the process; null if it still ran"),
        column("recorded_until", Kind::Time, "end of the recording"),
        column("labels", Kind::Text, "`--label` of the export, as a JSON object"),
        column("heapr_version", Kind::Text, "version of heapr that recorded the process"),
        column(
            "sampled_every_bytes",
            Kind::Number,
            "mean distance of samples in bytes; 1: every allocation was recorded",
        ),
    ],
    has_metrics: false,
};
pub(super) const FRAMES: Table = Table {
    name: "frames",
    help: "a function at a location in code; inlined functions have rows of their own",
    first: &[
        column("frame_id", Kind::Id, "identity made of build-id and offset; see above"),
        column("depth", Kind::Number, "0 is the innermost inlined function"),
        column("kind", Kind::Text, "`code`, `module` (no build-id), `named`, `language` or `address`"),
        column(
            "module",
            Kind::Text,
            "path of the file; the short name (`py`) of a language; empty for addresses outside of all files",
        ),
        column("build_id", Kind::Text, "build-id of the file, hexadecimal; may be empty"),
        column("offset", Kind::Number, "address of the call in the file; 0 if only a name is known"),
        column("function", Kind::Text, "name of the function; may be empty"),
        column("file", Kind::Text, "source file; may be empty"),
        column("line", Kind::Number, "line in the source file; 0: unknown"),
    ],
    has_metrics: false,
};
pub(super) const STACKS: Table = Table {
    name: "stacks",
    help: "a frame of a stack",
    first: &[
        column("stack_id", Kind::Id, "identity made of the ids of the frames, in order"),
        column("position", Kind::Number, "position in the stack; 0 is the innermost frame"),
        column("frame_id", Kind::Id, "frame at this position"),
    ],
    has_metrics: false,
};
pub(super) const SAMPLES: Table = Table {
    name: "samples",
    help: "the allocations of a stack in an interval, and its live blocks at the end",
    first: &[
        column("time", Kind::Time, "end of the interval, UTC"),
        column("interval_ms", Kind::Number, "length of the interval in milliseconds"),
        HOST,
        SERVICE,
        PROCESS_ID,
        column("heap", Kind::Text, "`malloc`, `mmap`, or the name that the program gave its heap"),
        column("stack_id", Kind::Id, "stack; all zeros: recorded without a stack"),
        column("is_last", Kind::Number, "1 in the last interval, whose live amounts are those of a report"),
    ],
    has_metrics: true,
};
pub(super) const MAPPINGS: Table = Table {
    name: "mappings",
    help: "a file that was mapped as code",
    first: &[
        PROCESS_ID,
        column("module", Kind::Text, "path of the file"),
        column("build_id", Kind::Text, "build-id of the file, hexadecimal; may be empty"),
        column("start_address", Kind::Number, "first address in the process"),
        column("end_address", Kind::Number, "address after the last byte"),
        column(
            "bias",
            Kind::Number,
            "difference between an address in the process and the address in the file",
        ),
        column("loaded", Kind::Time, "time when the mapping was first seen"),
        column("unloaded", Kind::TimeOrNone, "end of the mapping; null if it still existed"),
    ],
    has_metrics: false,
};
pub(super) const RESIDENT: Table = Table {
    name: "resident",
    help: "memory of a process at a moment, by class",
    first: &[
        column("time", Kind::Time, "time of the reading, UTC"),
        HOST,
        SERVICE,
        PROCESS_ID,
        column(
            "class",
            Kind::Text,
            "`anonymous`, `file`, `shared_memory` (together: resident), `swapped`, `page_tables`; `resident` if the parts are unknown",
        ),
        column("bytes", Kind::Number, "bytes of this class"),
    ],
    has_metrics: false,
};

/// Metrics with a column for half of their interval, and that column.
pub(super) const UNCERTAIN: [(Metric, Column); 2] = [
    (
        Metric::OutstandingBytes,
        column(
            "outstanding_bytes_plus_minus",
            Kind::Number,
            "half of the 95 % interval in a recording of samples; else 0",
        ),
    ),
    (
        Metric::TotalBytes,
        column(
            "total_bytes_plus_minus",
            Kind::Number,
            "half of the 95 % interval in a recording of samples; else 0",
        ),
    ),
];

/// All tables.
pub const TABLES: [Table; 6] = [PROCESSES, FRAMES, STACKS, SAMPLES, MAPPINGS, RESIDENT];

impl Table {
    /// All columns, including metrics.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        let metrics = Metric::all().filter(|_| self.has_metrics);
        let metrics = metrics.map(|metric| column(metric.name(), Kind::Number, metric.help()));
        let uncertain = UNCERTAIN.iter().filter(|_| self.has_metrics).map(|(_, column)| *column);
        self.first.iter().copied().chain(metrics).chain(uncertain).collect()
    }
}

/// Tables as listed in `docs/tables.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::new();
    for table in TABLES {
        text += &format!(
            "### {}\n\nA row is {}.\n\n| column | type | |\n|---|---|---|\n",
            table.name, table.help
        );
        for Column { name, kind, help } in table.columns() {
            text += &format!("| `{name}` | {} | {help} |\n", kind.sql());
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list is written if `HEAPR_WRITE_GENERATED=1`.
    #[test]
    fn the_documentation_has_the_columns() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
        heapr_testkit::check_part(&path, "columns", &markdown());
    }
}
