//! Control of a session's recorder, from the same process or another: requests, answers, and the
//! socket that carries them.
//!
//! ```text
//! heapr status          socket NAME.sock         recorder process
//! +-----------+   one line of JSON each way   +-----------------------------------------+
//! | client    | <===========================> | listener -> a thread per client (few)   |
//! +-----------+   SO_PEERCRED checked by both |      | Order (request, where to answer) |
//!                                             |      v                                  |
//! HeapTrace in the same process ------------->|   worker: rounds, orders between them   |
//!                                             +-----------------------------------------+
//! ```
//!
//! The worker reads orders between two rounds and never waits for a client. A slow, silent or
//! hostile client costs a thread until its time is up.

pub(crate) mod background;
pub(crate) mod session_name;
pub(crate) mod worker;

pub(crate) mod claim;
mod clerk;
mod client;
mod listener;
mod name_lock;
pub(crate) mod order_desk;
mod protocol;
mod target_thread;

pub use client::{ClientError, SessionClient, SessionEntry, sessions};
pub(crate) use listener::Listener;
pub(crate) use protocol::Order;
pub use protocol::{Answer, PROTOCOL_VERSION, Request, SnapshotTaken, StopReport, Update, UpdateReport};
