//! Tests of the recorder with a simulated producer: threads and processes that write by the wire
//! protocol, in this process.
//!
//! The producer joins the session as an agent does, through the descriptor that the environment
//! names. It writes each record when the test says so, so every interleaving of threads and
//! recorder can be produced.
#![forbid(unsafe_code)]

mod hostile_pages;
mod mappings;
mod native_snapshots;
mod order;
mod own_heaps;
mod processes;
mod producer;
mod reallocations;
mod recording;
mod spare_time;
mod throughput;
