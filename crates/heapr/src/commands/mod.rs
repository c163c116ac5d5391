//! One file per command.

pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod symbolize;
