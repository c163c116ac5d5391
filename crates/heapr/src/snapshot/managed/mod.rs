//! Snapshots of the heaps of managed languages.

mod core;
pub(crate) mod dump_file;
mod every;
mod heap_facts;
mod java_take;
mod recorded_stacks;
mod scarce_memory;
mod take;

pub(super) use core::{CoreOutput, take_of_core};
pub(super) use every::{Limits, every};
pub(super) use java_take::{JavaTakeOptions, take_java};
pub(crate) use take::heap_with_stacks;
pub(super) use take::{HeapChoice, is_chosen, take};
