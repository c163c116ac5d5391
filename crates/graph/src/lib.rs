//! The heap graph: objects and references in flat arrays, and what follows from their shape alone.
#![forbid(unsafe_code)]
