//! What the options that choose allocations say, in the words of the command line: for `heapr
//! report` and its kin, and for the page, whose requests are written with the same words.
#![forbid(unsafe_code)]

mod filter_arguments;
pub mod quantity;
mod shown_frames;
mod snapshot_choice;

pub use filter_arguments::{FilterArguments, read_suppressions};
pub use shown_frames::ShownFrames;
pub use snapshot_choice::find_snapshot;
