//! Helpers that tests of several crates share. Only tests may depend on this crate.
#![forbid(unsafe_code)]

mod dotnet;
mod generated;
mod growing;
mod java;
mod outcome;
mod skipped;
mod stage;
mod waiting;

pub use dotnet::{DotnetProgram, dotnets};
pub use generated::{WRITE, check_part};
pub use growing::Growing;
pub use java::{JavaProgram, java_kits};
pub use outcome::{Outcome, run, run_within};
pub use skipped::{cannot_run_here, not_run};
pub use stage::Stage;
pub use waiting::{LIMIT, SLOWNESS, wait_until, within_limit};
