//! Incidents written to the folder, printed, and sent.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use heapr_incident::{Bounds, Incident, Store};

use super::copied_recording::copy_recording;
use crate::incidents::{LOGS_PATH, log_record};
use crate::transfer::{Outcome, Url, post};

/// Largest number of incidents that are sent at once.
const SENDING_MAX: usize = 16;
/// Longest time that the end of the watch waits for incidents that are being sent.
const SENDING_LIMIT: Duration = Duration::from_secs(8);

/// Form of an incident that is sent.
type Form = fn(&Incident) -> serde_json::Result<Vec<u8>>;

/// Destination of incidents.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) store: Store,
    bounds: Bounds,
    /// Addresses, with the form that each one takes.
    destinations: Vec<(Url, Form)>,
    is_quiet: bool,
    /// Threads that send.
    sending: RefCell<Vec<JoinHandle<()>>>,
}

impl Report {
    /// Makes a destination. `webhook`, `otlp`: addresses that each incident is sent to.
    ///
    /// # Errors
    /// The address has a wrong form.
    pub(super) fn new(
        store: Store,
        bounds: Bounds,
        (webhook, otlp): (Option<&str>, Option<&str>),
        is_quiet: bool,
    ) -> anyhow::Result<Self> {
        let webhook = webhook.map(Url::parse).transpose()?;
        let otlp = otlp.map(Url::parse).transpose()?.map(|url| url.join(LOGS_PATH));
        let plain: Form = |incident| serde_json::to_vec(incident);
        let destinations = webhook.map(|url| (url, plain)).into_iter();
        let destinations = destinations.chain(otlp.map(|url| (url, log_record as Form))).collect();
        Ok(Self { store, bounds, destinations, is_quiet, sending: RefCell::default() })
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
        let written = self.store.write(&mut incident);
        if written.is_err() {
            // A recording without its incident would stay for good.
            self.store.remove(incident.number);
        }
        self.store.keep_within(&self.bounds);
        if !self.is_quiet {
            tell!(
                "heapr: incident {}: {}",
                incident.number,
                incident.sentences.first().map_or("", String::as_str)
            );
        }
        for (url, form) in &self.destinations {
            self.send(url, form(&incident));
        }
        written?;
        Ok(incident.number)
    }

    /// Waits for incidents that are being sent, for a bounded time.
    pub(super) fn finish(&self) {
        let begin = Instant::now();
        let left = || self.sending.borrow().iter().filter(|thread| !thread.is_finished()).count();
        while left() > 0 && begin.elapsed() < SENDING_LIMIT {
            sleep(Duration::from_millis(20));
        }
        if left() > 0 {
            warn!("the watch ends before {} incidents were sent", left());
        }
    }

    fn send(&self, url: &Url, body: serde_json::Result<Vec<u8>>) {
        let Ok(body) = body else { return };
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let url = url.clone();
        let mut sending = self.sending.borrow_mut();
        sending.retain(|thread| !thread.is_finished());
        if sending.len() >= SENDING_MAX {
            warn!("the incident was not sent: {SENDING_MAX} others wait for an answer");
            return;
        }
        // An address that does not answer must not hold up the watch.
        let thread = Builder::new().spawn(move || match post(&url, &headers, &body, None) {
            Outcome::Taken => {}
            Outcome::Later(said) | Outcome::Refused { said, .. } => {
                // The address may hold a secret.
                warn!("the incident was not sent: {}", said.replace(&url.to_string(), "the address"))
            }
        });
        match thread {
            Ok(thread) => sending.push(thread),
            Err(error) => warn!("the incident was not sent: {error}"),
        }
    }
}
