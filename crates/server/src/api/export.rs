//! Exports for other programs.

use heapr_export::{FORMATS, Format, Profile, Samples, Subject, csv, json};
use heapr_filters::FilterArguments;
use heapr_query::{Action, GroupBy, Query};
use serde::Deserialize;

use crate::choices::SortKey;
use crate::error::{Error, Result};
use crate::request::{Answer, Context, read};
use crate::trace_file::ReadFilter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportFields {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    to: String,
    /// Sort key of a table, or value of another format.
    #[serde(default, alias = "sort")]
    value: SortKey,
    #[serde(default)]
    by: GroupBy,
}

pub(super) fn export(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: ExportFields = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let (SortKey(value), by) = (request.value, request.by);
    let ReadFilter { filter, cull } = file.filter(&request.filter)?;
    let format = Format::of_name(&request.to);
    let language_frames = Some(file.explorer.language_frames());
    let query = match (request.to.as_str(), format) {
        (_, Some(format)) => Query { language_frames, ..format.query(filter, cull, value) },
        ("csv" | "json", _) => {
            let actions = vec![Action::Ranking { by, sort: value }];
            let tells_lines = request.to == "json";
            Query { filter, cull, actions, tells_lines, language_frames, ..Query::default() }
        }
        (to, _) => {
            let names = FORMATS.map(|format| format.name).join(", ");
            return Err(Error::bad("to", format!("{to:?} is none of {names}, csv, json")));
        }
    };
    let trace = file.trace();
    let mut names = context.files.host.names(trace);
    let report = heapr_query::run(trace, &query, &mut *names)?;
    let mut bytes = Vec::new();
    let written = match format {
        Some(format) => {
            let samples = Samples::of_report(&report, &mut |_, _| {});
            let title = format!("{} ({})", file.path.display(), value.key());
            let profile =
                Profile { tells_intervals: true, ..Profile::new(&samples, value, &title) }.of_trace(trace);
            (format.write)(&mut bytes, &profile)
        }
        None => {
            let subject = Subject::new(&file.path, trace, &report.damage, request.filter.counted());
            let write = if request.to == "csv" { csv::write_csv } else { json::write_json };
            write(&mut bytes, &subject, &report)
        }
    };
    written.map_err(|error| Error::BadRequest { field: None, message: error.to_string() })?;
    let stem =
        file.path.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let ending = format.map_or(request.to.as_str(), |format| format.ending);
    Ok(Answer::File { name: format!("{stem}.{ending}"), bytes })
}
