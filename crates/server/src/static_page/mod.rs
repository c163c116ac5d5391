//! The page with recorded answers: one file that needs no server (`docs/api.md`, section 8).

mod html;
mod key;
mod recorder;
mod snapshots;
mod traces;

pub use recorder::{StaticLimits, write_static};
