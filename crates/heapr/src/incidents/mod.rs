//! `heapr incidents`: lists the incidents of `heapr watch`, and shows one.

mod command;
mod folder;
mod recording;
mod tables;
mod text;

pub(crate) use command::{IncidentsArguments, run};
pub(crate) use folder::default_folder;
pub(crate) use recording::{
    earliest_end_ns, incident_of_recording, last_minutes, latest, recording_of_incident,
};
