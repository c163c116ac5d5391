//! Record formats and shared-page layout between the agent (inside the target) and the recorder.
//!
//! Both sides are always the same build ([`BUILD_ID`] is compared in the handshake), so this layout
//! may change with every commit. The stable format is the `.heapr` file, into which the recorder
//! translates.
//!
//! ```text
//! memfd "heapr-pool"  created, sized, sealed by the recorder; every traced process maps it
//! +-----------------+ 0
//! | Control         | one page: properties of the session, its state, futex words
//! +-----------------+ PROCESS_SLOTS_OFFSET
//! | ProcessSlot × P | one per traced process image
//! +-----------------+ THREAD_SLOTS_OFFSET
//! | ThreadSlot × T  | one per thread (and per nested signal level)
//! +-----------------+ BUFFER_HEADERS_OFFSET
//! | BufferHeader × B| owner, sequence, published length: 64 bytes each
//! +-----------------+ Control::buffers_offset (page aligned)
//! | buffer 0 … B-1  | Control::buffer_bytes each: event records, or stack nodes
//! +-----------------+
//! ```
//!
//! **Trust.** Each side treats the other as hostile: every index and length read from here is
//! copied to a local, checked, and only then used.
#![no_std]
#![forbid(unsafe_code)]

pub mod arch;
mod called;
mod injection;
mod inner_function;
mod layout;
mod record;
pub mod seccomp;

pub use called::*;
pub use injection::*;
pub use inner_function::*;
pub use layout::*;
pub use record::*;
