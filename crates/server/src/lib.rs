//! The local page and its HTTP API, served by `heapr view`.
//!
//! The caller brings paths and a [`Host`], which provides names of functions, folders for indexes
//! and defaults of the command line. [`Server::bind`] listens on the loopback interface, and
//! [`Server::run`] answers until the process ends.
//!
//! ```text
//!  browser ── HTTP ──> access (host, origin, token) ──> page (embedded)
//!                            └─> api ── a thread of the pool ──> files ── explorer (traces), heap (snapshots)
//! ```
//! Invariants: only this crate serves HTTP. Without the token only the page itself is served, which
//! holds no data. A file that lies or changes causes an error and leaves the server running. Texts
//! from files are data in JSON, never markup.
#![forbid(unsafe_code)]

mod access;
mod api;
mod cancel;
mod choices;
mod command_line;
mod entry;
mod error;
mod files;
mod follower;
mod host;
mod ids;
mod json;
mod native;
mod native_column;
mod page;
mod page_rows;
mod profile_server;
mod promise;
mod request;
mod request_fields;
mod resident_file;
mod result_cache;
mod server;
mod session;
mod snapshot;
mod snapshot_file;
mod static_page;
mod taken;
mod token;
mod trace_file;
mod treemap_columns;
mod uploads;

pub use api::answer_json;
pub use error::{Error, Result};
pub use files::{Files, Limits, Source};
pub use host::{
    GraphHolder, GraphHolders, GraphKind, GraphLeak, GraphLeaks, GraphQuestion, HeapError, Host, IncidentTold,
};
pub use native::snapshot_json;
pub use page::has_page;
pub use profile_server::{MakeMetrics, MakeProfile, ProfileServer};
pub use server::{Server, ServerOptions};
pub use session::status_json;
pub use static_page::{StaticChoices, write_static};
pub use token::Token;
