//! `heapr mcp` as agents use it, through the official client. Every tool is called, and a leak of
//! each kind is found by tools alone.
#![forbid(unsafe_code)]

mod client;
mod leaks;
mod refusals;
