//! Options that choose allocations, in the words of the command line. They serve `heapr report` and
//! related commands, and the page, whose requests use the same words.
#![forbid(unsafe_code)]

mod filter_arguments;
pub mod quantity;
mod shown_frames;
mod snapshot_choice;

pub use filter_arguments::{FilterArguments, read_suppressions};
pub use shown_frames::ShownFrames;
pub use snapshot_choice::find_snapshot;
