//! The crate's tests against real processes.

mod account;
mod rundown;
