//! Answers of `heapr view` over HTTP, as the page requests them, compared with the command line's
//! output.

mod heap_dumps;
mod incidents;
mod native_snapshots;
mod running_session;
mod static_page;
mod viewer;

/// Path of the heapr under test.
const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");
