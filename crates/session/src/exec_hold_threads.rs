//! Threads that handle programs held at their exec.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Threads that handle held programs. A session's end waits for them, because their results belong
/// into its file. Each has time limits, and ends at once with its program.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecHolds(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl ExecHolds {
    pub(crate) fn add(&self, thread: JoinHandle<()>) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Waits until all threads have sent their results.
    pub(crate) fn finish(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic of the thread has printed its own message.
            let _ = thread.join();
        }
    }
}
