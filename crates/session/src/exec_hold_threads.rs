//! The threads that see to programs which are held at their exec.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The threads that see to programs, which a session's end waits for: what they have found belongs
/// into its file. Each has its limits, and comes to its end at once with that of its program.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecHolds(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl ExecHolds {
    pub(crate) fn add(&self, thread: JoinHandle<()>) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Waits until all have told what they found.
    pub(crate) fn finish(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic of its is told by its own message.
            let _ = thread.join();
        }
    }
}
