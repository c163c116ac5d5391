//! Snapshots of the heaps of managed languages.

mod core;
mod dotnet_take;
pub(crate) mod dump_file;
mod every;
mod heap_facts;
mod java_take;
mod recorded_stacks;
mod scarce_memory;
mod stopping_take;
mod take;

pub(super) use core::{CoreOutput, take_of_core};
pub(super) use every::{Limits, every};
pub(super) use stopping_take::{StoppingOptions, of_stopping};
pub(crate) use take::heap_with_stacks;
pub(super) use take::{HeapChoice, is_chosen, take};
