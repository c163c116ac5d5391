//! Lists that DevTools does not have: duplicate strings, collections, shapes, fan-out, detached
//! nodes, unreachable objects, variables of closures.

use heapr_v8::analysis::Listing;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::request::{Answer, Context, json as answer_json, read};
use crate::snapshot_file::NAME_CHARS_MAX;

/// Largest number of rows; a name is looked up for each.
const TOP_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListingRequest {
    file: usize,
    #[serde(default = "crate::request::number::<100>")]
    top: usize,
}

/// Answer of a list.
#[derive(Serialize)]
struct ListingJson<R> {
    schema: String,
    command: Option<String>,
    rows: R,
    /// Whether the list was cut: further rows exist.
    is_cut: bool,
}

/// Answers a list by the name of its command.
pub(super) fn listing(context: &Context<'_>, name: &str, listing: Listing, body: &[u8]) -> Result<Answer> {
    let request: ListingRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let heap = file.heap(context.cancel)?;
    let top = request.top.min(TOP_MAX);
    // One row more shows whether there are further ones.
    let mut table = listing.table(&heap, top + 1);
    context.cancel.check()?;
    let is_cut = table.truncate(top);
    table.cut_texts(NAME_CHARS_MAX);
    answer_json(&ListingJson {
        schema: format!("heapr.view.snapshot.{name}/1"),
        command: file.command(name, &[]),
        rows: table.rows_json(),
        is_cut,
    })
}
