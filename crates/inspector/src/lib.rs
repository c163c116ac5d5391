//! Capture of heap snapshots, sampling profiles and allocation timelines from running processes.
//!
//! The caller provides a process id, a writer for the snapshot, and a flag that is raised when the
//! user wants to stop. [`Process`] finds out from `/proc` which runtime the process has.
//! [`Inspector`] uses a debugging port that is already open, or the one that Node opens on SIGUSR1.
//! It closes the port again if it opened it. Its methods communicate with the isolates.
//!
//! ```text
//! Process::examine(pid)          /proc only: nothing is sent to the process
//!    |
//! Preflight                      pause, peak, memory, cgroup limit: what it will cost
//!    |
//! Inspector::open                SIGUSR1 -> listening socket of this pid -> /json/list -> WebSocket
//!    |
//! Inspector::take_snapshot       reader: socket -> unescape -> queue -> writer thread: file
//!    |
//! Inspector::close               process._debugEnd() from a timer, then the port is looked for until it is gone
//! ```
//!
//! Invariants:
//!
//! * No signal is sent to a process that does not catch it.
//! * heapr connects to a socket only if `/proc` shows that the process itself listens on it.
//! * The socket is drained as fast as possible, because unread data stays in the target's memory.
//! * An inspector that was open before stays open.
#![forbid(unsafe_code)]

mod closed_process;
mod connection;
mod cost;
mod error;
mod escapes;
mod heap_memory;
mod heap_shape;
mod http;
mod inspector;
mod listening_ports;
mod memory;
mod message;
mod network;
mod own_scripts;
mod port;
mod process;
mod profile;
mod scripts;
mod signal_file;
mod signal_handler;
mod snapshot;
mod standstill;
mod target;
mod ticking_stream;
mod v8_memory;
mod worker;
mod write_behind;
mod written_place;

pub use cost::{Danger, Estimate, HeapFacts, dangers, estimate};
pub use error::{Error, Result};
pub use heap_shape::{HeapShape, heap_shape};
pub use heapr_known::runtimes::Runtime;
pub use inspector::{Closing, HeapUsage, Inspector};
pub use listening_ports::Listener;
pub use memory::{MemoryLimit, MemoryRoom, anonymous_bytes, memory_room, resident_bytes};
pub use port::OpenOptions;
pub use process::Process;
pub use profile::SamplingOptions;
pub use scripts::Script;
pub use signal_file::{SignalFile, SnapshotSignal, written_directory};
pub use snapshot::{SnapshotOptions, SnapshotProgress, TakenSnapshot};
pub use standstill::Standstill;
pub use target::Target;
pub use v8_memory::{V8Memory, V8Space};
pub use worker::Worker;
