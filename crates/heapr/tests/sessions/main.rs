//! Sessions as their users run them: started in the background, queried, stopped, killed, and
//! attacked.
#![forbid(unsafe_code)]

mod busy_line;
mod completion;
mod doctor;
mod engine;
mod first_steps;
mod first_steps_places;
mod flags;
mod given_again;
mod gone_files;
mod harmless_looks;
mod hostile_clients;
mod kills;
mod life;
mod native_snapshots;
mod out_of_memory;
mod refusals;
mod rotation;
mod sampling;
mod sending;
mod sending_securely;
mod stage;
mod targets;
mod terminal;
mod top;
mod unseen_exec;
mod watch;
mod watch_group;
mod watch_own_limits;
