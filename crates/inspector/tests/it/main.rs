//! Captures from inspectors that misbehave.
#![forbid(unsafe_code)]

mod fake_inspector;
mod hostile;
