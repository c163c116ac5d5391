//! `heapr watch`: records processes for months, and tells why one of them was killed.
//!
//! ```text
//!  targets ── scan ──> watched processes, groups ── notices, pidfds, kernel's log ──┐
//!  recorder (a session of its own, outlives the watcher)                          poll
//!      └─ recording on disk ──> holders ──┐                                         │
//!  account, readings ─────────────────────┴── incident <── deaths, warnings <───────┘
//!  journal (on disk) ──> the next watcher makes the incidents of the time between
//! ```
//! The watcher waits for notices. Timers are seldom, slower the farther a limit is, and coincide.

mod account;
mod arguments;
mod command;
mod copied_recording;
mod dead;
mod deaths;
mod earlier;
mod facts;
mod failed_calls;
mod full_recording;
mod heap_course;
mod held;
mod holders;
mod kills;
mod objects;
mod own_limits;
mod readings;
mod recorded;
mod recorder;
mod recorder_again;
mod replacements;
mod report;
mod room;
mod scan;
mod starts;
mod targets;
mod ticks;
mod unseen;
mod waiting;
mod warnings;
mod watched_group;
mod watched_process;
mod watcher;

pub(crate) use arguments::WatchArguments;
pub(crate) use command::run;
