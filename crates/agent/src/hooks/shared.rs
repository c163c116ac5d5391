//! What the injector reads from the agent's memory.

/// A constant with pointers to statics and functions in it.
#[repr(transparent)]
pub(crate) struct Shared<T>(pub(crate) T);

// SAFETY: never written; the pointers in it lead to statics and functions, which any thread may
// name.
unsafe impl<T> Sync for Shared<T> {}
