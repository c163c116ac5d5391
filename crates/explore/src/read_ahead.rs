//! Batches of events, unpacked on a separate thread while earlier ones are replayed: this saves a
//! third of the reading time.

use std::sync::mpsc;

use heapr_query::Result;
use heapr_trace::{Damage, Event, EventReader};

/// Number of batches that wait for the replay: some megabytes each.
const WAITING: usize = 2;

/// Result of reading all batches.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All batches were visited; these chunks could not be used.
    Whole(Vec<Damage>),
    /// `visit` returned `false`.
    Stopped,
}

/// Passes all batches to `visit` in order, with the numbers of chunks read and in all, until it
/// returns `false`.
///
/// # Errors
/// Reading fails; or an error of `visit`.
pub(crate) fn for_each_batch(
    mut events: EventReader<'_>,
    reads_ahead: bool,
    mut visit: impl FnMut(&[Event], (usize, usize)) -> Result<bool>,
) -> Result<Outcome> {
    if !reads_ahead {
        while let Some(batch) = events.next_batch()?.map(<[Event]>::to_vec) {
            if !visit(&batch, events.progress())? {
                return Ok(Outcome::Stopped);
            }
        }
        return Ok(Outcome::Whole(events.damage().to_vec()));
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        // Returns buffers for reuse.
        let (used, unused) = mpsc::channel::<Vec<Event>>();
        let reader = scope.spawn(move || -> Result<Vec<Damage>> {
            loop {
                let mut own = unused.try_recv().unwrap_or_default();
                own.clear();
                match events.next_batch()? {
                    Some(batch) => own.extend_from_slice(batch),
                    None => return Ok(events.damage().to_vec()),
                }
                // The receiver is gone once `visit` returned `false`.
                if sender.send((own, events.progress())).is_err() {
                    return Ok(Vec::new());
                }
            }
        });
        while let Ok((batch, progress)) = receiver.recv() {
            if !visit(&batch, progress)? {
                return Ok(Outcome::Stopped);
            }
            // The reader may have ended before the last batches.
            let _ = used.send(batch);
        }
        let damage = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Outcome::Whole(damage))
    })
}
