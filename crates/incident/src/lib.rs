//! Incidents: why a process died for lack of memory, or is about to, and what held the memory.
//!
//! ```text
//! control groups ── readings, notices ──┐
//! kernel's log ── kills ────────────────┼─> facts ── cause ──> incident ──> store (a file each)
//! exit status ── ending ────────────────┘              sentences ┘
//! ```
//!
//! Invariants: a cause is a fact, or it is said to be unknown. Files of incidents are untrusted
//! input. The crate traces no process and reads no recording: the command line adds the holders.
#![forbid(unsafe_code)]

mod cause;
mod climb;
mod course;
mod ending;
mod group_events;
mod group_levels;
mod incident;
mod journal;
mod kernel_log;
mod markdown;
mod metrics;
mod notices;
mod own_limits;
mod sentences;
mod store;
mod wall_clock;
mod warning_sentence;

pub use cause::{Cause, CauseKind, Certainty, DeathFacts, FAILED_SECONDS, cause};
pub use climb::{Climb, OwnClimb, OwnLimit, Rules, State, Trigger};
pub use course::{Course, Point};
pub use ending::{Ending, signal_name};
pub use group_events::GroupEvents;
pub use group_levels::{Levels, More, deciding_limit};
pub use incident::{
    Account, AccountLine, GroupFacts, GroupProcess, Holder, HolderKind, Incident, Kind, Lowered,
    ProcessNamed, Recording, SCHEMA, WallTime,
};
pub use journal::{Journal, JournalGroup, JournalProcess};
pub use kernel_log::{KernelKill, KernelLog, Scope};
pub use markdown::markdown;
pub use metrics::metrics;
pub use notices::Notices;
pub use own_limits::{AtOutOfMemory, Limited, RuntimeLimit};
pub use sentences::{first_sentence, tell};
pub use store::{Bounds, Store, StoreError, Summary};
pub use wall_clock::{clock_text, unix_ns};
