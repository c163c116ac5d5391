//! How files are opened to be read, and how they are made: the one way for all crates.
//!
//! * What somebody names to be read is a regular file: a device has no end, and a pipe without a
//!   writer is waited for for ever ([`regular`], [`readable`]).
//! * What is made is for its user alone, is made new and never through a symbolic link, and has its
//!   name only when it is whole ([`NewFile`]; [`make`] where others read it as it grows).
//! * What is kept between two runs lies in a folder that nobody else writes ([`OwnFolder`]).
#![forbid(unsafe_code)]

mod named;
mod new_file;
mod opened;
mod own_folder;

pub use named::{is_stream, make, stream};
pub use new_file::{Existing, NewFile};
pub use opened::{LIST_BYTES_MAX, open_regular, read_text, readable, regular, standard_input};
pub use own_folder::OwnFolder;
