//! Data that the injector reads from the agent's memory.

/// A constant that contains pointers to statics and functions.
#[repr(transparent)]
pub(crate) struct Shared<T>(pub(crate) T);

// SAFETY: never written; the pointers in it lead to statics and functions, which any thread may
// use.
unsafe impl<T> Sync for Shared<T> {}
