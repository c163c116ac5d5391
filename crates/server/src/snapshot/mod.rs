//! Snapshots of V8: what DevTools' Memory panel asks.

mod lists;
mod rows;
mod snapshot_file;

use crate::api::{Answer, Context};
use crate::error::{Error, Result};

pub(crate) use snapshot_file::SnapshotFile;

/// Answers a request by its name, which is the address after `/api/snapshot/`.
pub(crate) fn answer(context: &Context<'_>, name: &str, body: &[u8]) -> Result<Answer> {
    match name {
        "summary" => lists::summary(context, body),
        "objects" => lists::objects(context, body),
        "containment" => lists::containment(context, body),
        "retainers" => lists::retainers(context, body),
        "dominators" => lists::dominators(context, body),
        "statistics" => lists::statistics(context, body),
        name => Err(Error::NotFound { what: "request", name: format!("snapshot/{name}") }),
    }
}
