//! Tests on running programs.

mod bent;
mod dotnet;
mod java;
mod live;
mod made_memory;
mod memory;
mod native;
mod ruby;
mod ruby_stops;
mod slots;
mod stops;
mod victims;
