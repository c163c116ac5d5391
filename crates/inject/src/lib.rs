//! What heapr does to a running process from outside.
//!
//! `rundown` walks glibc's heap of a stopped process and lists the blocks that were allocated before anybody watched.

pub mod rundown;
