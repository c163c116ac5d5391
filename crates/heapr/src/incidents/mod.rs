//! `heapr incidents`: lists the incidents of `heapr watch`, and shows one.

mod command;
mod folder;
mod otlp_logs;
mod recording;
mod tables;
mod text;

pub(crate) use command::{IncidentsArguments, run};
pub(crate) use folder::default_folder;
pub(crate) use otlp_logs::{LOGS_PATH, log_record};
pub(crate) use recording::{
    earliest_end_ns, incident_of_recording, last_minutes, latest, recording_of_incident,
};
