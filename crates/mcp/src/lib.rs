//! heapr for agents: a Model Context Protocol server over standard input and output.
//!
//! ```text
//!  client ── lines ── message ─> server, lifecycle ─> tools (a row each) ─> commands (heapr again)
//!                                       └─> file_ids: t1, s2 … for what was recorded or opened
//! ```
//! Invariants: a tool runs a command of the command line, so both answer alike, and a failing
//! question leaves the server running. Tools that start a program or change a process are refused
//! unless they were allowed. Answers are short and bounded. Standard output carries the protocol
//! only.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod error;
mod file_ids;
mod lifecycle;
mod lines;
mod message;
mod processes;
mod recordings;
mod running_calls;
mod server;
mod source_lines;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

pub use error::{Error, Result};

/// Options of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the command line's program.
    pub program: PathBuf,
    /// Version that the server reports.
    pub version: String,
    /// Whether tools may start programs and attach to processes.
    pub may_attach: bool,
    /// Folder of recordings and snapshots.
    pub folder: PathBuf,
}

/// Serves on standard input and output until the client disconnects.
///
/// # Errors
/// Fails if the system refuses threads or descriptors, or if the client does not speak the
/// protocol.
pub fn serve(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    let outcome = runtime.block_on(async {
        let server = Arc::new(server::Server::new(options));
        let outcome = lines::serve(&server).await;
        server.recordings().end_all().await;
        outcome
    });
    // A pending read of standard input is not waited for.
    runtime.shutdown_background();
    outcome
}
