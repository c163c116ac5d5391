//! Opening and making of files, in one way for all crates.
//!
//! * A path that the user names for reading must be a regular file ([`regular`], [`readable`]). A
//!   device has no end, and a pipe without a writer would block for ever.
//! * A new file is private to its user, and never made through a symbolic link. It gets its name
//!   only when it is complete ([`NewFile`]); [`make`] is for files that others read while they
//!   grow.
//! * Files that outlive a run lie in a folder that only the user can write to ([`OwnFolder`]).
#![forbid(unsafe_code)]

mod named;
mod new_file;
mod opened;
mod own_folder;

pub use named::{is_stream, make, stream};
pub use new_file::{Existing, NewFile};
pub use opened::{LIST_BYTES_MAX, open_regular, read_text, readable, regular, standard_input};
pub use own_folder::OwnFolder;
