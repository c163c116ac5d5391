//! Requests to other servers: plain HTTP by heapr itself, TLS and object stores by the machine's
//! own `curl`.

mod answer;
mod curl;
mod object_store;
mod plain;
mod url;

pub(crate) use answer::Outcome;
pub(crate) use object_store::ObjectStore;
pub(crate) use url::Url;

use std::path::Path;

/// Sends a body. `authority`: file of trusted certificates for TLS, in place of the machine's own.
pub(crate) fn post(
    url: &Url,
    headers: &[(String, String)],
    body: &[u8],
    authority: Option<&Path>,
) -> Outcome {
    let answer = match url.is_secure() {
        true => curl::Request::post(&url.to_string(), headers, body, authority).run(),
        false => plain::post(url, headers, body),
    };
    Outcome::of(&url.to_string(), answer)
}
