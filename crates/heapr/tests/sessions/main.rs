//! Sessions as their users run them: started in the background, asked, stopped, killed; and those who would harm them.
#![forbid(unsafe_code)]

mod flags;
mod hostile_clients;
mod kills;
mod life;
mod native_snapshots;
mod refusals;
mod stage;
