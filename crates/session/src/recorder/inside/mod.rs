//! Allocators inside of programs and libraries: found by their symbols, hooked where an agent asks
//! for it or an attach comes.

mod finder;
mod look_cache;
mod watch;

pub(crate) use finder::{Finder, WantedFile, functions_of};
pub use finder::{Inside, InsideModule, look_inside};
pub(crate) use watch::{Looked, Watch};
