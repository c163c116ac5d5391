//! What Linux says of processes and of itself in `/proc`, as values.
//!
//! It reads and parses; it decides nothing. What is read is untrusted: a line that is none is passed over.
#![forbid(unsafe_code)]

mod first_thread;
pub mod mappings;

pub use first_thread::{is_alive, telling_thread};
pub use mappings::Mapping;
