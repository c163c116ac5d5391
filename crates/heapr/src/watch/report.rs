//! Incidents written to the folder, printed, and sent.

use std::path::{Path, PathBuf};

use heapr_incident::{Bounds, Incident, Store};

use super::copied_recording::copy_recording;
use crate::transfer::{Outcome, Url, post};

/// Destination of incidents.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) store: Store,
    bounds: Bounds,
    webhook: Option<Url>,
    is_quiet: bool,
}

impl Report {
    /// Makes a destination. `webhook`: address that each incident is sent to.
    ///
    /// # Errors
    /// The address has a wrong form.
    pub(super) fn new(
        store: Store,
        bounds: Bounds,
        webhook: Option<&str>,
        is_quiet: bool,
    ) -> anyhow::Result<Self> {
        let webhook = webhook.map(Url::parse).transpose()?;
        Ok(Self { store, bounds, webhook, is_quiet })
    }

    /// Writes an incident with a copy of its recording. Returns its number.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn add(&self, mut incident: Incident, recording: &Path) -> anyhow::Result<u32> {
        incident.number = self.store.next_number();
        let copy: PathBuf = self.store.recording_path(incident.number);
        if let Some(facts) = &mut incident.recording {
            match copy_recording(recording, &copy) {
                Ok(()) => facts.file = copy.file_name().map(|name| name.to_string_lossy().into_owned()),
                Err(error) => incident.unknown.push(format!("the recording was not copied: {error:#}")),
            }
        }
        self.store.write(&mut incident)?;
        self.store.keep_within(&self.bounds);
        if !self.is_quiet {
            tell!(
                "heapr: incident {}: {}",
                incident.number,
                incident.sentences.first().map_or("", String::as_str)
            );
        }
        self.send(&incident);
        Ok(incident.number)
    }

    fn send(&self, incident: &Incident) {
        let Some(url) = &self.webhook else { return };
        let Ok(body) = serde_json::to_vec(incident) else { return };
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let url = url.clone();
        // An address that does not answer must not hold up the watch.
        std::thread::spawn(move || match post(&url, &headers, &body, None) {
            Outcome::Taken => {}
            Outcome::Later(said) | Outcome::Refused { said, .. } => {
                warn!("the incident was not sent: {said}")
            }
        });
    }
}
