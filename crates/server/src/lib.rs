//! The local page's HTTP API.
#![forbid(unsafe_code)]
