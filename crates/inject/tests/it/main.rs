//! The crate's tests against real processes.

mod account;
mod damaged_heaps;
mod exec_watch;
mod rundown;
