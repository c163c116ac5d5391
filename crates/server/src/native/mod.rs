//! Native snapshots of traces: the requests `/api/native/…` of `docs/api.md`.

mod diff;
mod graph;
mod live_pages;
mod page_cells;
mod pages;
mod rows;
mod series;
mod statistics;
mod summary;
mod suspects;
mod treemap;

pub(crate) use live_pages::LivePages;
pub(crate) use page_cells::{Layout, Page, PageRun, pages_of};
pub(crate) use pages::{page_bytes_of, place_label};
pub(crate) use rows::NativeSnapshot;
pub use rows::snapshot_json;

use crate::error::{Error, Result};
use crate::request::{Answer, Context};

/// Answers a request by its name: the address after `/api/native/`.
pub(crate) fn answer(context: &Context<'_>, name: &str, body: &[u8]) -> Result<Answer> {
    match name {
        "summary" => summary::summary(context, body),
        "diff" => diff::diff(context, body),
        "suspects" => suspects::suspects(context, body),
        "treemap" => treemap::treemap(context, body),
        "pages" => pages::pages(context, body),
        "holders" => graph::holders(context, body),
        "leaks" => graph::leaks(context, body),
        "statistics" => statistics::statistics(context, body),
        name => Err(Error::NotFound { what: "request", name: format!("native/{name}") }),
    }
}
