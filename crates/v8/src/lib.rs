//! V8 heap snapshots: the file format, the meanings that Chrome DevTools gives to it, and capture.
#![forbid(unsafe_code)]

pub mod analysis;
