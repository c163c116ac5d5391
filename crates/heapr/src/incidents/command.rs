//! Run of `heapr incidents`.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_incident::{Incident, Kind, Store, Summary, markdown};
use heapr_table::plain::printable;
use serde_json::{Value, json};

use super::folder::default_folder;
use super::text;
use crate::plain_text::say_json;

/// Arguments of `heapr incidents`.
#[derive(Debug, clap::Args)]
pub(crate) struct IncidentsArguments {
    /// The incident to show, by its number; without it all are listed
    number: Option<u32>,
    /// Folder of the incidents [default: heapr/incidents in $XDG_STATE_HOME (~/.local/state)]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// End with 1 if there is an incident of this kind (of the one that is shown, if it is); may be
    /// given several times
    #[arg(long, value_name = "KIND")]
    fail_on: Vec<KindArgument>,
    /// Also write all incidents as Parquet into this folder (see docs/tables.md)
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "number")]
    tables: Option<PathBuf>,
    /// Also send the incidents that are shown to this address as OTLP logs, with /v1/logs behind it
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Replace tables that are there
    #[arg(short, long, requires = "tables")]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KindArgument {
    /// A process died
    Death,
    /// A limit was near
    Warning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: schemas heapr.incidents/1 and heapr.incident/1
    Json,
    /// A page of Markdown
    Md,
}

/// Runs the command.
pub(crate) fn run(arguments: &IncidentsArguments) -> anyhow::Result<ExitCode> {
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => default_folder()?,
    };
    if arguments.folder.is_none() && !folder.exists() {
        anyhow::ensure!(
            arguments.number.is_none(),
            "no incident: nothing was watched into {} yet, `heapr watch` does it",
            folder.display()
        );
        show_list(&[], arguments.format);
        return Ok(ExitCode::SUCCESS);
    }
    let store = Store::open(&folder)?;
    let shown: Vec<Summary> = match arguments.number {
        Some(number) => vec![(number, Ok(store.read(number)?))],
        None => store.all(),
    };
    let read: Vec<&Incident> = shown.iter().filter_map(|(_, read)| read.as_ref().ok()).collect();
    if let Some(url) = &arguments.otlp {
        super::otlp_logs::send(url, &read)?;
    }
    if let Some(tables) = &arguments.tables {
        super::tables::write(tables, &folder, &read, arguments.force)?;
    }
    match (&arguments.number, shown.first()) {
        (Some(_), Some((_, Ok(incident)))) => show(incident, arguments.format),
        _ => show_list(&shown, arguments.format),
    }
    let is_failure = |kind: Kind| {
        arguments.fail_on.iter().any(|asked| match asked {
            KindArgument::Death => kind == Kind::Death,
            KindArgument::Warning => kind == Kind::Warning,
        })
    };
    let has_failed =
        shown.iter().any(|(_, read)| read.as_ref().is_ok_and(|incident| is_failure(incident.kind)));
    Ok(if has_failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn show(incident: &Incident, format: Format) {
    match format {
        Format::Text => text::incident(incident),
        Format::Json => say_json(&serde_json::to_value(incident).unwrap_or(Value::Null)),
        Format::Md => markdown(incident).lines().for_each(|line| say!("{line}")),
    }
}

fn show_list(all: &[Summary], format: Format) {
    match format {
        Format::Text => text::list(all),
        Format::Md => {
            say!("| incident | time | what |");
            say!("|---|---|---|");
            for (number, read) in all {
                let (time, what) = text::line(read);
                say!("| {number} | {time} | {} |", cell(&what));
            }
        }
        Format::Json => {
            let row = |(number, read): &Summary| match read {
                Ok(incident) => json!({
                    "number": number,
                    "kind": incident.kind.name(),
                    "time_unix_ns": incident.time_unix_ns,
                    "cause": incident.cause.kind.name(),
                    "pid": incident.process.pid,
                    "name": incident.process.name,
                    "sentence": incident.sentences.first(),
                }),
                Err(error) => json!({"number": number, "error": error.to_string()}),
            };
            let rows: Vec<Value> = all.iter().map(row).collect();
            say_json(&json!({"schema": "heapr.incidents/1", "incidents": rows}));
        }
    }
}

/// Cell of a table in Markdown: names in it come from programs, and have no meaning there.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for character in printable(text).chars() {
        if "\\`~*_[]<>|#&".contains(character) {
            cell.push('\\');
        }
        cell.push(character);
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_cell_has_no_marks() {
        assert_eq!(cell("a|b <i>\n"), "a\\|b \\<i\\>\u{fffd}");
    }
}
