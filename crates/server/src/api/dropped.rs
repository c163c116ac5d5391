//! Files that are dropped on the page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use crate::error::{Error, Result};
use crate::request::{Answer, Context, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DropRequest {
    /// Number of the upload from an earlier answer; `None`: the first piece.
    #[serde(default)]
    upload: Option<u64>,
    #[serde(default)]
    name: String,
    /// Content of the piece in base64.
    #[serde(default)]
    data: String,
    #[serde(default)]
    is_last: bool,
}

/// Receives a piece of a file; opens the file after the last one.
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
