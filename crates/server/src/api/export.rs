//! Files for other programs.

use serde::Deserialize;

use super::ids::sort_key;
use super::report::{group_by, option_of};
use super::{Answer, Context, read};
use crate::error::{Error, Result};
use crate::filter_words::FilterWords;
use crate::host::ExportRequest;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportFields {
    file: usize,
    #[serde(default)]
    filter: FilterWords,
    to: String,
    #[serde(default = "super::report::so")]
    value: String,
    #[serde(default = "stacks")]
    by: String,
}

fn stacks() -> String {
    "stacks".to_owned()
}

pub(super) fn export(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: ExportFields = read(body)?;
    let file = context.files.trace(request.file)?;
    let ending = match request.to.as_str() {
        "collapsed" => "txt",
        "pprof" => "pb.gz",
        "speedscope" => "speedscope.json",
        "flamegraph" => "svg",
        "csv" => "csv",
        "json" => "json",
        to => {
            return Err(Error::bad(
                "to",
                format!("{to:?} is none of collapsed, pprof, speedscope, flamegraph, csv, json"),
            ));
        }
    };
    // Only what has been understood reaches a command line.
    let value = sort_key(&request.value)?.key();
    let by = option_of(group_by(&request.by)?).trim_start_matches('-');
    file.filter(&*context.files.host, &request.filter)?;
    let words = request.filter.words();
    let exported = ExportRequest { path: &file.path, to: &request.to, value, by, filter_words: &words };
    let bytes =
        context.files.host.export(&exported).map_err(|message| Error::BadRequest { field: None, message })?;
    let stem =
        file.path.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(Answer::File { name: format!("{stem}.{ending}"), bytes })
}
