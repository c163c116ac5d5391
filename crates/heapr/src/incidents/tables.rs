//! `heapr incidents --tables`: incidents as Parquet, a row each, beside the tables of recordings.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heapr_export::parquet::{Column, Kind, TableWriter, Value};
use heapr_incident::{HolderKind, Incident};
use sha2::{Digest as _, Sha256};

use crate::export::labels::host_name;
use crate::output::OutputFile;

/// Name of the table and its folder.
const TABLE: &str = "incidents";

const fn column(name: &'static str, kind: Kind, help: &'static str) -> Column {
    Column { name, kind, help }
}

/// Columns, as in docs/tables.md.
const COLUMNS: [Column; 22] = [
    column("host", Kind::Text, "name of the machine"),
    column("number", Kind::Number, "number in its folder"),
    column("kind", Kind::Text, "`death` or `warning`"),
    column("time", Kind::Time, "time of the death or of the trigger"),
    column("cause", Kind::Text, "kind of the cause, as in heapr.incident/1"),
    column("is_fact", Kind::Number, "1: a record tells the cause; 0: it is likely or unknown"),
    column("pid", Kind::Number, "number of the process"),
    column("service", Kind::Text, "name of the program"),
    column("executable", Kind::Text, "path of the program"),
    column("control_group", Kind::Text, "path of its control group; may be empty"),
    column("container", Kind::Text, "id of its container; may be empty"),
    column("pod", Kind::Text, "name of the pod or container's host; may be empty"),
    column("unit", Kind::Text, "systemd unit; may be empty"),
    column("limit_bytes", Kind::Number, "limit that was met; 0: none, or unknown"),
    column("rss_bytes", Kind::Number, "resident bytes at the last reading; 0: unknown"),
    column(
        "holder_kind",
        Kind::Text,
        "`function`, `class` or `group`; empty: what held the memory is unknown",
    ),
    column("holder", Kind::Text, "largest holder of memory"),
    column("holder_bytes", Kind::Number, "its bytes"),
    column("holder_bytes_plus_minus", Kind::Number, "half of the 95 % interval; 0: counted"),
    column("function", Kind::Text, "largest function of the program among the holders; may be empty"),
    column("function_bytes", Kind::Number, "its bytes"),
    column("sentence", Kind::Text, "first sentence of the report"),
];

/// Writes a file for each day into `folder/incidents/date=…`. `from`: folder of the incidents,
/// which gives the files their names.
///
/// # Errors
/// A file exists and may not be replaced, or the operating system's error.
pub(super) fn write(folder: &Path, from: &Path, all: &[&Incident], may_replace: bool) -> anyhow::Result<()> {
    let host = host_name();
    let from = std::path::absolute(from)?;
    let digest = Sha256::digest(from.as_os_str().as_encoded_bytes());
    let folder_id: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let plain: String = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut days: BTreeMap<String, Vec<&Incident>> = BTreeMap::new();
    for &incident in all {
        let time = jiff::Timestamp::from_nanosecond(i128::from(incident.time_unix_ns)).unwrap_or_default();
        days.entry(time.to_string().chars().take(10).collect()).or_default().push(incident);
    }
    for (day, incidents) in days {
        let path: PathBuf =
            folder.join(TABLE).join(format!("date={day}")).join(format!("{plain}-{folder_id}.parquet"));
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("making the folder {}", parent.display()))?;
        let file = OutputFile::create(&path, may_replace)?;
        let mut out = BufWriter::new(file.try_clone()?);
        let mut table = TableWriter::new(&mut out, &COLUMNS)?;
        for incident in incidents {
            row(&mut table, &host, incident)?;
        }
        table.finish()?;
        out.flush()?;
        drop(out);
        file.keep()?;
    }
    Ok(())
}

fn row(table: &mut TableWriter<impl std::io::Write>, host: &str, incident: &Incident) -> std::io::Result<()> {
    let text = |value: &'_ Option<String>| value.clone().unwrap_or_default();
    let number = |value: u64| Value::Number(i64::try_from(value).unwrap_or(i64::MAX));
    let process = &incident.process;
    let holder = incident.holders.first();
    let kind = holder.map_or("", |holder| match holder.kind {
        HolderKind::Function => "function",
        HolderKind::Class => "class",
        HolderKind::Group => "group",
    });
    let function = incident.holders.iter().find(|holder| holder.kind == HolderKind::Function);
    let (group, container, pod, unit) =
        (text(&process.group), text(&process.container), text(&process.host), text(&process.unit));
    table.row(&[
        Value::Text(host),
        number(incident.number.into()),
        Value::Text(incident.kind.name()),
        number(incident.time_unix_ns / 1000),
        Value::Text(incident.cause.kind.name()),
        number(u64::from(incident.cause.certainty == heapr_incident::Certainty::Fact)),
        number(process.pid.into()),
        Value::Text(&process.name),
        Value::Text(&process.executable),
        Value::Text(&group),
        Value::Text(&container),
        Value::Text(&pod),
        Value::Text(&unit),
        number(incident.cause.limit_bytes.unwrap_or(0)),
        number(process.rss_bytes.unwrap_or(0)),
        Value::Text(kind),
        Value::Text(holder.map_or("", |holder| &holder.name)),
        number(holder.map_or(0, |holder| holder.bytes)),
        number(holder.map_or(0, |holder| holder.bytes_plus_minus)),
        Value::Text(function.map_or("", |function| &function.name)),
        number(function.map_or(0, |function| function.bytes)),
        Value::Text(incident.sentences.first().map_or("", String::as_str)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_a_file_that_is_replaced_only_if_that_is_wanted() {
        const DAY_NS: u64 = 86_400_000_000_000;
        let folder = tempfile::tempdir().unwrap();
        let of = |time_unix_ns| Incident { time_unix_ns, ..Incident::default() };
        let (one, other) = (of(20_000 * DAY_NS), of(20_001 * DAY_NS));
        let write = |may_replace| write(folder.path(), Path::new("/x"), &[&one, &other], may_replace);
        write(false).unwrap();
        let days: Vec<_> = std::fs::read_dir(folder.path().join(TABLE)).unwrap().flatten().collect();
        assert_eq!(days.len(), 2);
        assert!(write(false).is_err());
        write(true).unwrap();
        let file = std::fs::read_dir(days[0].path()).unwrap().next().unwrap().unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }

    #[test]
    fn the_page_of_tables_has_each_column() {
        let page = include_str!("../../../../docs/tables.md");
        for column in COLUMNS {
            let line = format!("| `{}` | {} | {} |", column.name, column.kind.sql(), column.help);
            assert!(page.contains(&line), "docs/tables.md lacks: {line}");
        }
    }
}
