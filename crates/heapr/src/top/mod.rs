//! `heapr top`: a running session in the terminal, by the same answers as the page.
//!
//! ```text
//!  session ── socket, file ──> server's follower ── JSON ──> reader (thread) ── Reading ──┐
//!  keys, size, signals ─────────────────────────────────────────────────────> screen ──> state.update
//!                                                                                └─ draw(state) ──> terminal
//! ```
//! State and drawing know no terminal, so that tests run them on made readings.

mod arguments;
mod command;
mod draw;
mod filter_line;
mod history;
mod plain_screens;
mod reader;
mod reading;
mod recorder_share;
mod screen;
mod signals;
mod snapshot;
mod stack_view;
mod state;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use arguments::TopArguments;
pub(crate) use command::run;
