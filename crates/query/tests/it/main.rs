//! Queries on whole traces, against a model that is obviously right.

mod against_model;
mod files_in_turn;
mod generated_metrics;
mod lives;
mod made_trace;
mod meanings;
mod model;
mod random_steps;
mod snapshots;
