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
mod clock;
mod error;
mod merge;
mod process_facts;
mod process_state;
mod properties;
mod recorder;
mod session;
mod sink;
mod system_facts;
mod translate;

pub use clock::ClockSource;
pub use error::Error;
pub use heapr_inject::{AttachReport, DetachReport, Error as InjectError};
pub use properties::{OnFull, SessionProperties, StackEvents};
pub use recorder::Statistics;
pub use session::{Session, SessionSummary};
