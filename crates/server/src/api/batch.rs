//! Several requests in one, for the panels of a page.

use serde::Deserialize;
use serde_json::Value;

use super::answer;
use crate::error::{Error, Result};
use crate::request::{Answer, Context, read};

/// Largest number of requests in a batch.
const REQUESTS_MAX: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneRequest {
    path: String,
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchRequest {
    requests: Vec<OneRequest>,
}

/// Answers each request on its own thread; those that need the same pass share it.
pub(super) fn batch(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let BatchRequest { requests } = read(body)?;
    if requests.len() > REQUESTS_MAX {
        return Err(Error::bad("requests", format!("{} requests: at most {REQUESTS_MAX}", requests.len())));
    }
    let one = |request: &OneRequest| -> (u16, Vec<u8>) {
        let outcome = match request.path.as_str() {
            // Batches, files and requests that change state are refused in a batch.
            "panels" | "export" | "reopen" => {
                Err(Error::bad("requests", format!("{} goes alone", request.path)))
            }
            path if path.starts_with("session/") => Err(Error::bad("requests", format!("{path} goes alone"))),
            path => answer(context.files, path, request.body.to_string().as_bytes(), context.cancel),
        };
        match outcome {
            Ok(Answer::Json(bytes) | Answer::File { bytes, .. }) => (200, bytes),
            Err(error) => (error.status(), error.body()),
        }
    };
    let answers: Vec<(u16, Vec<u8>)> = std::thread::scope(|scope| {
        let one = &one;
        let asked: Vec<_> = requests.iter().map(|request| scope.spawn(move || one(request))).collect();
        let failed = || Error::Internal("the query has failed".to_owned());
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap_or_else(|_| (failed().status(), failed().body())))
            .collect()
    });
    context.cancel.check()?;
    let mut bytes = b"{\"schema\":\"heapr.view.panels/1\",\"answers\":[".to_vec();
    for (number, (status, answer)) in answers.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        bytes.extend(format!("{comma}{{\"status\":{status},\"answer\":").into_bytes());
        bytes.extend(answer);
        bytes.push(b'}');
    }
    bytes.extend(b"]}");
    Ok(Answer::Json(bytes))
}
