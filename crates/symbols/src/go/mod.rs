//! What programs of Go carry with them, stripped or not.

mod names;
mod program;
mod table;

pub(crate) use names::{GoNames, GoPlace};
pub use program::{GoPlaces, GoProgram};

/// Where the table of functions is; the second of programs that can lie anywhere.
const TABLE_SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
