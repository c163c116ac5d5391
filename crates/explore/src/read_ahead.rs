//! Batches of events, unpacked on a thread of their own while those before them are replayed: a
//! third of the reading.

use std::sync::mpsc;

use heapr_query::Result;
use heapr_trace::{Damage, Event, EventReader};

/// Batches that wait for the replay: some megabytes each.
const WAITING: usize = 2;

/// What the reading of all batches ends with.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All were shown; these chunks could not be used.
    Whole(Vec<Damage>),
    /// `visit` wanted no more.
    Stopped,
}

/// Shows all batches in order, with the chunks read and all, until `visit` says no.
///
/// # Errors
/// The operating system's, and those of `visit`.
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
        // Memory comes back to be filled again.
        let (used, unused) = mpsc::channel::<Vec<Event>>();
        let reader = scope.spawn(move || -> Result<Vec<Damage>> {
            loop {
                let mut own = unused.try_recv().unwrap_or_default();
                own.clear();
                match events.next_batch()? {
                    Some(batch) => own.extend_from_slice(batch),
                    None => return Ok(events.damage().to_vec()),
                }
                // Nobody listens any more once `visit` has enough.
                if sender.send((own, events.progress())).is_err() {
                    return Ok(Vec::new());
                }
            }
        });
        while let Ok((batch, progress)) = receiver.recv() {
            if !visit(&batch, progress)? {
                return Ok(Outcome::Stopped);
            }
            // The last batches find the reader gone.
            let _ = used.send(batch);
        }
        let damage = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Outcome::Whole(damage))
    })
}
