//! Snapshots that Node makes on the spot, against Chrome DevTools' own worker.

mod devtools_oracle;
mod node_program;
mod oracle_lines;
mod real_snapshots;
