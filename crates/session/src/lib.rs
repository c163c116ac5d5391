//! Sessions: a recorder, its shared buffers, and the environment that leads a program to them.
//!
//! ```no_run
//! use heapr_session::{Session, SessionProperties};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut session = Session::start(SessionProperties::new("out.heapr".into()))?;
//! let mut child = std::process::Command::new("ls").envs(session.environment_for_target()).spawn()?;
//! while child.try_wait()?.is_none() {
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
mod background;
mod clock;
mod control;
mod error;
mod exec_guard;
mod flag_cache;
mod flag_target;
mod flag_watch;
mod flagged;
mod flags;
mod heap_trace;
mod inherited_descriptors;
mod merge;
mod native_snapshot;
mod native_snapshot_rules;
mod own_heaps;
mod plain;
mod process_facts;
mod process_state;
mod properties;
mod recorder;
mod runtime_directory;
mod session;
mod session_name;
mod session_status;
mod shell_flags;
mod sink;
mod spare_time;
mod statistics;
mod status;
mod system_facts;
mod target_thread;
mod target_view;
mod translate;
mod watched_filesystems;
mod worker;

pub use background::{BackgroundSession, FlaggedTargets, ProgramCommand, StartRequest};
pub use clock::ClockSource;
pub use control::{
    Answer, ClientError, Failure, FailureKind, PROTOCOL_VERSION, Request, SessionClient, SessionEntry,
    SnapshotTaken, StopReport, Update, UpdateReport, sessions,
};
pub use error::Error;
pub use flag_target::{FlagTarget, ProcessFacts};
pub use flags::{Flag, FlagError, FlagKind, FlagScope, Flags};
pub use heap_trace::HeapTrace;
pub use heapr_inject::{AttachReport, DetachReport, Error as InjectError, PauseParts};
pub use inherited_descriptors::InheritedDescriptors;
pub use native_snapshot::{SnapshotReport, SnapshotRequest, SnapshotScope, SnapshotTicket};
pub use native_snapshot_rules::{SNAPSHOT_INTERVAL_MIN, SnapshotRule, SnapshotWhen};
pub use properties::{LoggingMode, OnFull, SessionProperties, StackEvents};
pub use session::{Session, SessionSummary};
pub use session_name::SessionName;
pub use shell_flags::{sessions_directory, shell_environment};
pub use statistics::Statistics;
pub use status::{ProcessStatus, SessionState, SessionStatus};
pub use system_facts::kernel_version;
