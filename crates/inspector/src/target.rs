//! Targets behind a port: one program, or the pages of a browser.

use std::net::SocketAddr;

use serde::Deserialize;

use super::error::{Error, Result};
use super::http;
use super::network;
use super::process::Process;

/// Target that can be inspected.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Target {
    /// Id that the inspector gave it.
    #[serde(default)]
    pub id: String,
    /// Kind: `node`, `page`, `worker` …
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Title for display.
    #[serde(default)]
    pub title: String,
    /// URL of the script or page.
    #[serde(default)]
    pub url: String,
    #[serde(rename = "webSocketDebuggerUrl", default)]
    pub(crate) socket_url: String,
}

impl Target {
    /// Formats the target as `id ("title", url)`; many targets have no title.
    fn in_words(&self) -> String {
        let title =
            if self.title.is_empty() { String::new() } else { format!("{:?}, ", shortened(&self.title)) };
        format!("{} ({title}{})", self.id, shortened(&self.url))
    }
}

/// Returns all targets.
pub(crate) fn targets(process: &Process, address: SocketAddr) -> Result<Vec<Target>> {
    let body = http::get(network::connect(process, address)?, address, "/json/list")?;
    serde_json::from_slice(&body).map_err(|error| Error::NotAnInspector { address, what: error.to_string() })
}

/// Returns the requested target; else the only one, or the only page.
pub(crate) fn choose(process: &Process, mut targets: Vec<Target>, wanted: Option<&str>) -> Result<Target> {
    targets.retain(|target| !target.socket_url.is_empty());
    if let Some(wanted) = wanted {
        if let Some(at) = targets.iter().position(|target| target.id == wanted) {
            return Ok(targets.swap_remove(at));
        }
        targets.retain(|target| target.url.contains(wanted) || target.title.contains(wanted));
    } else if targets.len() > 1 {
        targets.retain(|target| target.kind == "page" || target.kind == "node");
    }
    match targets.len() {
        0 => Err(Error::NoTarget { pid: process.pid, wanted: wanted.unwrap_or("page").to_owned() }),
        1 => Ok(targets.swap_remove(0)),
        _ => Err(Error::ChooseTarget {
            pid: process.pid,
            targets: targets.iter().map(Target::in_words).collect(),
        }),
    }
}

/// Shortens a URL: the URL of a page may contain the page.
fn shortened(url: &str) -> String {
    const CHARACTERS: usize = 80;
    if url.chars().count() <= CHARACTERS {
        url.to_owned()
    } else {
        url.chars().take(CHARACTERS).chain(['…']).collect()
    }
}
