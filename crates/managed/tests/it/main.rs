//! Tests on running programs.

mod live;
mod memory;
mod stops;
mod victims;
