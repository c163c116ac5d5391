//! `heapr push`: sends the contents of a recording to profile engines.
//!
//! ```text
//! file or session ── every so often ──> profile ── body of an engine ──> HTTP
//!                                                        │ it does not answer
//!                                                        └──> spool, a bounded folder ──> HTTP, later
//! ```
//! Push reads files and requests flushes from the recorder: the target is not slowed down.

mod command;
mod engines;
mod sender;
mod snapshot;
mod spool;

pub(crate) use command::{PushArguments, run};
pub(crate) use snapshot::{METRICS, SinceLast};
