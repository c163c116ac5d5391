//! `heapr view`: the page, served on this machine.

mod browser;
mod host;
mod sources;
mod view_command;

pub(crate) use host::CommandLineHost;
pub(crate) use view_command::{ViewArguments, run, until_signal};
