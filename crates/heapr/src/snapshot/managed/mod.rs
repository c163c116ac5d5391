//! Snapshots of the heaps of managed languages.

mod core;
mod every;
mod heap_facts;
mod take;

pub(super) use core::{CoreOutput, take_of_core};
pub(super) use every::{Limits, every};
pub(super) use take::{HeapChoice, is_chosen, take};
