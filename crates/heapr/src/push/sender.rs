//! Sends bodies: retries after growing, random pauses, spools what an engine does not accept, and
//! counts losses.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use super::engines::ENGINES;
use super::spool::Spool;
use crate::transfer::{Outcome, Url, post};

/// First pause before a retry. Each further one is twice as long; half of each is random.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// Sender of bodies to all engines, with retries and a spool.
#[derive(Debug)]
pub(super) struct Sender {
    /// Engines by name, with the address that accepts profiles.
    pub(super) targets: Vec<(&'static str, Url)>,
    /// Headers of `--header`.
    pub(super) headers: Vec<(String, String)>,
    /// Certificate authority of `--ca`.
    pub(super) authority: Option<PathBuf>,
    /// Number of tries before a body goes to the spool.
    pub(super) tries: u32,
    pub(super) spool: Option<Spool>,
    pub(super) sent_count: u64,
    /// Number of bodies that an engine refused for good.
    pub(super) refused_count: u64,
    told_dropped: u64,
}

impl Sender {
    pub(super) fn new(
        targets: Vec<(&'static str, Url)>,
        headers: Vec<(String, String)>,
        authority: Option<PathBuf>,
        tries: u32,
        spool: Option<Spool>,
    ) -> Self {
        Self { targets, headers, authority, tries, spool, sent_count: 0, refused_count: 0, told_dropped: 0 }
    }

    /// Sends the spooled bodies of an engine, then `body`, which is spooled if it is not accepted.
    /// Returns `false` if `body` did not reach the engine.
    pub(super) fn send(&mut self, engine: &'static str, body: &[u8]) -> bool {
        let is_clear = self.send_waiting(engine);
        if is_clear {
            match self.try_often(engine, body, self.tries) {
                Ok(is_taken) => return is_taken,
                Err(why) => warn!("{why}"),
            }
        }
        let Some(spool) = &mut self.spool else { return false };
        if let Err(error) = spool.keep(engine, body) {
            warn!("{error:#}");
        }
        self.tell_dropped();
        false
    }

    /// Sends the spooled bodies of this engine until one is not accepted, with one try each because
    /// they were retried before. Returns `true` if none is left.
    fn send_waiting(&mut self, engine: &'static str) -> bool {
        let waiting = self.spool.as_ref().map(Spool::waiting).unwrap_or_default();
        for (_, _, path, _) in waiting.into_iter().filter(|(_, of, ..)| of == engine) {
            let Ok(body) = std::fs::read(&path) else { continue };
            if self.try_often(engine, &body, 1).is_err() {
                return false;
            }
            let _ = std::fs::remove_file(&path);
        }
        true
    }

    /// Sends a body, with retries. Returns `Ok(false)` if it was refused for good.
    fn try_often(&mut self, engine: &'static str, body: &[u8], tries: u32) -> Result<bool, String> {
        let known = ENGINES.iter().find(|known| known.name == engine);
        let target = self.targets.iter().find(|(name, _)| *name == engine);
        let (Some(known), Some((_, url))) = (known, target) else { return Ok(false) };
        let mut headers = vec![("Content-Type".to_owned(), known.content_type.to_owned())];
        if known.is_gzipped {
            headers.push(("Content-Encoding".to_owned(), "gzip".to_owned()));
        }
        headers.extend(self.headers.iter().cloned());
        let mut why = String::new();
        for attempt in 0..tries.max(1) {
            if attempt > 0 {
                std::thread::sleep(pause(attempt));
            }
            match post(url, &headers, body, self.authority.as_deref()) {
                Outcome::Taken => {
                    self.sent_count += 1;
                    return Ok(true);
                }
                Outcome::Refused { said, .. } => {
                    warn!("{said}: it is dropped");
                    self.refused_count += 1;
                    return Ok(false);
                }
                Outcome::Later(said) => why = said,
            }
        }
        Err(why)
    }

    fn tell_dropped(&mut self) {
        let dropped = self.spool.as_ref().map_or(0, |spool| spool.dropped_count);
        if dropped > self.told_dropped {
            self.told_dropped = dropped;
            warn!("the spool is full: {dropped} profiles were dropped so far");
        }
    }

    /// Number of profiles that were refused or dropped from the spool.
    pub(super) fn lost_count(&self) -> u64 {
        self.refused_count + self.spool.as_ref().map_or(0, |spool| spool.dropped_count)
    }
}

/// Returns the pause before a retry. Half of it is random, so that many senders do not return to an
/// engine together.
fn pause(attempt: u32) -> Duration {
    let whole = PAUSE.saturating_mul(1 << (attempt - 1).min(16)).min(PAUSE_MAX);
    let random = RandomState::new().hash_one(attempt) % 1000;
    whole / 2 + whole.mul_f64(random as f64 / 2000.0)
}
