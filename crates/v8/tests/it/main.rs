//! Snapshots that Node makes during the test, compared with Chrome DevTools' own worker.

mod devtools_oracle;
mod node_program;
mod oracle_lines;
mod real_snapshots;
