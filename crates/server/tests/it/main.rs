//! The server as a browser sees it: over a socket, on a trace by the real writer.

mod access;
mod answer_types;
mod changing_files;
mod early_requests;
mod estimates;
mod made;
mod queries;
mod refused_requests;
mod snapshot_filters;
mod snapshot_series;
