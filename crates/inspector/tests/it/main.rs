//! Capture against an inspector that does what no inspector should.
#![forbid(unsafe_code)]

mod fake_inspector;
mod hostile;
