//! What `heapr view` serves, asked over HTTP as the page asks, against what the command line
//! prints.

mod native_snapshots;
mod running_session;
mod static_page;
mod viewer;
