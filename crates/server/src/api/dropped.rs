//! A file that is dropped on the page, and the page as a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heapr_filters::FilterArguments;
use serde::Deserialize;
use serde_json::json;

use crate::error::{Error, Result};
use crate::request::{Answer, Context, read};
use crate::static_page::{Seen, StaticLimits, write_seen};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DropRequest {
    /// Of an earlier answer; `None`: the first piece.
    #[serde(default)]
    upload: Option<u64>,
    #[serde(default)]
    name: String,
    /// Base64.
    #[serde(default)]
    data: String,
    #[serde(default)]
    is_last: bool,
}

/// A piece of a file; after the last one it is open.
pub(super) fn drop(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: DropRequest = read(body)?;
    let files = context.files;
    let id = match request.upload {
        Some(id) => id,
        None => {
            let folder = files.host.drop_folder();
            let folder = folder.ok_or_else(|| Error::bad("name", "no files are taken here".to_owned()))?;
            files.uploads.begin(&folder, &request.name)?
        }
    };
    let piece =
        STANDARD.decode(&request.data).map_err(|_| Error::bad("data", "it is no base64".to_owned()))?;
    files.uploads.add(id, &piece)?;
    let file = if request.is_last { Some(files.add(&files.uploads.end(id)?)) } else { None };
    crate::request::json(&json!({"schema": "heapr.view.drop/1", "upload": id, "file": file}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageRequest {
    file: usize,
    #[serde(default)]
    filter: serde_json::Value,
    /// What stands behind `#` in the address.
    #[serde(default)]
    address: String,
}

/// The page that is seen, as one file that needs no server.
pub(super) fn page(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: PageRequest = read(body)?;
    let name = context.files.entry(request.file)?.path();
    let name =
        name.file_name().map_or_else(|| "heapr".to_owned(), |name| name.to_string_lossy().into_owned());
    // It is refused here, and not in the middle of the page.
    if !request.filter.is_null() {
        let words: FilterArguments = serde_json::from_value(request.filter.clone())
            .map_err(|error| Error::bad("filter", error.to_string()))?;
        context.files.trace(request.file)?.filter(&words)?;
    }
    let seen = Seen { file: request.file, filter: request.filter, address: request.address };
    let bytes = write_seen(context.files, StaticLimits::default(), seen, &mut |_| {}, context.cancel)?;
    Ok(Answer::File { name: format!("{name}.html"), bytes })
}
