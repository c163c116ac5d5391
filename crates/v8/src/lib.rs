//! V8 heap snapshots: the format, what Chrome DevTools makes of it, and how to take one from a running process.
#![forbid(unsafe_code)]

pub mod capture;
