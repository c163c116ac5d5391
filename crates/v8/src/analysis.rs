//! Analyses of snapshots: growing owners, holders of an object, wasted memory.
//!
//! Each analysis works on a [`HeapView`], which [`crate::devtools::Heap`] implements: a snapshot
//! with its dominators and distances.

mod answers;
mod classes;
mod closures;
mod collection;
mod collection_classes;
mod collection_owners;
mod collections;
mod comparison;
mod detached;
mod fanout;
mod heap_view;
mod item_collections;
mod large_owners;
mod matching;
mod modules;
mod naming;
mod native_holders;
mod packages;
mod path;
mod pending;
mod retaining_paths;
mod scripts;
mod shapes;
mod storage;
mod stored_answers;
mod strings;
mod suspects;
mod table_collections;
mod tables;
mod unreachable;
mod unused_variables;

pub use answers::{owner_table, path_json, suspect_table};
pub(crate) use closures::contexts_of_variables;
pub use closures::{ContextOfVariables, Variable};
pub use collection::{Collection, Slots};
pub use collection_owners::{CollectionOwner, collection_owners};
pub use collections::{CollectionOrder, collections};
pub use comparison::{
    ClassDifference, Comparison, ObjectDifference, compare, compare_as_devtools, compare_by_graph,
    compare_by_id, compare_class,
};
pub use detached::{Detached, detached};
pub use fanout::{Fanout, fanout};
pub use heap_view::HeapView;
pub use large_owners::{LargeOwner, large_owners};
pub use matching::{MatchedBy, Matching, Numbering};
pub use naming::{Called, Naming};
pub use native_holders::{NativeHolder, native_holders};
pub use packages::{CodeShare, CodeUnit, code_shares};
pub use path::PathStep;
pub use pending::{Pending, Waiting, pending};
pub(crate) use retaining_paths::path_from_root;
pub use retaining_paths::{RetainingPaths, RootSteps, retaining_paths};
pub use scripts::{Place, is_of_the_runtime};
pub use shapes::{Shape, shapes};
pub use stored_answers::{NativeAnswer, StoredAnswers};
pub use strings::{DuplicatedString, duplicated_strings};
pub use suspects::{Collected, Confidence, Doubt, Suspect, Suspects, suspects};
pub use tables::{Listing, collection_owner_table, collection_table, unused_variable_table};
pub use unreachable::{Unreachable, unreachable};
pub use unused_variables::{TextOf, UnusedVariable, UnusedVariables, unused_variables};

#[cfg(test)]
mod tests;
