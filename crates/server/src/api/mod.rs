//! The requests of `docs/api.md`, by name and JSON body, without HTTP.

mod batch;
mod diff;
mod diff_flame;
mod diff_functions;
mod dropped;
mod examples;
mod export;
mod files;
mod findings;
mod flame;
mod flame_json;
mod frame;
mod functions;
mod leaks;
mod own_functions;
mod panels;
mod place;
mod place_moments;
mod report;
mod resident;
mod resident_bands;
mod session;
mod source_lines;
mod spans;
mod stack;
mod timeline;
mod timeline_intervals;
mod timeline_request;
mod trace_facts;
mod where_it_is;

use crate::request::{Answer, Context};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::Files;

/// Answers a request by its name: the address after `/api/`.
pub(crate) fn answer(files: &Files, name: &str, body: &[u8], cancel: &Cancel) -> Result<Answer> {
    cancel.check()?;
    let context = Context { files, cancel };
    match name {
        "files" => files::files(&context),
        "reopen" => files::reopen(&context, body),
        "findings" => findings::findings(&context, body),
        "timeline" => timeline::timeline(&context, body),
        "report" => report::report(&context, body),
        "where" => where_it_is::where_it_is(&context, body),
        "resident" => resident::resident(&context, body),
        "leaks" => leaks::leaks(&context, body),
        "spans" => spans::spans(&context, body),
        "place" => place::place(&context, body),
        "stack" => stack::stack(&context, body),
        "flame" => flame::flame(&context, body),
        "functions" => functions::functions(&context, body),
        "own-functions" => own_functions::own_functions(&context, body),
        "frame" => frame::frame(&context, body),
        "panels" => batch::batch(&context, body),
        "histograms" => panels::histograms(&context, body),
        "types" => panels::types(&context, body),
        "diff" => diff::diff(&context, body),
        "diff-functions" => diff_functions::diff_functions(&context, body),
        "examples" => examples::examples(&context, body),
        "diff-flame" => diff_flame::diff_flame(&context, body),
        "drop" => dropped::drop(&context, body),
        "export" => export::export(&context, body),
        name => match name.split_once('/') {
            Some(("snapshot", name)) => crate::snapshot::answer(&context, name, body),
            Some(("native", name)) => crate::native::answer(&context, name, body),
            Some(("session", name)) => session::answer(&context, name, body),
            _ => Err(Error::NotFound { what: "request", name: name.to_owned() }),
        },
    }
}

/// Answers a request outside of a server, as for a page that stands alone.
///
/// # Errors
/// Errors of the request.
pub fn answer_json(files: &Files, name: &str, body: &[u8]) -> Result<Vec<u8>> {
    match answer(files, name, body, &Cancel::default())? {
        Answer::Json(bytes) | Answer::File { bytes, .. } => Ok(bytes),
    }
}
