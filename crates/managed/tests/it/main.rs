//! Tests on running programs.

mod java;
mod live;
mod memory;
mod stops;
mod victims;
