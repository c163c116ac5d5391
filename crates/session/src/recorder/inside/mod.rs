//! Allocators embedded in programs and libraries. They are found by symbols, and hooked when an
//! agent requests it or at an attach.

mod finder;
mod look_cache;
mod watch;

pub(crate) use finder::{Finder, WantedFile, functions_of};
pub use finder::{Inside, InsideModule, look_inside};
pub(crate) use watch::{Looked, Watch};
