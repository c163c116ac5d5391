//! `heapr snapshot take|every` and `heapr node` on real Node processes: the files that they write,
//! and the health of the processes.
//!
//! The tests need `node` (any version from 16 on) in the path; without it they say `not run:` and
//! pass. Each server has `--inspect-port=0`, so that they can run side by side.
#![forbid(unsafe_code)]

mod bystanders;
mod contained;
mod forecast;
mod interrupted;
mod node_server;
mod profiles;
mod redaction;
mod refusals;
mod repeated;
mod scripts;
mod started_by_others;
mod stopped;

/// Path of the heapr under test.
const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

/// Returns a heapr command that is not started yet.
fn command(words: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(HEAPR);
    command.args(words);
    command
}
