//! heapr for agents: a Model Context Protocol server over standard input and output.
//!
//! ```text
//!  client ── JSON-RPC ──> server ──> tools (one row each) ──> commands: heapr again, a process for each question
//!                                        └─> file_ids: t1, s2 … for what was recorded or opened
//! ```
//! Invariants: a tool asks what a command of the command line asks, by that command, so both
//! answer alike, and a question that fails does not take the server with it; what changes a process
//! or starts one is refused unless it was allowed; answers are short and bounded; standard output
//! holds the protocol alone.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod error;
mod file_ids;
mod processes;
mod recordings;
mod server;
mod source_lines;
mod tools;

use std::path::PathBuf;

use rmcp::ServiceExt as _;

pub use error::{Error, Result};

/// How the server runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The command line's program.
    pub program: PathBuf,
    /// What it calls itself.
    pub version: String,
    /// Programs may be started and processes attached to.
    pub may_attach: bool,
    /// Where recordings and snapshots are written.
    pub folder: PathBuf,
}

/// Serves on standard input and output until the client goes.
///
/// # Errors
/// No threads or descriptors for it, or the client speaks something else.
pub fn serve(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    let outcome = runtime.block_on(async {
        let server = server::Server::new(options);
        let recordings = server.recordings();
        let running = server.serve(rmcp::transport::stdio()).await;
        let running = running.map_err(|error| Error::Protocol(error.to_string()))?;
        let ended = running.waiting().await;
        recordings.end_all().await;
        ended.map(drop).map_err(|error| Error::Protocol(error.to_string()))
    });
    // A read of standard input that never ends is not waited for.
    runtime.shutdown_background();
    outcome
}
