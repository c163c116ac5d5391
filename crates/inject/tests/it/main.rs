//! The crate's tests against real processes.

mod account;
mod exec_watch;
mod rundown;
