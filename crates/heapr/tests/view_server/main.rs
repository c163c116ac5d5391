//! Answers of `heapr view` over HTTP, as the page requests them, compared with the command line's
//! output.

mod native_snapshots;
mod running_session;
mod static_page;
mod viewer;
