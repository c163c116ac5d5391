//! Heaps of .NET: of a running process by the runtime's own diagnostics socket, and from `.gcdump`
//! files.
//!
//! ```text
//!  socket       commands to the runtime
//!  collection   a session: the runtime collects garbage, stops, and tells its heap
//!  stream       nettrace: blocks of events           gcdump    a file's graph
//!  walk         events -> types, objects, roots
//!  recorded     the same events in a file
//!  static_classes, assembly, tables    classes of static variables, from the files
//!  field_names, slots, members         fields of objects, from the files
//!  live_graph, objects                 -> Snapshot
//! ```
//! Neither has names of fields. Where the files do not tell them, a reference is named by the class
//! that it leads to.

mod assembly;
mod collection;
mod error;
mod field_names;
mod gcdump;
mod live_graph;
mod members;
mod objects;
mod recorded;
mod slots;
mod socket;
mod static_classes;
mod stream;
mod tables;
mod type_names;
mod walk;

#[cfg(test)]
mod tests;

pub use collection::DotnetHeap;
pub use error::DotnetError;
pub use gcdump::{GCDUMP_BEGINNING_BYTES, is_gcdump, read_gcdump};
pub use recorded::{is_nettrace, read_nettrace};
pub use socket::DotnetProcess;
