//! `heapr push`: what a recording holds, to the engines that people run already.
//!
//! ```text
//! file or session ── every so often ──> profile ── body of an engine ──> HTTP
//!                                                        │ it does not answer
//!                                                        └──> spool, a bounded folder ──> HTTP, later
//! ```
//! It reads files and asks the recorder for a flush: nothing of it is in the target's way.

mod command;
mod engines;
mod sender;
mod snapshot;
mod spool;

pub(crate) use command::{PushArguments, run};
pub(crate) use snapshot::{METRICS, SinceLast};
