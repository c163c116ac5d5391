//! Sessions: a recorder, its shared buffers, and the environment that leads a program to them.
//!
//! ```no_run
//! use heapr_session::{Session, SessionProperties};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut session = Session::start(SessionProperties::new("out.heapr".into()))?;
//! let mut child = std::process::Command::new("ls").envs(session.environment_for_target()).spawn()?;
//! while heapr_session::ended(&mut child)?.is_none() {
//!     session.step();
//! }
//! let summary = session.stop();
//! println!("{} events", summary.summary.event_count);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod agent_file;
mod attach;
mod bell;
mod child_end;
mod content_hash;
mod control;
mod core_left_out;
mod core_snapshot;
mod error;
mod exec_hold;
mod exec_hold_threads;
mod failure;
mod flags;
mod heap_trace;
mod inherited_descriptors;
mod managed_core;
mod memory_room;
mod properties;
mod recorder;
mod rotation;
mod runtime_directory;
mod sampling;
mod session;
mod session_status;
mod snapshots;
mod status;

pub use agent_file::agent_bytes;
pub use child_end::ended;
pub use control::background::{BackgroundSession, ProgramCommand, StartRequest};
pub use control::order_desk::OrderDesk;
pub use control::session_name::SessionName;
pub use control::{
    Answer, ClientError, PROTOCOL_VERSION, Request, SessionClient, SessionEntry, SnapshotTaken, StopReport,
    Update, UpdateReport, sessions,
};
pub use core_snapshot::{CoreRequest, CoreTaken, snapshot_of_core};
pub use error::Error;
pub use failure::{Failure, FailureKind};
pub use flags::flag_target::{FlagTarget, ProcessFacts};
pub use flags::flagged_programs::FlaggedTargets;
pub use flags::shell_flags::{sessions_directory, shell_environment};
pub use flags::{Flag, FlagError, FlagKind, FlagScope, Flags};
pub use heap_trace::HeapTrace;
#[doc(hidden)]
pub use heapr_inject::die_at;
pub use heapr_inject::{AttachReport, DetachReport, Error as InjectError, PauseParts};
pub use inherited_descriptors::InheritedDescriptors;
pub use managed_core::{ManagedCoreRequest, managed_heap_of_core, managed_runtime_of_core};
pub use properties::{LoggingMode, OnFull, SessionProperties, StackEvents};
pub use recorder::facts::process_tree::{descendants, descendants_of_all};
pub use recorder::facts::system_facts::kernel_version;
pub use recorder::go::GoSeen;
pub use recorder::inside::{Inside, InsideModule, look_inside};
pub use recorder::intake::clock::ClockSource;
pub use recorder::memory::{BlocksThere, OwnPart, own_memory_of};
pub use recorder::names::made_code::HeldMadeCode;
pub use recorder::names::module_files::HeldModule;
pub use recorder::processes::earlier_blocks::EARLIER_BLOCKS_MODULE;
pub use recorder::state::statistics::Statistics;
pub use rotation::{Rotation, closed_files};
pub use sampling::{AUTO_PER_SECOND, FullOnGrowth, SampleRate};
pub use session::{Session, SessionSummary, WriteError};
pub use snapshots::graph_capture::{GraphContents, GraphPause, GraphRequest};
pub use snapshots::managed_capture::{
    ManagedRequest, ManagedTaken, managed_heap, managed_runtime, may_be_read,
};
pub use snapshots::native_snapshot::{SnapshotReport, SnapshotRequest, SnapshotScope, SnapshotTicket};
pub use snapshots::native_snapshot_rules::{SNAPSHOT_INTERVAL_MIN, SnapshotRule, SnapshotWhen};
pub use status::{ProcessStatus, Progress, SessionState, SessionStatus};
