//! Tests on running programs.

mod bent;
mod dotnet;
mod java;
mod live;
mod lying_memory;
mod made_memory;
mod memory;
mod native;
mod ruby;
mod ruby_stops;
mod slots;
mod stops;
mod victims;
