//! The `.heapr` file: writer and reader. Bytes in, values out.
//!
//! [`TraceWriter`] receives definitions (processes, threads, modules, stack nodes) and [`Event`]s
//! in time order and writes them as compressed chunks. [`Trace`] opens such a file, complete or
//! not, and returns its contents. The format is described in `docs/format.md`.
//!
//! The crate knows nothing of how events are captured, replayed or shown. It trusts no input: each
//! length is checked before memory is allocated for it. Damage is skipped and reported, never
//! guessed over.
#![forbid(unsafe_code)]

mod amounts;
mod blocks;
mod bytes;
mod called_function;
mod chunk;
mod course;
mod course_rests;
mod equal_blocks;
mod error;
mod estimate;
mod estimate_members;
mod events;
mod graph_reader;
mod graph_slices;
mod graph_text_chunks;
mod graph_texts;
mod heap_graph;
mod language;
mod memory_part;
mod memory_reading;
mod model;
mod node_times;
mod payload;
mod process_memory;
mod process_name;
mod reader;
mod sampling;
mod snapshot;
mod snapshot_reader;
mod source;
mod stacks;
mod summary;
mod symbols;
mod tables;
mod totals;
mod untold;
mod variance_chunks;
mod window;
mod writer;

pub use amounts::{Amounts, Variances};
pub use called_function::CalledFunction;
pub use chunk::{ChunkInfo, ChunkKind, FORMAT_VERSION, SAMPLED_FORMAT_VERSION};
pub use course::{Course, CourseMoment, CourseRest, CourseRow, LiveVariances};
pub use error::{Damage, Error, Result};
pub use estimate::{BlockEstimate, Estimate, half_interval};
pub use estimate_members::serialize_members;
pub use graph_texts::GraphTexts;
pub use heap_graph::{EdgeGrade, GraphFacts, HeapGraph, RootArea, RootClass, RootEdge, SlicedBlock};
pub use language::{Language, LanguageFrames, LanguageFunction, LanguagePlace};
pub use memory_part::{MemoryPart, PartKind};
pub use memory_reading::{MemoryReading, ResidentFile};
pub use model::*;
pub use process_memory::{MemoryAccount, ResidentSample, RssSample};
pub use reader::{Checkpoint, EventReader, Trace};
pub use sampling::{Sampling, SamplingPeriod, Weight};
pub use snapshot::{Snapshot, SnapshotColumns, SnapshotProcess, SnapshotTrigger};
pub use source::ReadAt;
pub use stacks::StackTable;
pub use symbols::SymbolEmbedder;
pub use totals::{StackTotals, Summary, Totals};
pub use untold::Untold;
pub use writer::{TraceWriter, WindowEnd, new_file};
