//! The shared buffers between agent and recorder: mapping, claiming, publishing, draining.
//!
//! You must provide: a recorder that calls [`Pool::create`] and drains, and agents that call
//! [`Pool::open`] and write. It does no allocation, takes no lock, and links nothing: system calls
//! are made directly ([`sys`]), so that the same code is safe inside a foreign process's `malloc`.
//!
//! **Trust.** The pages are shared with processes that may be broken or hostile. All of it is read
//! and written through atomics; whatever is read is copied to a local and checked before it is used
//! as an index or length. No function here panics or reads outside the mapping for any content of
//! the pages.
#![cfg_attr(not(test), no_std)]

// By this name, so that the model in `tests/model` can put its own atomics in its place.
use heapr_wire as wire;

pub mod early_ends;
pub mod forbidden_calls;
pub mod mappings;
mod pool;
pub mod reader;
pub mod sys;
pub mod writer;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use pool::{Pool, PoolError, PoolProperties};
