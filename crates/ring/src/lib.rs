//! Shared buffers between agent and recorder: mapping, claiming, publishing, draining.
//!
//! The user provides a recorder that calls [`Pool::create`] and drains, and agents that call
//! [`Pool::open`] and write. The crate allocates no memory, takes no lock, and links no library.
//! System calls are made directly ([`sys`]), so that the same code is safe inside a foreign
//! process's `malloc`.
//!
//! **Trust.** The pages are shared with processes that may be broken or hostile. All accesses are
//! atomic; each value is copied to a local and checked before it is used as an index or length. No
//! function here panics or reads outside the mapping, whatever the pages contain.
#![cfg_attr(not(test), no_std)]

// The alias lets the model in `tests/model` substitute its own atomics.
use heapr_wire as wire;

mod arch;
pub mod early_ends;
pub mod forbidden_calls;
pub mod mappings;
pub mod pages;
mod pool;
pub mod reader;
pub mod sys;
pub mod writer;

pub use pool::{Pool, PoolError, PoolProperties};
