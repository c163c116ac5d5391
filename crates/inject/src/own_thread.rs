//! A separate thread for each attach and detach: when it ends, the kernel releases all threads that
//! it still traces.
//!
//! A thread may not stop on request, because it waits for a child made by vfork, or for a disk. It
//! cannot be released then. It would stop on waking, and stay stopped as long as its tracer lives.

use std::thread;

/// Runs `work` in a separate thread and waits for it; in the calling thread if none can be created.
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
