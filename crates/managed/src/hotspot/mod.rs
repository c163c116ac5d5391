//! Heap dumps of running Java virtual machines of the HotSpot kind, by their own attach protocol.
//!
//! ```text
//!  heapr                                           the process
//!  .attach_pidN in its directory, SIGQUIT    ->    listens at /tmp/.java_pidN
//!  1\0 dumpheap\0 FILE\0 -live\0 \0           ->    stops, writes FILE as its own user
//!  opens FILE and unlinks it                 <-    0\n
//! ```
//! N is the pid in the process's own namespace; paths go through `/proc/PID/root`. Folders are held
//! by descriptor: the process may replace their names at any moment.

mod attach;
mod dump;
mod error;
mod folder;
mod options;
mod request;

pub use attach::{Attached, check_hotspot};
pub use dump::HeapDump;
pub use error::AttachError;
