//! What Chrome DevTools makes of a snapshot: the names and numbers that users know.
//!
//! The rules are those of DevTools' heap snapshot worker, one file each; sizes are 64 bits wide
//! where the worker wraps at 4 GiB. [`Heap`] holds a snapshot and computes the rest when it is
//! first asked for.

mod aggregates;
mod class_names;
mod classes;
mod comparison;
mod cons_texts;
mod display_name;
mod distances;
mod dom_states;
mod dominator_intervals;
mod duplicate_strings;
mod essential_edges;
mod filters;
mod heap;
mod interfaces;
mod likeness;
mod name_set;
mod native_contexts;
mod node_set;
mod nodes_by_class;
mod page_objects;
mod population;
mod retainer_order;
mod retainers_view;
mod script_paths;
mod shallow_sizes;
mod statistics;
mod time_samples;
mod weak_map_edges;

pub use aggregates::Aggregate;
pub use classes::{Class, Classes, ConstructorPlace};
pub use comparison::{
    ClassDifference, Comparison, ObjectDifference, compare, compare_as_devtools, compare_by_id,
    compare_by_place, compare_class,
};
pub(crate) use display_name::{DisplayNames, display_text_up_to};
pub use display_name::{display_name, display_text, edge_text};
pub use distances::{BASE_SYSTEM_DISTANCE, NO_DISTANCE};
pub use duplicate_strings::DuplicateStrings;
pub use filters::Filter;
pub use heap::{CaptureMode, Heap};
pub use interfaces::InterfaceDefinition;
pub use likeness::Likeness;
pub use native_contexts::{ContextOwner, NativeContextSizes, NativeContexts};
pub use node_set::NodeSet;
pub use population::Population;
pub use retainers_view::{BASE_UNREACHABLE_DISTANCE, RetainersView};
pub use script_paths::ScriptPaths;
pub use statistics::Statistics;
pub use time_samples::LiveSample;

pub(crate) use essential_edges::keeps_alive;
pub(crate) use interfaces::PlainObjects;
pub(crate) use nodes_by_class::NodesByClass;
pub(crate) use weak_map_edges::without_names;
