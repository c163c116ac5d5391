//! Metadata of Go programs, which stripping leaves in place.

mod names;
mod program;
mod table;

pub(crate) use names::{GoNames, GoPlace};
pub use program::{GoPlaces, GoProgram, is_go_program};

/// Sections with the function table; the second is that of position-independent programs.
const TABLE_SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
