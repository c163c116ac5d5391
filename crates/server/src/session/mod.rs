//! Running sessions: their status, and their files as they grow.
//!
//! ```text
//!  recorder ── status, once a second ──> history
//!     │ flush, while a client asks
//!     └──> file ── a new opening of it, read beside the one that is shown ──> shown, generation + 1
//! ```

mod history;
mod running_session;

pub use running_session::status_json;
pub(crate) use running_session::{RunningSession, SessionFacts, SessionStage};
