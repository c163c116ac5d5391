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
const PROCESS_ID: Column =
    column("process_id", Kind::Id, "of host, recording, pid and start: no number of the system");

pub(super) const PROCESSES: Table = Table {
    name: "processes",
    help: "a process of a recording",
    first: &[
        PROCESS_ID,
        HOST,
        SERVICE,
        column("session", Kind::Text, "the session's name"),
        column("pid", Kind::Number, "as the system numbers it"),
        column("parent_pid", Kind::Number, "that of its parent"),
        column("executable", Kind::Text, "path of the program"),
        column("command_line", Kind::Text, "its words, with spaces between"),
        column("start_time", Kind::Time, "when it was first seen"),
        column("end_time", Kind::TimeOrNone, "when it ended, if it did"),
        column("recorded_until", Kind::Time, "end of the recording"),
        column("labels", Kind::Text, "`--label` of the export, as a JSON object"),
        column("heapr_version", Kind::Text, "what recorded it"),
        column("sampled_every_bytes", Kind::Number, "1: every allocation was recorded"),
    ],
    has_metrics: false,
};
pub(super) const FRAMES: Table = Table {
    name: "frames",
    help: "a function at a place in code; several where functions are inlined",
    first: &[
        column("frame_id", Kind::Id, "of build-id and offset; see below"),
        column("depth", Kind::Number, "0 is the innermost inlined function"),
        column("kind", Kind::Text, "`code`, `module` (no build-id), `named`, `language` or `address`"),
        column(
            "module",
            Kind::Text,
            "path of the file; of a language its short name (`py`); empty outside of all",
        ),
        column("build_id", Kind::Text, "of the file, hexadecimal; may be empty"),
        column("offset", Kind::Number, "address in the file, of the call; 0 where only a name is known"),
        column("function", Kind::Text, "its name; may be empty"),
        column("file", Kind::Text, "source file; may be empty"),
        column("line", Kind::Number, "line in it; 0: unknown"),
    ],
    has_metrics: false,
};
pub(super) const STACKS: Table = Table {
    name: "stacks",
    help: "a frame of a stack",
    first: &[
        column("stack_id", Kind::Id, "of the ids of its frames, in order"),
        column("position", Kind::Number, "0 is the innermost"),
        column("frame_id", Kind::Id, "which frame"),
    ],
    has_metrics: false,
};
pub(super) const SAMPLES: Table = Table {
    name: "samples",
    help: "what a stack allocated in an interval, and holds at its end",
    first: &[
        column("time", Kind::Time, "end of the interval, UTC"),
        column("interval_ms", Kind::Number, "its length"),
        HOST,
        SERVICE,
        PROCESS_ID,
        column("heap", Kind::Text, "`malloc`, `mmap`, or the program's own name"),
        column("stack_id", Kind::Id, "which stack; all zeros: none was taken"),
        column("is_last", Kind::Number, "1 in the last interval: what is live there is what a report says"),
    ],
    has_metrics: true,
};
pub(super) const MAPPINGS: Table = Table {
    name: "mappings",
    help: "a file that was mapped as code",
    first: &[
        PROCESS_ID,
        column("module", Kind::Text, "path of the file"),
        column("build_id", Kind::Text, "hexadecimal; may be empty"),
        column("start_address", Kind::Number, "in the process"),
        column("end_address", Kind::Number, "one past the last"),
        column("bias", Kind::Number, "subtract it from an address for the one in the file"),
        column("loaded", Kind::Time, "when it was first seen"),
        column("unloaded", Kind::TimeOrNone, "when it was gone, if it was"),
    ],
    has_metrics: false,
};
pub(super) const RESIDENT: Table = Table {
    name: "resident",
    help: "memory of a process at a moment, by class",
    first: &[
        column("time", Kind::Time, "when, UTC"),
        HOST,
        SERVICE,
        PROCESS_ID,
        column(
            "class",
            Kind::Text,
            "`anonymous`, `file`, `shared_memory` (together: resident), `swapped`, `page_tables`; `resident` where it was not split",
        ),
        column("bytes", Kind::Number, "how much"),
    ],
    has_metrics: false,
};

/// Metrics with a column for half of their interval, and that column.
pub(super) const UNCERTAIN: [(Metric, Column); 2] = [
    (
        Metric::OutstandingBytes,
        column("outstanding_bytes_plus_minus", Kind::Number, "half of its 95 % interval, of samples; else 0"),
    ),
    (
        Metric::TotalBytes,
        column("total_bytes_plus_minus", Kind::Number, "half of its 95 % interval, of samples; else 0"),
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
        let text = std::fs::read_to_string(&path).unwrap();
        let (start, end) =
            ("HEAPR_WRITE_GENERATED=1 cargo test -p heapr-export -->\n", "<!-- end of columns -->");
        let from = text.find(start).unwrap() + start.len();
        let to = text.find(end).unwrap();
        let written = format!("{}\n{}{}", &text[..from], markdown(), &text[to..]);
        if std::env::var_os("HEAPR_WRITE_GENERATED").is_some() {
            std::fs::write(&path, &written).unwrap();
            return;
        }
        assert!(text == written, "run this test with HEAPR_WRITE_GENERATED=1");
    }
}
