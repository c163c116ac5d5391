//! A thread for each attach and detach: when it ends, the kernel lets go of whatever it still
//! traces.
//!
//! A thread that is asked to stop and does not (it waits for a child made by vfork, or for a disk)
//! cannot be let go: it must stop first. It would do so whenever it wakes, and stand still as long
//! as whoever traces it lives.

use std::thread;

/// Runs `work` in a thread of its own and waits for it; in this one if there can be none.
pub(crate) fn in_own_thread<T: Send>(mut work: impl FnMut() -> T + Send) -> T {
    let outcome = thread::scope(|scope| {
        let thread = thread::Builder::new().name("heapr-ptrace".to_owned()).spawn_scoped(scope, &mut work);
        thread.ok().map(thread::ScopedJoinHandle::join)
    });
    match outcome {
        Some(Ok(outcome)) => outcome,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        None => work(),
    }
}
