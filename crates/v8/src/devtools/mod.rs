//! Chrome DevTools' view of a snapshot: the names and numbers that users know.
//!
//! Each file holds one rule of DevTools' heap snapshot worker. Sizes are 64 bits wide where the
//! worker wraps at 4 GiB. [`Heap`] holds a snapshot and computes results on first use.

mod absent_names;
mod aggregates;
mod class_names;
mod classes;
mod computed_columns;
mod cons_texts;
mod display_name;
mod distances;
mod dom_states;
mod duplicate_strings;
mod essential_edges;
mod filters;
mod heap;
mod heap_objects;
mod interfaces;
mod name_set;
mod native_contexts;
mod nodes_by_class;
mod page_objects;
mod population;
mod retainer_order;
mod retainers_view;
mod shallow_sizes;
mod statistics;
mod subtrees;
mod weak_map_edges;

pub use aggregates::Aggregate;
pub use classes::Classes;
pub(crate) use display_name::edge_text;
pub(crate) use display_name::{DisplayNames, display_text_up_to};
pub use display_name::{display_name, display_text};
pub use distances::BASE_SYSTEM_DISTANCE;
pub use duplicate_strings::DuplicateStrings;
pub use filters::Filter;
pub use heap::Heap;
pub use interfaces::InterfaceDefinition;
pub use native_contexts::{ContextOwner, NativeContextSizes, NativeContexts};
pub use population::Population;
pub use retainers_view::RetainersView;
pub use shallow_sizes::MovedBytes;
pub use statistics::Statistics;

pub use crate::node_set::NodeSet;
pub use crate::objects::{CaptureMode, Class, ConstructorPlace, ScriptPaths};

pub(crate) use computed_columns::ComputedColumns;
pub(crate) use essential_edges::keeps_alive;
pub(crate) use interfaces::PlainObjects;
pub(crate) use nodes_by_class::NodesByClass;
pub(crate) use subtrees::SubtreeCounts;
pub(crate) use weak_map_edges::without_names;
