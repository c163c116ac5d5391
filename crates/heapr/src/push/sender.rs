//! Sends bodies: tries again with growing, random pauses, keeps what is not taken, says what was
//! lost.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use super::engines::ENGINES;
use super::spool::Spool;
use crate::transfer::{Outcome, Url, post};

/// The first pause; each further one is twice as long, and random by half.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// See the module.
#[derive(Debug)]
pub(super) struct Sender {
    /// Engines by name, with the address that takes profiles.
    pub(super) targets: Vec<(&'static str, Url)>,
    /// `--header`.
    pub(super) headers: Vec<(String, String)>,
    /// `--ca`.
    pub(super) authority: Option<PathBuf>,
    /// How often a body is tried at once.
    pub(super) tries: u32,
    pub(super) spool: Option<Spool>,
    pub(super) sent_count: u64,
    /// Refused for good.
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

    /// Sends what waits, then a body to its engine; what is not taken waits in the spool. `false`:
    /// it is not with its engine.
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

    /// `true`: nothing waits any more for this engine. One try each: what is older has waited
    /// before.
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

    /// `Ok(false)`: it was refused for good.
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
                Outcome::Refused(said) => {
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

    /// Profiles that no engine will ever have.
    pub(super) fn lost_count(&self) -> u64 {
        self.refused_count + self.spool.as_ref().map_or(0, |spool| spool.dropped_count)
    }
}

/// Half of it is random: many that lost one engine do not come back together.
fn pause(attempt: u32) -> Duration {
    let whole = PAUSE.saturating_mul(1 << (attempt - 1).min(16)).min(PAUSE_MAX);
    let random = RandomState::new().hash_one(attempt) % 1000;
    whole / 2 + whole.mul_f64(random as f64 / 2000.0)
}
