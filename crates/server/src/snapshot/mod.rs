//! Snapshots of V8: the requests of a panel like DevTools' Memory panel. An index file, if present,
//! answers them.

mod comparison;
mod first_objects;
mod listings;
mod lists;
mod object;
mod rows;
mod search;
mod series;
mod summary;
mod suspects;
mod treemap;

use heapr_v8::analysis::Listing;

use crate::error::{Error, Result};
use crate::request::{Answer, Context};

/// Answers a request by its name: the address after `/api/snapshot/`.
pub(crate) fn answer(context: &Context<'_>, name: &str, body: &[u8]) -> Result<Answer> {
    match name {
        "summary" => summary::summary(context, body),
        "statistics" => summary::statistics(context, body),
        "objects" => lists::objects(context, body),
        "containment" => lists::containment(context, body),
        "retainers" => lists::retainers(context, body),
        "dominators" => lists::dominators(context, body),
        "object" => object::object(context, body),
        "paths" => object::paths(context, body),
        "search" => search::search(context, body),
        "treemap" => treemap::treemap(context, body),
        "series" => series::series(context, body),
        "suspects" => suspects::suspects(context, body),
        "diff" => comparison::diff(context, body),
        "diff-objects" => comparison::diff_objects(context, body),
        name => match Listing::named(name) {
            Some(listing) => listings::listing(context, name, listing, body),
            None => Err(Error::NotFound { what: "request", name: format!("snapshot/{name}") }),
        },
    }
}
