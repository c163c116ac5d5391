//! The request for the present view as a page that needs no server.

use heapr_filters::FilterArguments;
use serde::Deserialize;

use super::{Seen, StaticChoices, write_seen};
use crate::error::{Error, Result};
use crate::request::{Answer, Context, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageRequest {
    file: usize,
    #[serde(default)]
    filter: serde_json::Value,
    /// Part of the address behind `#`.
    #[serde(default)]
    address: String,
    #[serde(default)]
    has_sources: bool,
    #[serde(default)]
    is_anonymous: bool,
}

/// Builds the present view as one file that needs no server.
pub(crate) fn page(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: PageRequest = read(body)?;
    let name = context.files.entry(request.file)?.path();
    let name =
        name.file_name().map_or_else(|| "heapr".to_owned(), |name| name.to_string_lossy().into_owned());
    // An invalid filter is refused here instead of in the middle of the page.
    if !request.filter.is_null() {
        let words: FilterArguments = serde_json::from_value(request.filter.clone())
            .map_err(|error| Error::bad("filter", error.to_string()))?;
        context.files.trace(request.file)?.shown(&words).filter(&words)?;
    }
    let seen = Seen { file: request.file, filter: request.filter, address: request.address };
    let wanted = StaticChoices {
        has_sources: request.has_sources && !request.is_anonymous,
        is_anonymous: request.is_anonymous,
        ..StaticChoices::default()
    };
    let bytes = write_seen(context.files, &wanted, seen, &mut |_| {}, context.cancel)?;
    Ok(Answer::File { name: format!("{name}.html"), bytes })
}
